//! Partner of a recorded participant: endpoints of a process that match those of the recording, and
//! the checks of received changes.

use takt_core::{
    ChangeKind, NewChange, Participant, ReadCursor, ReaderHandle, ReaderSpec, SampleRef, Selector, WriterFlows,
    WriterHandle, WriterSpec,
};
use takt_wire::qos::{
    DataReaderQos, DataWriterQos, Durability, History, PublisherQos, Reliability, ReliabilityKind, SubscriberQos,
    TopicData,
};

use super::{Moment, Process};
use crate::check::{Checker, Rule};
use crate::recorded::{PARTNER_READER, PARTNER_WRITER};
use crate::recording::{ANSWERED_TOPIC, FirstMember, RecordedChange, Recording, SENT_TOPIC};

/// Type name of the recorded topics, as the peers announce it.
const TYPE_NAME: &str = "interop::KeyFinal";

/// Number of samples that a partner writes, as in the recording, since the recorded acknowledgments
/// refer to them.
const ANSWERS: u32 = 10;

/// Reader and writer of a process that match the recorded participant.
#[derive(Clone, Copy, Debug)]
pub struct Partner {
    reader: ReaderHandle,
    writer: WriterHandle,
    /// Number of changes of the recording that have been taken, from its first one on.
    taken: usize,
    has_answered: bool,
}

impl Partner {
    /// Creates the endpoints in a participant without endpoints, so that they have the ids that the
    /// recorded datagrams name.
    pub(super) fn create(core: &mut Participant, clock: Moment<'_>) -> Self {
        let reliability = Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO };
        let (durability, history) = (Durability::TransientLocal, History::KeepAll);
        let reader = core.create_reader(
            clock.local(),
            ReaderSpec {
                topic_name: SENT_TOPIC.into(),
                type_name: TYPE_NAME.into(),
                key: Some(Box::new(FirstMember)),
                qos: DataReaderQos { reliability, durability, history, ..DataReaderQos::default() },
                subscriber: SubscriberQos::default(),
                group: None,
                topic_data: TopicData::default(),
                max_serialized_len: None,
                type_information: None,
                unicast: Vec::new(),
                content_filter: None,
            },
        );
        let reader = reader.expect("there is room");
        let writer = core.create_writer(
            clock.local(),
            WriterSpec {
                topic_name: ANSWERED_TOPIC.into(),
                type_name: TYPE_NAME.into(),
                keyed: true,
                qos: DataWriterQos { reliability, durability, history, ..DataWriterQos::default() },
                publisher: PublisherQos::default(),
                group: None,
                topic_data: TopicData::default(),
                max_serialized_len: None,
                flows: WriterFlows::default(),
                type_information: None,
                unicast: Vec::new(),
                filters: None,
            },
        );
        let writer = writer.expect("there is room");
        let ids = (core.reader_guid(reader), core.writer_guid(writer));
        let ids = (ids.0.expect("it lives").entity_id, ids.1.expect("it lives").entity_id);
        assert_eq!(ids, (PARTNER_READER, PARTNER_WRITER), "they are the first endpoints");
        Self { reader, writer, taken: 0, has_answered: false }
    }
}

