//! Bench agent for RustDDS, which has no listeners; its readers are sources of mio.
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent::{Options, Received, Sink, System, Written};
use rustdds::no_key::{DataReader, DataWriter};
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{
    DataReaderStatus, DataWriterStatus, DomainParticipant, DomainParticipantBuilder, QosPolicies, QosPolicyBuilder,
    StatusEvented, TopicKind,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Blob {
    data: Vec<u8>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Item {
    name: String,
    number: i32,
}

#[derive(Clone, Serialize, Deserialize)]
struct Group {
    items: Vec<Item>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Complex {
    groups: Vec<Group>,
}

enum Writer {
    Octets(DataWriter<Blob>),
    Complex(DataWriter<Complex>),
}

enum Reader {
    Octets(DataReader<Blob>),
    Complex(DataReader<Complex>),
}

struct Reading {
    reader: Reader,
    poll: mio::Poll,
    events: mio::Events,
    writers: HashSet<String>,
}

struct RustDds {
    participant: DomainParticipant,
    writer: Option<Writer>,
    readers: Mutex<HashSet<String>>,
    reading: Option<Mutex<Reading>>,
}

fn text(error: impl std::fmt::Debug) -> String {
    format!("RustDDS: {error:?}")
}

fn qos(options: &Options) -> QosPolicies {
    let max_blocking_time = rustdds::Duration::from_secs(10);
    QosPolicyBuilder::new()
        .reliability(if options.reliable {
            Reliability::Reliable { max_blocking_time }
        } else {
            Reliability::BestEffort
        })
        .history(match options.depth {
            None => History::KeepAll,
            Some(depth) => History::KeepLast { depth: depth as i32 },
        })
        .durability(Durability::Volatile)
        .build()
}

macro_rules! writer {
    ($participant:expr, $qos:expr, $topic:expr, $type:ty) => {{
        let topic =
            $participant.create_topic($topic.into(), stringify!($type).into(), $qos, TopicKind::NoKey).map_err(text)?;
        let publisher = $participant.create_publisher($qos).map_err(text)?;
        publisher.create_datawriter_no_key_cdr::<$type>(&topic, None).map_err(text)?
    }};
}

macro_rules! reader {
    ($participant:expr, $qos:expr, $topic:expr, $poll:expr, $type:ty) => {{
        let topic =
            $participant.create_topic($topic.into(), stringify!($type).into(), $qos, TopicKind::NoKey).map_err(text)?;
        let subscriber = $participant.create_subscriber($qos).map_err(text)?;
        let mut reader = subscriber.create_datareader_no_key_cdr::<$type>(&topic, None).map_err(text)?;
        let interest = mio::Interest::READABLE;
        $poll.registry().register(&mut reader, mio::Token(0), interest).map_err(text)?;
        reader
    }};
}

macro_rules! count_writers {
    ($reader:expr, $seen:expr) => {
        while let Some(status) = $reader.try_recv_status() {
            if let DataReaderStatus::SubscriptionMatched { writer, .. } = status {
                $seen.insert(format!("{writer:?}"));
            }
        }
    };
}

macro_rules! count_readers {
    ($writer:expr, $seen:expr) => {
        while let Some(status) = $writer.try_recv_status() {
            if let DataWriterStatus::PublicationMatched { reader, .. } = status {
                $seen.insert(format!("{reader:?}"));
            }
        }
    };
}

impl System for RustDds {
    const PEER: &std::ffi::CStr = c"rustdds";
    const VERSION: &std::ffi::CStr = c"0.15.1";
    const TRANSPORTS: &std::ffi::CStr = c"default";
    const NOTIFIES: &std::ffi::CStr = c"waitset,poll";
    const TYPES: &std::ffi::CStr = c"octets,complex";
    type Complex = Complex;

    fn check(options: &Options) -> Result<(), String> {
        options.require_multicast()
    }

    fn open(options: &Options, writes: Option<&str>, reads: Option<&str>) -> Result<Self, String> {
        let address: IpAddr = options.addr.parse().map_err(text)?;
        let participant =
            DomainParticipantBuilder::new(options.domain as u16).with_only_networks([address]).build().map_err(text)?;
        let qos = &qos(options);
        let writer = match (writes, options.complex) {
            (None, _) => None,
            (Some(topic), false) => Some(Writer::Octets(writer!(participant, qos, topic, Blob))),
            (Some(topic), true) => Some(Writer::Complex(writer!(participant, qos, topic, Complex))),
        };
        let reading = match reads {
            None => None,
            Some(topic) => {
                let poll = mio::Poll::new().map_err(text)?;
                let reader = if options.complex {
                    Reader::Complex(reader!(participant, qos, topic, poll, Complex))
                } else {
                    Reader::Octets(reader!(participant, qos, topic, poll, Blob))
                };
                let events = mio::Events::with_capacity(16);
                Some(Mutex::new(Reading { reader, poll, events, writers: HashSet::new() }))
            }
        };
        Ok(RustDds { participant, writer, readers: Mutex::default(), reading })
    }

    fn close(self: Box<Self>) {
        let RustDds { participant, writer, reading, .. } = *self;
        drop((writer, reading));
        drop(participant);
    }

    fn matched_readers(&self) -> usize {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.writer {
            None => {}
            Some(Writer::Octets(writer)) => count_readers!(writer, readers),
            Some(Writer::Complex(writer)) => count_readers!(writer, readers),
        }
        readers.len()
    }

    fn matched_writers(&self) -> usize {
        let Some(reading) = &self.reading else { return 0 };
        let reading = &mut *reading.lock().unwrap_or_else(PoisonError::into_inner);
        match &reading.reader {
            Reader::Octets(reader) => count_writers!(reader, reading.writers),
            Reader::Complex(reader) => count_writers!(reader, reading.writers),
        }
        reading.writers.len()
    }

    fn write(&self, data: &[u8]) -> Written {
        let Some(Writer::Octets(writer)) = &self.writer else { return Written::Refused };
        Written::of(writer.write(Blob { data: data.to_vec() }, None).is_ok())
    }

    fn wait_acknowledged(&self, timeout: Duration) {
        // A timeout is not an error of the agent: the reader may have left.
        match &self.writer {
            None => {}
            Some(Writer::Octets(writer)) => drop(writer.wait_for_acknowledgments(timeout)),
            Some(Writer::Complex(writer)) => drop(writer.wait_for_acknowledgments(timeout)),
        }
    }

    fn receive(&self, sink: Sink, timeout: Duration) {
        let Some(reading) = &self.reading else { return };
        let reading = &mut *reading.lock().unwrap_or_else(PoisonError::into_inner);
        if !timeout.is_zero() {
            let polled = reading.poll.poll(&mut reading.events, Some(timeout));
            if polled.is_err() || reading.events.is_empty() {
                return;
            }
        }
        match &mut reading.reader {
            Reader::Octets(reader) => {
                while let Ok(Some(sample)) = reader.take_next_sample() {
                    sink.deliver::<Complex>(Received::Octets(&sample.value().data));
                }
            }
            Reader::Complex(reader) => {
                while let Ok(Some(sample)) = reader.take_next_sample() {
                    let sample = sample.value();
                    let first = sample.groups.first().and_then(|group| group.items.first());
                    let number = first.map_or(0, |item| item.number);
                    sink.deliver(Received::Complex(sample, number));
                }
            }
        }
    }

    fn complex_new(groups: Vec<Vec<(String, i32)>>) -> Option<Complex> {
        let item = |(name, number)| Item { name, number };
        let group = |items: Vec<_>| Group { items: items.into_iter().map(item).collect() };
        Some(Complex { groups: groups.into_iter().map(group).collect() })
    }

    fn complex_set_number(sample: &mut Complex, number: i32) {
        if let Some(item) = sample.groups.first_mut().and_then(|group| group.items.first_mut()) {
            item.number = number;
        }
    }

    fn complex_write(&self, sample: &Complex) -> Written {
        let Some(Writer::Complex(writer)) = &self.writer else { return Written::Refused };
        Written::of(writer.write(sample.clone(), None).is_ok())
    }
}

fn main() {
    agent::run::<RustDds>()
}
