//! Fast path of sending: consecutive plain samples to all readers in one datagram.
//!
//! The result equals that of [`super::transmit`] for each sample, without its case distinctions.
//! The fast path stops before any other change, and at the limits of the datagram and the window,
//! which `transmit` handles.

use super::transmit::Message;
use super::{Change, Writer};
use crate::cache::ChangeKind;
use crate::config::REORDER_WINDOW;
use crate::context::Context;
use crate::presentation::SetPosition;
use takt_wire::builder::DataEmit;
use takt_wire::message::Payload;
use takt_wire::{EntityId, SequenceNumber};

impl Writer {
    /// Adds plain samples below `full_at` to a datagram.
    pub(super) fn emit_plain(&mut self, message: &mut Message<'_>, full_at: SequenceNumber, ctx: &mut Context) {
        if self.keyed
            || self.relays
            || self.security.addressee.is_some()
            || self.window.stalled
            || self.has_pending_directed
            || self.window.cursor.fragment != 1
            || !self.filters.is_empty()
        {
            return;
        }
        let window_bytes = ctx.limits.send_window_bytes;
        let (mut next, mut in_flight_bytes) = (self.window.cursor.sn, self.window.in_flight_bytes);
        for change in self.history.from(next).take_while(|change| change.sn < full_at && is_plain(change)) {
            let (payload, len) = (change.payload, change.flight_len as usize);
            let is_full = next.0 - self.window.start.0 > REORDER_WINDOW
                || (in_flight_bytes > 0 && in_flight_bytes + len > window_bytes);
            let is_large = payload.len() > usize::from(change.fragment_size.min(self.route.fragment_size));
            if (is_full && self.route.reliable) || is_large || self.history.pool.loan(payload).is_some() {
                break;
            }
            let data = DataEmit {
                reader: EntityId::UNKNOWN,
                writer: self.entity_id,
                sn: change.sn,
                inline_qos: None,
                payload: Payload::Data(self.history.pool.bytes(payload)),
            };
            if message.stamp(change.source_timestamp).and_then(|()| message.builder.data(&data)).is_err() {
                break;
            }
            next = next.next();
            in_flight_bytes += len;
        }
        let count = next.0 - self.window.cursor.sn.0;
        self.heartbeat.sent(count as u32, in_flight_bytes - self.window.in_flight_bytes);
        (self.window.cursor.sn, self.window.in_flight_bytes) = (next, in_flight_bytes);
        ctx.counters.data_sent += count.cast_unsigned();
        ctx.work.steps(count as usize);
    }
}

/// Reports whether a change of a topic without keys needs no inline QoS.
fn is_plain(change: &Change) -> bool {
    change.kind == ChangeKind::Alive
        && change.directed.readers().is_empty()
        && change.position == SetPosition::default()
        && change.payload.len() > 0
}
