//! Reconnection backoff: the delay doubles after each failure, with jitter.

use core::time::Duration;

/// Delays that double up to a maximum. Each delay is drawn from its upper half, so that switches
/// that lost the same controller do not reconnect at once.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Creates a backoff with the delay `first` after the first failure, and `longest` as the
    /// maximum.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// Returns the delay before the next attempt. `random` is any number from the caller's random
    /// source.
    pub fn wait(&mut self, random: u64) -> Duration {
        let whole = self.next.min(self.longest);
        self.next = whole.saturating_mul(2);
        let half = u64::try_from(whole.as_nanos() / 2).unwrap_or(u64::MAX);
        let jitter = random.checked_rem(half.saturating_add(1)).unwrap_or(0);
        whole - Duration::from_nanos(jitter)
    }

    /// Resets the delay after a successful connection.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_and_restart_after_a_reset() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        let waits = [100, 200, 350, 350].map(Duration::from_millis);
        assert_eq!([0; 4].map(|random| backoff.wait(random)), waits);
        backoff.reset();
        assert_eq!(backoff.wait(0), waits[0]);
    }

    #[test]
    fn jitter_stays_in_the_upper_half() {
        for random in [1, 49_999_999, 50_000_000, 50_000_001, u64::MAX] {
            let wait = Backoff::new(Duration::from_millis(100), Duration::MAX).wait(random);
            assert!((Duration::from_millis(50)..=Duration::from_millis(100)).contains(&wait), "{random}: {wait:?}");
        }
        assert_eq!(Backoff::new(Duration::ZERO, Duration::ZERO).wait(7), Duration::ZERO);
        assert!(Backoff::new(Duration::MAX, Duration::MAX).wait(u64::MAX) > Duration::from_secs(1));
    }
}
