//! A controller among several of the same switches: roles of OpenFlow 1.3.
//!
//! A leader is master of its switches, a standby is slave: it holds its connections, and neither reads nor changes anything. A controller that
//! is alone asks for no role. The generation of the leader goes with its requests, so that a switch refuses those of a leader before.

use takt_openflow::channel::Instant;
use takt_openflow::switch::ControllerRole;

use super::session::Session;
use super::{ConnectionId, Controller};
use crate::store::Records;

/// Whether a controller is the only one of its switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// It is.
    #[default]
    Alone,
    /// Another one is leader, or there is none.
    Standby {
        /// That of the last leader that is known.
        generation: u64,
    },
    /// It writes, and no other one does.
    Leader {
        /// Its own.
        generation: u64,
    },
}

impl Controller {
    /// Whether this controller is the only one of its switches.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Becomes standby, before the first connection. A leader that is replaced makes way for a new [`Controller`].
    pub fn stand_by(&mut self) {
        self.standing = Standing::Standby { generation: 0 };
    }

    /// Another controller is leader.
    pub fn follow(&mut self, generation: u64) {
        if let Standing::Standby { generation: known } = &mut self.standing {
            *known = generation;
        }
    }

    /// Becomes leader, with the records of the leader before: takes over the switches that are connected.
    pub fn lead(&mut self, now: Instant, generation: u64, records: &Records) {
        self.now = now;
        self.standing = Standing::Leader { generation };
        self.restore(now, records);
        let connected = self.sessions.iter().filter(|(_, session)| session.dpid.is_some());
        let connected: Vec<ConnectionId> = connected.map(|(id, _)| *id).collect();
        connected.into_iter().for_each(|id| self.begin(now, id));
    }

    /// Asks a switch for the role, and begins to read its state if this controller has it without asking.
    pub(super) fn begin(&mut self, now: Instant, id: ConnectionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let begun = match self.standing {
            Standing::Alone => session.read(now),
            Standing::Standby { generation } => session.ask_for(now, ControllerRole::Slave, generation),
            Standing::Leader { generation } => session.ask_for(now, ControllerRole::Master, generation),
        };
        if let Err(error) = begun {
            self.end(id, error.to_string());
        }
    }

    /// A switch has answered. A standby that is refused stays as it is, and does nothing all the same.
    pub(super) fn follow_role(&mut self, now: Instant, id: ConnectionId, answer: Result<(), String>) {
        let Standing::Leader { .. } = self.standing else { return };
        let begun = match answer {
            Ok(()) => self.sessions.get_mut(&id).map(|session: &mut Session| session.read(now)),
            Err(why) => return self.end(id, format!("the switch does not take this controller as its master: {why}")),
        };
        if let Some(Err(error)) = begun {
            self.end(id, error.to_string());
        }
    }
}
