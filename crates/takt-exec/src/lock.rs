//! How often jobs wait for the locks of participants that other threads call into.

/// How often a job of an executor waits for the lock of each of its participants at most, if a call of another thread holds it each time: from
/// the moment at which the job is due to its end, less the waits of the job that had begun before.
///
/// `priorities` are those that jobs of the executor may have. The only participant of an executor is entered before a job and after a listener. Of
/// several each one is entered:
///
/// | for | times |
/// |---|---|
/// | a look that finds nothing: which priorities there are, twice; each priority, twice; what is normal, twice; what waits; the sleep | `2 * priorities + 6` |
/// | the job: which priorities there are, each of them, and after a listener | `priorities + 2` |
#[must_use]
pub fn lock_waits(participants: u64, priorities: u64) -> u64 {
    if participants <= 1 { 2 } else { priorities.saturating_mul(3).saturating_add(8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_participants_are_entered_for_each_priority() {
        assert_eq!([lock_waits(0, 9), lock_waits(1, 9), lock_waits(2, 1), lock_waits(5, 4)], [2, 2, 11, 20]);
        assert_eq!(lock_waits(2, u64::MAX), u64::MAX);
    }
}
