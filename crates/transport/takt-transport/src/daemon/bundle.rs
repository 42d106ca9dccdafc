//! Bundles: datagrams with messages of several applications to one destination (RTPS 2.5 §8.3.8.9).
//! INFO_SRC names the participant that the following submessages come from.
//!
//! A bundle holds the messages that are pending when it is sent. No timer delays a message.

use takt_wire::Locator;
use takt_wire::message::HEADER_LEN;

use super::message::{INFO_SRC_LEN, Kind, MARK_LEN, Mark, Summary, info_source};

/// Maximum number of destinations with an open bundle; a further one sends the oldest bundle.
const OPEN_MAX: usize = 256;

/// Destination of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) locator: Locator,
    pub(super) priority: i32,
    /// The destination is a daemon, which splits bundles.
    pub(super) is_daemon: bool,
}

#[derive(Debug)]
struct Open {
    target: Target,
    /// Header, mark, and submessages.
    bytes: Vec<u8>,
    messages: u32,
    ends_directed: bool,
    /// The bundle contains an announcement, so the mark must be sent.
    announces: bool,
}

/// Sends one datagram that consists of these pieces and carries this number of messages.
pub(super) type Send<'a> = dyn FnMut(&Target, &[&[u8]], u32) + 'a;

/// Open bundles of a domain.
#[derive(Debug, Default)]
pub(super) struct Bundler {
    open: Vec<Open>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl Open {
    /// Reports whether one more message can follow without a change of meaning.
    ///
    /// INTEROP(Fast DDS 2.9.1): INFO_DST of an unknown prefix does not undo an earlier INFO_DST, so
    /// an undirected message never follows a directed one. INFO_SRC does not undo INFO_TS; samples
    /// of Takt have one each.
    fn takes(&self, summary: &Summary, len: usize, limit: usize) -> bool {
        let has_room = self.bytes.len() + INFO_SRC_LEN + len - HEADER_LEN <= limit;
        has_room && (self.target.is_daemon || !self.ends_directed || !summary.begins_undirected)
    }

    fn send(&self, send: &mut Send<'_>) {
        match self.messages {
            // Sent unchanged, as the application wrote it.
            1 if !self.announces => {
                send(&self.target, &[&self.bytes[..HEADER_LEN], &self.bytes[HEADER_LEN + MARK_LEN..]], 1)
            }
            more => send(&self.target, &[&self.bytes], more),
        }
    }
}

impl Bundler {
    /// Adds a message for a target, to be sent by the next [`flush`](Self::flush) or earlier.
    /// `limit` is the maximum length of a bundle, in octets.
    pub(super) fn add(
        &mut self,
        target: Target,
        message: &[u8],
        summary: &Summary,
        (mark, limit): (Mark, usize),
        send: &mut Send<'_>,
    ) {
        let at = self.open.iter().position(|open| open.target == target);
        let fits_alone = message.len() + MARK_LEN <= limit && summary.can_be_bundled;
        if let Some(at) = at {
            if fits_alone && self.open[at].takes(summary, message.len(), limit) {
                let Open { bytes, messages, ends_directed, .. } = &mut self.open[at];
                let Some((header, rest)) = message.split_first_chunk::<HEADER_LEN>() else { return };
                bytes.extend_from_slice(&info_source(header));
                bytes.extend_from_slice(rest);
                (*messages, *ends_directed) = (*messages + 1, summary.ends_directed);
                return;
            }
            self.close(at, send);
        }
        if !fits_alone {
            return send(&target, &[message], 1);
        }
        if self.open.len() == OPEN_MAX {
            self.close(0, send);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(&message[..HEADER_LEN]);
        bytes.extend_from_slice(&Mark { is_bundle: true, ..mark }.to_bytes());
        bytes.extend_from_slice(&message[HEADER_LEN..]);
        let announces = matches!(summary.kind, Kind::Announcement(_));
        self.open.push(Open { target, bytes, messages: 1, ends_directed: summary.ends_directed, announces });
    }

    fn close(&mut self, at: usize, send: &mut Send<'_>) {
        let mut open = self.open.remove(at);
        open.send(send);
        open.bytes.clear();
        self.spare.push(open.bytes);
    }

    /// Sends all open bundles.
    pub(super) fn flush(&mut self, send: &mut Send<'_>) {
        for mut open in self.open.drain(..) {
            open.send(send);
            open.bytes.clear();
            self.spare.push(open.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Parts, header_of};
    use super::*;
    use std::net::Ipv4Addr;
    use takt_wire::GuidPrefix;
    use takt_wire::builder::MessageBuilder;
    use takt_wire::message::MessageView;

    const MARK: Mark = Mark { is_bundle: false, metatraffic_port: 7410, user_port: 7411 };

    fn message(from: u8, to: Option<u8>, len: u16) -> Vec<u8> {
        let mut frame = [0; 2048];
        let mut builder = MessageBuilder::new(&mut frame, &header_of(GuidPrefix([from; 12]))).expect("room");
        if let Some(to) = to {
            builder.info_destination(GuidPrefix([to; 12])).expect("room");
        }
        builder.pad(len).expect("room");
        let len = builder.len();
        frame[..len].to_vec()
    }

    fn sent(is_daemon: bool, limit: usize, messages: &[Vec<u8>]) -> Vec<(Vec<u8>, u32)> {
        let mut all = Vec::new();
        let mut bundler = Bundler::default();
        let mut send = |_: &Target, pieces: &[&[u8]], count| all.push((pieces.concat(), count));
        let target = Target { locator: Locator::udp_v4(Ipv4Addr::LOCALHOST, 7411), priority: 0, is_daemon };
        for message in messages {
            let summary = Summary::of(&MessageView::parse(message).expect("a header"), message).expect("sound");
            bundler.add(target, message, &summary, (MARK, limit), &mut send);
        }
        bundler.flush(&mut send);
        bundler.flush(&mut send);
        all
    }

    #[test]
    fn messages_of_several_senders_share_a_datagram() {
        let messages = [message(1, Some(9), 8), message(2, None, 16), message(1, Some(8), 8)];
        let all = sent(true, 1400, &messages);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].1, 3);
        let parts = Parts::of(&all[0].0).map(|part| part.map(|(header, rest)| [&header[..], rest].concat()));
        assert!(parts.eq(messages.map(Ok)));
    }

    #[test]
    fn single_message_is_sent_unchanged() {
        let only = message(1, None, 8);
        assert_eq!(sent(true, 1400, std::slice::from_ref(&only)), [(only, 1)]);
    }

    #[test]
    fn undirected_message_does_not_follow_a_directed_one_to_other_vendors() {
        let messages = [message(1, None, 8), message(2, Some(9), 8), message(3, None, 8)];
        assert_eq!(sent(false, 1400, &messages).iter().map(|(_, count)| *count).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn bundle_ends_at_its_limit_and_long_message_keeps_its_order() {
        let messages = [message(1, None, 400), message(2, None, 400), message(3, None, 1500), message(1, None, 8)];
        let all = sent(true, 500, &messages);
        assert_eq!(all.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 1, 1, 1]);
        assert!(all.iter().map(|(bytes, _)| bytes).eq(&messages));
    }
}
