//! Log of refusals and decisions with their reasons, for the topic of the builtin logging plugin
//! (DDS-SEC 1.1 §9.6).

use std::collections::VecDeque;

use takt_core::security::{SecurityLogEntry, SecuritySeverity};
use takt_wire::Timestamp;

/// Maximum number of entries that wait to be taken.
pub const LOG_MAX: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<SecurityLogEntry>,
}

impl Log {
    /// Adds an entry. It replaces the oldest one if the log is full.
    pub(super) fn add(&mut self, at: Timestamp, severity: SecuritySeverity, text: String) {
        if self.entries.len() == LOG_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(SecurityLogEntry { at, severity, text });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes the oldest entry.
    pub(super) fn pop(&mut self) -> Option<SecurityLogEntry> {
        self.entries.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_log_drops_its_oldest_entry() {
        let mut log = Log::default();
        for index in 0..=LOG_MAX {
            log.add(Timestamp::ZERO, SecuritySeverity::Notice, index.to_string());
        }
        assert_eq!((log.entries.len(), log.pop().map(|entry| entry.text)), (LOG_MAX, Some("1".to_owned())));
    }
}
