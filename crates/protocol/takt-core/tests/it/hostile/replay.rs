//! Replay of the committed corpora of `lab/fuzz/`: each datagram is dropped or accepted as
//! specified, is counted, costs little, and disturbs no other participant.
//!
//! `TAKT_WRITE_CORPUS=1` regenerates the corpora: the catalogue's datagrams, and those of a real
//! exchange.

use crate::catalogue::{Case, PEER, READER, Trace, WRITER, cases, trace_of};
use crate::network::*;
use crate::puppet::*;
use crate::{announcements, session};
use std::fs;
use std::path::PathBuf;
use takt_core::*;
use takt_wire::EntityId;
use takt_wire::message::{MessageView, Payload, Submessage};

fn corpus(target: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "lab", "fuzz", "corpus", target].iter().collect()
}

fn files(target: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(corpus(target)).expect("the corpus is in the repository");
    let paths = entries.map(|entry| entry.expect("the corpus can be read").path());
    let mut files: Vec<_> = paths
        .map(|path| {
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            (name, fs::read(&path).expect("the corpus can be read"))
        })
        .collect();
    files.sort();
    files
}

/// Participant with a reader and a writer, matched with a peer and with an honest third
/// participant.
struct Stage {
    node: Participant,
    now: Instant,
    reader: ReaderHandle,
    honest: Puppet,
}

impl Stage {
    fn new() -> Self {
        let now = Instant(1_000_000_000);
        let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
        let reader = node.create_reader(now, reader_spec("T", false, keep_all_reader())).expect("the reader is valid");
        node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("the writer is valid");
        let (mut peer, mut honest) = (Puppet::new(PEER), Puppet::new(100));
        for puppet in [&mut peer, &mut honest] {
            puppet.join(&mut node, now);
            puppet.publish(&mut node, now, &puppet.publication(1, true));
            puppet.subscribe(&mut node, now, &puppet.subscription(1, true));
            for writer in [WRITER, EntityId::P2P_MESSAGE_WRITER] {
                let heartbeat = puppet.heartbeat(writer, 1, 0);
                puppet.say(&mut node, now, |message| message.heartbeat(&heartbeat).expect("it fits"));
            }
        }
        outgoing(&mut node, now);
        while node.poll_event().is_some() {}
        Self { node, now, reader, honest }
    }

    fn receive(&mut self, datagram: &[u8]) -> Trace {
        let before = *self.node.counters();
        let received = Received { source: address(PEER), multicast: true };
        self.node.handle_datagram(self.now, received, datagram);
        trace_of(&before, self.node.counters())
    }

    /// Checks that the honest participant's samples are still delivered and acknowledged.
    fn assert_honest_continues(&mut self, sn: i64, after: &str) {
        let bytes = payload(sn as u32, 40);
        let heartbeat = self.honest.heartbeat(WRITER, 1, sn);
        self.honest.say(&mut self.node, self.now, |message| {
            message.data(&data(WRITER, sn, Payload::Data(&bytes))).expect("it fits");
            message.heartbeat(&heartbeat).expect("it fits");
        });
        let guid = self.honest.guid(WRITER);
        let mut cursor = ReadCursor::default();
        let mut received = 0;
        loop {
            let sample = self.node.read_next(self.now, self.reader, Selector::TAKE, &mut cursor);
            let Some(sample) = sample.expect("the reader exists") else { break };
            if sample.info.publication == guid {
                assert_eq!((sample.info.sequence_number.0, sample.payload), (sn, &bytes[..]));
                received += 1;
            }
        }
        assert_eq!(received, 1, "after {after}");
        let sent = outgoing(&mut self.node, self.now);
        let to_honest: Vec<_> = sent.into_iter().filter(|(to, _)| to.contains(&self.honest.address)).collect();
        let acked = |submessage: &Submessage<'_>| matches!(submessage, Submessage::AckNack(nack) if nack.reader_sn_state.base().0 == sn + 1);
        assert_eq!(count(&to_honest, acked), 1, "after {after}");
    }
}

