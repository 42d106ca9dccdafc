//! Retries while a resource that was just released is still busy.
//!
//! The kernel frees a queue some 15 ms after its socket was closed, and after more than 500 ms on a
//! machine with ten tasks for two processors. A child process that is being started holds all
//! descriptors of its parent until `exec`. A "busy" error is therefore only reported after a while.

use std::io;
use std::time::{Duration, Instant};

/// Maximum time for which a released resource can stay busy.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// Returns the result of `attempt`, which is repeated while it is busy and time is left.
pub(crate) fn retry_while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let since = Instant::now();
    loop {
        match attempt() {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && since.elapsed() < TIMEOUT => std::thread::sleep(PAUSE),
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_busy_attempts_are_repeated() {
        let busy = || io::Error::from(io::ErrorKind::ResourceBusy);
        let mut attempts = 0;
        let result = retry_while_busy(|| {
            attempts += 1;
            if attempts < 4 { Err(busy()) } else { Ok(attempts) }
        });
        assert_eq!(result.expect("the fourth attempt works"), 4);
        let mut attempts = 0;
        let refused = retry_while_busy(|| {
            attempts += 1;
            Err::<(), _>(io::ErrorKind::PermissionDenied.into())
        });
        assert_eq!((refused.expect_err("no permission").kind(), attempts), (io::ErrorKind::PermissionDenied, 1));
        let never = retry_while_busy(|| Err::<(), _>(busy()));
        assert_eq!(never.expect_err("the retries end").kind(), io::ErrorKind::ResourceBusy);
    }
}