impl Process {
    /// Takes the changes of the recorded participant, and writes the answers once its reader is
    /// matched.
    pub fn exchange(&mut self, recording: &Recording, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(partner)) = (&mut self.core, &mut self.partner) else { return };
        let mut cursor = ReadCursor::default();
        while let Ok(Some(found)) = core.read_next(clock.local(), partner.reader, Selector::TAKE, &mut cursor) {
            checker.taken += 1;
            match check_next_change(recording, partner.taken, &found) {
                Ok(taken) => partner.taken = taken,
                Err((rule, text)) => {
                    checker.report(
                        clock.now,
                        rule,
                        format!("process {} took of a recorded writer: {text}", self.index),
                    );
                }
            }
        }
        if let Err(error) = core.end_read(clock.local(), partner.reader) {
            checker.report(clock.now, Rule::CallFailed, format!("process {} cannot end a take: {error}", self.index));
        }
        let is_matched = core.matched_subscriptions(partner.writer).is_ok_and(|readers| !readers.is_empty());
        if is_matched && !std::mem::replace(&mut partner.has_answered, true) {
            for key in 0..ANSWERS {
                let payload = [[0, 1, 0, 0], key.to_le_bytes()].concat();
                let change = NewChange {
                    kind: ChangeKind::Alive,
                    key_hash: key_hash(key),
                    source_timestamp: None,
                    destinations: &[],
                    payload_len: payload.len(),
                };
                let written = core.write(clock.local(), partner.writer, &change, |slot| {
                    slot.copy_from_slice(&payload);
                    Some(payload.len())
                });
                if let Err(error) = written {
                    let text = format!("process {} cannot answer: {error:?}", self.index);
                    checker.report(clock.now, Rule::CallFailed, text);
                }
            }
        }
    }

    /// Checks after the session of the recorded participant that both pairs are matched, all its
    /// changes have been taken, and it has acknowledged all samples written for it.
    pub fn check_session(&mut self, recording: &Recording, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(partner)) = (&mut self.core, self.partner) else { return };
        let writers = core.matched_publications(partner.reader).unwrap_or_default();
        let readers = core.matched_subscriptions(partner.writer).unwrap_or_default();
        if writers != [recording.writer] || readers != [recording.reader] {
            let text =
                format!("process {} has matched {writers:?} and {readers:?} of the recorded participant", self.index);
            checker.report(clock.now, Rule::Matching, text);
        }
        if let Some(missing) = recording.changes.get(partner.taken) {
            let text = format!("process {} never got change {} of the recorded writer", self.index, missing.sn);
            checker.report(clock.now, Rule::Missing, text);
        }
        if core.is_acknowledged(partner.writer, None) != Ok(true) {
            let text = format!("process {} does not know that the recorded reader has all", self.index);
            checker.report(clock.now, Rule::Missing, text);
        }
        let lost = core.sample_lost_status(partner.reader).map_or(0, |status| status.total_count);
        let rejected = core.sample_rejected_status(partner.reader).map_or(0, |status| status.total_count);
        if (lost, rejected) != (0, 0) {
            let text = format!("process {}: {lost} recorded samples lost, {rejected} rejected", self.index);
            checker.report(clock.now, Rule::Status, text);
        }
    }

    /// Checks the state after the recorded participant has ended.
    pub fn check_end(&mut self, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(partner)) = (&mut self.core, self.partner) else { return };
        let writers = core.matched_publications(partner.reader).unwrap_or_default();
        let readers = core.matched_subscriptions(partner.writer).unwrap_or_default();
        if !writers.is_empty() || !readers.is_empty() {
            let text = format!("process {} believes in {writers:?} and {readers:?}, which said farewell", self.index);
            checker.report(clock.now, Rule::ParticipantEnd, text);
        }
    }
}

/// Checks that a taken change is the next one after the first `taken` changes of the recording.
/// Returns the new number of taken changes.
fn check_next_change(recording: &Recording, taken: usize, found: &SampleRef<'_>) -> Result<usize, (Rule, String)> {
    let info = &found.info;
    if info.sequence_number.0 == 0 && !info.valid_data {
        // The writer has ended.
        return Ok(taken);
    }
    if info.publication != recording.writer {
        return Err((Rule::UnknownSample, format!("something of {:?}", info.publication)));
    }
    let sn = info.sequence_number.0;
    let Some(next) = recording.changes.get(taken).filter(|next| next.sn == sn) else {
        let known = recording.changes.iter().position(|change| change.sn == sn);
        let rule = match known {
            None => Rule::UnknownSample,
            Some(at) if at < taken => Rule::Duplicate,
            Some(_) => Rule::Gap,
        };
        // The deletion of the endpoints may end their instances.
        let is_end = known.is_none() && !info.valid_data && taken == recording.changes.len();
        return if is_end { Ok(taken) } else { Err((rule, format!("change {sn} after {taken}"))) };
    };
    if is_of(next, found) { Ok(taken + 1) } else { Err((Rule::UnknownSample, format!("{found:?} for {next:?}"))) }
}

/// Reports whether a taken change equals the recorded one.
fn is_of(change: &RecordedChange, found: &SampleRef<'_>) -> bool {
    let info = &found.info;
    let is_alive = change.kind == ChangeKind::Alive;
    found.kind == change.kind
        && info.valid_data == is_alive
        && (!is_alive || found.payload == change.payload)
        && info.instance_handle.0 == change.key_hash
        && info.source_timestamp == change.source_timestamp
}

/// Returns the key hash of an answer.
fn key_hash(key: u32) -> takt_core::KeyHash {
    let mut hash = [0; 16];
    hash[..4].copy_from_slice(&key.to_be_bytes());
    hash
}
