//! Pairs that are matched and call for attention: other implementations may refuse them, or the writer does not send what it offers.

use super::matching::{reader_of, refusal_of, write_pair, writer_of};
use crate::participant::Participant;
use crate::reader::{Reader, WriterProxy};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use takt_wire::Guid;

/// A match that another implementation, or another reading of the specification, may refuse, or that does not do all that was
/// agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// Our endpoint.
    pub local: Guid,
    /// The other one.
    pub remote: Guid,
    /// The participant of the other one, as in [`Refusal`].
    pub remote_participant: String,
    /// The topic of both.
    pub topic_name: String,
    /// What is to be heeded.
    pub kind: CautionKind,
    /// The members that differ, and how, or what the other side does not send.
    pub what: String,
}

/// What a [`Caution`] is about.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CautionKind {
    /// The types fit by the rules of this side; others may refuse the pair.
    Types,
    /// The writer offers PRESENTATION with the scope GROUP and does not send what that takes (RTPS 2.5 §8.7.5).
    Presentation,
}

impl Caution {
    /// Whichever of both is the writer.
    #[must_use]
    pub fn writer(&self) -> Guid {
        writer_of(self.local, self.remote)
    }

    /// Whichever of both is the reader.
    #[must_use]
    pub fn reader(&self) -> Guid {
        reader_of(self.local, self.remote)
    }
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_pair(f, &self.topic_name, self.local, self.remote, &self.remote_participant)?;
        match self.kind {
            CautionKind::Types => write!(f, "match, but others may refuse the pair: {}", self.what),
            CautionKind::Presentation => write!(f, "match, but {}", self.what),
        }
    }
}

impl Participant {
    /// The pairs that are matched here and may be refused by others, in no order, then those whose writers do not send what
    /// PRESENTATION takes. Looks at each pair of which the types were compared, and at each writer that a reader is matched with.
    pub fn cautions(&self) -> impl Iterator<Item = Caution> {
        self.type_cautions().chain(self.presentation_cautions())
    }

    fn presentation_cautions(&self) -> impl Iterator<Item = Caution> {
        let lacking = |reader: &Reader| {
            let lack = |proxy: &WriterProxy| Some((proxy.guid, proxy.group_lack?));
            let (local, topic_name) = (reader.data.guid, reader.data.topic_name.clone());
            let remotes: Vec<_> = reader.proxies.iter().filter_map(|(_, proxy)| lack(proxy)).collect();
            remotes.into_iter().map(move |(remote, lack)| (local, remote, lack, topic_name.clone()))
        };
        self.readers.iter().flat_map(move |(_, reader)| lacking(reader)).map(|(local, remote, lack, topic_name)| {
            Caution {
                local,
                remote,
                remote_participant: self.label_of(remote.prefix),
                topic_name,
                kind: CautionKind::Presentation,
                what: lack.text().into(),
            }
        })
    }

    fn type_cautions(&self) -> impl Iterator<Item = Caution> {
        self.type_checks.cautions().filter_map(|(check, what)| {
            let publication = self.publication(check.writer)?;
            let subscription = self.subscription(check.reader)?;
            let is_own = |guid: Guid| guid.prefix == self.header.prefix;
            let matches = |index: u32| self.writers.get(index)?.proxy_index(check.reader);
            let is_matched = match is_own(check.writer) {
                true => self.writer_ids.get(&check.writer.entity_id).and_then(|&index| matches(index)).is_some(),
                false => self.sources.contains_key(&check.writer) && refusal_of(publication, subscription).is_none(),
            };
            let (local, remote) =
                if is_own(check.writer) { (check.writer, check.reader) } else { (check.reader, check.writer) };
            is_matched.then(|| Caution {
                local,
                remote,
                remote_participant: self.label_of(remote.prefix),
                topic_name: publication.topic_name.clone(),
                kind: CautionKind::Types,
                what: what.into(),
            })
        })
    }
}
