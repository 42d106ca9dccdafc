//! Waiting for what was let go a moment ago.
//!
//! The kernel frees a queue some 15 ms after its socket was closed, and later than 500 ms on a machine with ten tasks for two
//! processors; and a child process that is just being started holds all of its parent's descriptors until it runs its own program.
//! So "busy" is believed only after a while.

use std::io;
use std::time::{Duration, Instant};

/// How long something may stay taken after its end.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long until it is tried again.
const PAUSE: Duration = Duration::from_millis(2);

/// What `attempt` makes, tried again as long as it is busy and there is patience left.
pub(crate) fn while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let since = Instant::now();
    loop {
        match attempt() {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && since.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE)
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_busy_is_tried_again_and_nothing_else() {
        let busy = || io::Error::from(io::ErrorKind::ResourceBusy);
        let mut attempts = 0;
        let got = while_busy(|| {
            attempts += 1;
            if attempts < 4 { Err(busy()) } else { Ok(attempts) }
        });
        assert_eq!(got.expect("the fourth attempt works"), 4);
        let mut attempts = 0;
        let refused = while_busy(|| {
            attempts += 1;
            Err::<(), _>(io::ErrorKind::PermissionDenied.into())
        });
        assert_eq!((refused.expect_err("no permission").kind(), attempts), (io::ErrorKind::PermissionDenied, 1));
        let never = while_busy(|| Err::<(), _>(busy()));
        assert_eq!(never.expect_err("patience has an end").kind(), io::ErrorKind::ResourceBusy);
    }
}
