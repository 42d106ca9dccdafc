//! Warnings about matched pairs: other implementations may refuse them, or the writer does not send
//! all that it offers.

use super::matching::{reader_of, refusal_of, write_pair, writer_of};
use crate::context::Context;
use crate::discovery::Discovery;
use crate::endpoints::Endpoints;
use crate::reader::{Reader, WriterProxy};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use takt_wire::Guid;

/// Warning about a match that another implementation may refuse, or that does not provide
/// everything that was agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// Local endpoint.
    pub local: Guid,
    /// Remote endpoint.
    pub remote: Guid,
    /// Participant of the remote endpoint, as in [`Refusal`](crate::Refusal).
    pub remote_participant: String,
    /// Topic of both endpoints.
    pub topic_name: String,
    /// Kind of the warning.
    pub kind: CautionKind,
    /// Members that differ, and how, or the information that the remote side does not send.
    pub what: String,
}

/// Kind of a [`Caution`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CautionKind {
    /// The types are compatible by the rules of this implementation; others may refuse the pair.
    Types,
    /// The writer offers PRESENTATION with the scope GROUP and does not send the required
    /// information (RTPS 2.5 §8.7.5).
    Presentation,
}

impl Caution {
    /// Returns the writer of the pair.
    #[must_use]
    pub fn writer(&self) -> Guid {
        writer_of(self.local, self.remote)
    }

    /// Returns the reader of the pair.
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

impl Discovery {
    pub(crate) fn presentation_cautions(&self, ctx: &Context, endpoints: &Endpoints) -> impl Iterator<Item = Caution> {
        let missing_of = |reader: &Reader| {
            let missing = |proxy: &WriterProxy| Some((proxy.guid, proxy.missing_group_info?));
            let (local, topic_name) = (reader.data.guid, reader.data.topic_name.clone());
            let remotes: Vec<_> = reader.proxies.iter().filter_map(|(_, proxy)| missing(proxy)).collect();
            remotes.into_iter().map(move |(remote, missing)| (local, remote, missing, topic_name.clone()))
        };
        endpoints.readers.iter().flat_map(move |(_, reader)| missing_of(reader)).map(
            |(local, remote, missing, topic_name)| Caution {
                local,
                remote,
                remote_participant: self.label_of(ctx, remote.prefix),
                topic_name,
                kind: CautionKind::Presentation,
                what: missing.text().into(),
            },
        )
    }

    pub(crate) fn type_cautions(&self, ctx: &Context, endpoints: &Endpoints) -> impl Iterator<Item = Caution> {
        self.type_checks.cautions().filter_map(|(check, what)| {
            let publication = self.publication(ctx, endpoints, check.writer)?;
            let subscription = self.subscription(ctx, endpoints, check.reader)?;
            let is_own = |guid: Guid| guid.prefix == ctx.header.prefix;
            let matches = |index: u32| endpoints.writers.get(index)?.proxy_index(check.reader);
            let is_matched = match is_own(check.writer) {
                true => endpoints.writer_ids.get(&check.writer.entity_id).and_then(|&index| matches(index)).is_some(),
                false => {
                    endpoints.sources.contains_key(&check.writer) && refusal_of(publication, subscription).is_none()
                }
            };
            let (local, remote) =
                if is_own(check.writer) { (check.writer, check.reader) } else { (check.reader, check.writer) };
            is_matched.then(|| Caution {
                local,
                remote,
                remote_participant: self.label_of(ctx, remote.prefix),
                topic_name: publication.topic_name.clone(),
                kind: CautionKind::Types,
                what: what.into(),
            })
        })
    }
}
