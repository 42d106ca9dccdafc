//! Role of a controller in a cluster, with the controller roles of OpenFlow 1.3.
//!
//! A leader is master of its switches. A standby is slave: it keeps its connections, and neither
//! reads nor changes anything. A controller without a cluster requests no role. Role requests
//! contain the generation of the leader, so that a switch refuses those of an earlier leader.

use takt_openflow::channel::Instant;
use takt_openflow::switch::ControllerRole;

use super::session::Session;
use super::{ConnectionId, Controller};
use crate::store::Records;

/// Role of a controller among the controllers of its switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClusterRole {
    /// The only controller.
    #[default]
    Single,
    /// Another controller is leader, or there is none.
    Standby {
        /// Generation of the last known leader.
        generation: u64,
    },
    /// The only controller that writes.
    Leader {
        /// Its own generation.
        generation: u64,
    },
}

impl Controller {
    /// Returns the role of this controller.
    pub fn cluster_role(&self) -> ClusterRole {
        self.cluster_role
    }

    /// Becomes standby; to be called before the first connection. A replaced leader is replaced by
    /// a new [`Controller`].
    pub fn become_standby(&mut self) {
        self.cluster_role = ClusterRole::Standby { generation: 0 };
    }

    /// Records that another controller is leader.
    pub fn follow_leader(&mut self, generation: u64) {
        if let ClusterRole::Standby { generation: known } = &mut self.cluster_role {
            *known = generation;
        }
    }

    /// Becomes leader with the records of the previous leader, and takes over the connected
    /// switches.
    pub fn become_leader(&mut self, now: Instant, generation: u64, records: &Records) {
        self.now = now;
        self.cluster_role = ClusterRole::Leader { generation };
        self.restore(now, records);
        let connected = self.sessions.iter().filter(|(_, session)| session.dpid.is_some());
        let connected: Vec<ConnectionId> = connected.map(|(id, _)| *id).collect();
        connected.into_iter().for_each(|id| self.begin(now, id));
    }

    /// Requests the role from a switch, or starts to read its state if no role is needed.
    pub(super) fn begin(&mut self, now: Instant, id: ConnectionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let begun = match self.cluster_role {
            ClusterRole::Single => session.read(now),
            ClusterRole::Standby { generation } => session.request(now, ControllerRole::Slave, generation),
            ClusterRole::Leader { generation } => session.request(now, ControllerRole::Master, generation),
        };
        if let Err(error) = begun {
            self.end(id, error.to_string());
        }
    }

    /// Handles the reply to a role request. A standby that is refused a role remains passive all
    /// the same.
    pub(super) fn apply_role(&mut self, now: Instant, id: ConnectionId, result: Result<(), String>) {
        let ClusterRole::Leader { .. } = self.cluster_role else { return };
        let begun = match result {
            Ok(()) => self.sessions.get_mut(&id).map(|session: &mut Session| session.read(now)),
            Err(why) => {
                return self.end(id, format!("the switch does not accept this controller as its master: {why}"));
            }
        };
        if let Some(Err(error)) = begun {
            self.end(id, error.to_string());
        }
    }
}
