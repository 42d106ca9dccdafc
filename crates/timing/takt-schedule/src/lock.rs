//! Upper bound on lock waits of a job for participants that other threads call.

/// Returns the maximum number of times that a job of an executor waits for the lock of each of its
/// participants, if a call of another thread holds the lock each time.
///
/// The bound covers the time from the release of the job to its end, without the waits of the job
/// that had started before.
///
/// `priorities` is the number of priorities that jobs of the executor may have. An executor with a
/// single participant locks it before a job and after a listener. An executor with several
/// participants locks each of them as follows:
///
/// | step | locks |
/// |---|---|
/// | poll without a ready job: priorities in use, twice; each priority, twice; normal priority, twice; ready jobs; sleep | `2 * priorities + 6` |
/// | job: priorities in use, each of them, and after a listener | `priorities + 2` |
#[must_use]
pub fn lock_waits(participants: u64, priorities: u64) -> u64 {
    if participants <= 1 { 2 } else { priorities.saturating_mul(3).saturating_add(8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_participants_are_locked_for_each_priority() {
        assert_eq!([lock_waits(0, 9), lock_waits(1, 9), lock_waits(2, 1), lock_waits(5, 4)], [2, 2, 11, 20]);
        assert_eq!(lock_waits(2, u64::MAX), u64::MAX);
    }
}