#[test]
fn catalogue_datagrams_are_counted_with_a_bounded_answer() {
    let mut wrong = Vec::new();
    for Case { name, trace, datagram } in cases() {
        let mut stage = Stage::new();
        let found = stage.receive(&datagram);
        if found != trace {
            wrong.push(format!("{name}: {found:?} instead of {trace:?}"));
        }
        let sent = outgoing(&mut stage.node, stage.now);
        let acknacks = |submessage: &Submessage<'_>| matches!(submessage, Submessage::AckNack(nack) if nack.writer == WRITER && nack.reader == READER);
        assert!(count(&sent, acknacks) <= 1, "{name}: one datagram causes at most one ACKNACK per writer");
        stage.assert_honest_continues(1, name);
        assert_eq!(stage.receive(&datagram) == Trace::Message, trace == Trace::Message, "{name}, again");
        stage.assert_honest_continues(2, name);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn committed_datagrams_equal_the_catalogue() {
    if std::env::var_os("TAKT_WRITE_CORPUS").is_some() {
        write_corpora();
    }
    let committed = files("message");
    for Case { name, datagram, .. } in cases() {
        let file = committed.iter().find(|(file, _)| *file == name).unwrap_or_else(|| panic!("{name} is committed"));
        assert!(file.1 == datagram, "{name} is as committed");
    }
    assert!(committed.iter().filter(|(file, _)| file.starts_with("exchange-")).count() >= 20);
}

#[test]
fn committed_datagrams_do_not_disturb_others() {
    let mut stage = Stage::new();
    for (sn, (name, datagram)) in (1..).zip(files("message")) {
        let parses = MessageView::parse(&datagram).is_ok();
        assert_eq!(stage.receive(&datagram) == Trace::Message, !parses, "{name}");
        outgoing(&mut stage.node, stage.now);
        stage.assert_honest_continues(sn, &name);
        stage.now = Instant(stage.now.0 + 10_000_000);
        stage.node.handle_timeout(stage.now);
    }
}

#[test]
fn committed_scripts_do_no_harm() {
    let scripts = files("core");
    assert!(scripts.len() >= 10);
    scripts.iter().for_each(|(_, script)| session::play(script));
}

#[test]
fn committed_announcements_do_no_harm() {
    let scripts = files("discovery");
    assert!(scripts.len() >= announcements::examples().len());
    scripts.iter().for_each(|(_, script)| announcements::play(script));
}

#[test]
fn random_scripts_do_no_harm() {
    let mut dice = Dice(120);
    for _ in 0..300 {
        let len = dice.roll(600) as usize;
        let script: Vec<u8> = (0..len).map(|_| dice.roll(256) as u8).collect();
        session::play(&script);
    }
}

#[test]
fn committed_discovery_data_round_trip() {
    let payloads = files("parameters");
    assert!(payloads.len() >= 10);
    payloads.iter().for_each(|(_, bytes)| parameters::run(bytes));
    files("message").iter().for_each(|(_, bytes)| message::run(bytes));
}

/// Mutations of valid inputs by the fuzz targets are mostly well-formed, and always harmless.
#[test]
fn mutations_are_well_formed_and_do_no_harm() {
    let mut dice = structure::Rng(122);
    let (mut datagrams, mut usable) = (0, 0);
    let mut stage = Stage::new();
    for datagram in session::EXCHANGE.iter().flat_map(|datagram| std::iter::repeat_n(datagram, 20)) {
        let mut bytes = datagram.clone();
        assert!(structure::datagram(&mut bytes, &mut dice));
        let message = MessageView::parse(&bytes).expect("the header is as it was");
        datagrams += 1;
        usable += usize::from(message.submessages().all(|submessage| submessage.is_ok()));
        message::run(&bytes);
        stage.receive(&bytes);
    }
    assert!(usable * 2 > datagrams, "{usable} of {datagrams}");
    stage.assert_honest_continues(1, "mutated datagrams");
    let mut changed = 0;
    for (_, mut script) in files("discovery") {
        changed += usize::from(structure::script(&mut script, &mut dice));
        announcements::play(&script);
    }
    assert!(changed >= 10, "{changed}");
    for (_, mut payload) in files("parameters") {
        structure::list(&mut payload, &mut dice);
        parameters::run(&payload);
    }
}

#[path = "../../../../../../lab/fuzz/src/message.rs"]
mod message;
#[path = "../../../../../../lab/fuzz/src/parameters.rs"]
mod parameters;
#[allow(dead_code)]
#[path = "../../../../../../lab/fuzz/src/structure.rs"]
mod structure;

/// Returns the kinds of submessages of a datagram, as a name.
fn kinds(datagram: &[u8]) -> String {
    let message = MessageView::parse(datagram).expect("a datagram of a real exchange");
    let mut name = String::new();
    for submessage in message.submessages() {
        let kind = match submessage.expect("a datagram of a real exchange") {
            Submessage::Data(data) if data.writer.is_builtin() => "-discovery",
            Submessage::Data(data) if data.inline_qos.is_some() => "-keyed",
            Submessage::Data(_) => "-data",
            Submessage::DataFrag(_) => "-frag",
            Submessage::Heartbeat(_) => "-heartbeat",
            Submessage::AckNack(nack) if nack.reader_sn_state.is_empty() => "-ack",
            Submessage::AckNack(_) => "-nack",
            Submessage::NackFrag(_) => "-nackfrag",
            Submessage::Gap(_) => "-gap",
            Submessage::InfoDestination(_) => "-dst",
            _ => continue,
        };
        if name.len() < 40 && !name.ends_with(kind) {
            name.push_str(kind);
        }
    }
    name
}

fn write_corpora() {
    for target in ["message", "parameters", "discovery", "core"] {
        fs::create_dir_all(corpus(target)).expect("the corpus can be written");
    }
    let write = |target: &str, name: &str, bytes: &[u8]| {
        fs::write(corpus(target).join(name), bytes).expect("the corpus can be written");
    };
    cases().iter().for_each(|case| write("message", case.name, &case.datagram));
    let mut seen = std::collections::BTreeMap::new();
    for datagram in session::EXCHANGE.iter() {
        let number = seen.entry(kinds(datagram)).or_insert(0);
        *number += 1;
        if *number <= 2 {
            write("message", &format!("exchange{}-{number}", kinds(datagram)), datagram);
        }
    }
    let datagrams = session::EXCHANGE.iter().cloned().chain(cases().into_iter().map(|case| case.datagram));
    let mut number = 0;
    let mut records = Vec::new();
    for datagram in datagrams {
        let Ok(message) = MessageView::parse(&datagram) else { continue };
        for submessage in message.submessages() {
            if let Ok(Submessage::Data(data)) = submessage
                && data.writer.is_builtin()
                && let Some(bytes) = data.payload.bytes().filter(|bytes| bytes.len() < 2_000)
            {
                number += 1;
                if number <= 60 {
                    write("parameters", &format!("payload-{number:02}"), bytes);
                }
                records.extend(announcements::record_by(data.writer, bytes));
            }
        }
    }
    for (number, records) in records.chunks(16).enumerate() {
        write("discovery", &format!("catalogue-{number:02}"), &records.concat());
    }
    announcements::examples().iter().for_each(|(name, script)| write("discovery", name, script));
    write_scripts(&write);
}

/// Writes scripts of a few steps of each kind, and scripts that play the catalogue.
fn write_scripts(write: &impl Fn(&str, &str, &[u8])) {
    for (number, datagrams) in cases().chunks(8).enumerate() {
        let mut script = Vec::new();
        for case in datagrams.iter().filter(|case| case.datagram.len() < 3_000) {
            script.push(0);
            script.extend_from_slice(&(case.datagram.len() as u16).to_le_bytes());
            script.extend_from_slice(&case.datagram);
            script.extend_from_slice(&[0, 7, 4, 10, 0]);
        }
        write("core", &format!("catalogue-{number:02}"), &script);
    }
    let exchange: Vec<u8> = (0..=255).flat_map(|which| [1, which, 0x20, 0, 7]).collect();
    write("core", "exchange", &exchange);
    let echo: Vec<u8> = (0..=255).flat_map(|which| [2, which, 0x20, 0, 0, 5, 0, 0, 0x0d, 5, 50, 0, 7]).collect();
    write("core", "echo", &echo);
    let mut dice = Dice(121);
    for kind in [1, 2, 3, 4, 5, 6, 7, 15] {
        let script: Vec<u8> = (0..300)
            .flat_map(|_| [kind].into_iter().chain((0..6).map(|_| dice.roll(256) as u8)).collect::<Vec<_>>())
            .collect();
        write("core", &format!("steps-{kind}"), &script[..1_000]);
    }
}
