//! Bench agent for dust_dds.
use std::sync::Mutex;
use std::time::Duration;

use agent::{Options, Received, Sink, System, Written};
use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::{
    HistoryQosPolicy, HistoryQosPolicyKind, ReliabilityQosPolicy, ReliabilityQosPolicyKind,
};
use dust_dds::infrastructure::sample_info::{ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE};
use dust_dds::infrastructure::status::{NO_STATUS, StatusKind};
use dust_dds::infrastructure::time::{Duration as DdsDuration, DurationKind};
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::wait_set::{Condition, WaitSet};

const TAKE_MAX: i32 = 64;
const TUNED_FRAGMENT: usize = 65000;
const TUNED_BUFFER: usize = 4 << 20;

#[derive(DdsType, Clone)]
struct Blob {
    data: Vec<u8>,
}

#[derive(DdsType, Clone)]
struct Item {
    name: String,
    number: i32,
}

#[derive(DdsType, Clone)]
struct Group {
    items: Vec<Item>,
}

#[derive(DdsType, Clone)]
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

struct DustDds {
    participant: DomainParticipant,
    writer: Option<Writer>,
    reader: Option<(Reader, Mutex<WaitSet>)>,
}

fn dds_duration(duration: Duration) -> DdsDuration {
    DdsDuration::new(duration.as_secs() as i32, duration.subsec_nanos())
}

fn text(error: impl std::fmt::Debug) -> String {
    format!("dust_dds: {error:?}")
}

fn reliability(options: &Options) -> ReliabilityQosPolicy {
    ReliabilityQosPolicy {
        kind: if options.reliable { ReliabilityQosPolicyKind::Reliable } else { ReliabilityQosPolicyKind::BestEffort },
        max_blocking_time: DurationKind::Finite(DdsDuration::new(10, 0)),
    }
}

fn history(options: &Options) -> HistoryQosPolicy {
    HistoryQosPolicy {
        kind: match options.depth {
            None => HistoryQosPolicyKind::KeepAll,
            Some(depth) => HistoryQosPolicyKind::KeepLast(depth as _),
        },
    }
}

macro_rules! writer {
    ($participant:expr, $options:expr, $topic:expr, $type:ty) => {{
        let topic = $participant
            .create_topic::<$type>($topic, stringify!($type), QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(text)?;
        let qos =
            DataWriterQos { reliability: reliability($options), history: history($options), ..Default::default() };
        $participant
            .create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(text)?
            .create_datawriter::<$type>(&topic, QosKind::Specific(qos), NO_LISTENER, NO_STATUS)
            .map_err(text)?
    }};
}

macro_rules! reader {
    ($participant:expr, $options:expr, $topic:expr, $type:ty) => {{
        let topic = $participant
            .create_topic::<$type>($topic, stringify!($type), QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(text)?;
        let qos =
            DataReaderQos { reliability: reliability($options), history: history($options), ..Default::default() };
        $participant
            .create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(text)?
            .create_datareader::<$type>(&topic, QosKind::Specific(qos), NO_LISTENER, NO_STATUS)
            .map_err(text)?
    }};
}

macro_rules! each_sample {
    ($reader:expr, $sample:ident => $use:expr) => {
        while let Ok(samples) = $reader.take(TAKE_MAX, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE) {
            let last = samples.len() < TAKE_MAX as usize;
            for $sample in samples.into_iter().filter_map(|sample| sample.data) {
                $use
            }
            if last {
                break;
            }
        }
    };
}

impl System for DustDds {
    const PEER: &std::ffi::CStr = c"dust-dds";
    const VERSION: &std::ffi::CStr = c"0.16.0";
    const TRANSPORTS: &std::ffi::CStr = c"default,tuned";
    const NOTIFIES: &std::ffi::CStr = c"waitset,poll";
    const TYPES: &std::ffi::CStr = c"octets,complex";
    type Complex = Complex;

    fn check(options: &Options) -> Result<(), String> {
        options.require_multicast()
    }

    fn open(options: &Options, writes: Option<&str>, reads: Option<&str>) -> Result<Self, String> {
        let factory = DomainParticipantFactory::get_instance();
        {
            let mut transport = factory.get_mut_transport();
            transport.set_interface_name(Some(options.iface.clone()));
            if options.transport == "tuned" {
                transport
                    .set_fragment_size(TUNED_FRAGMENT)
                    .map_err(text)?
                    .set_udp_receive_buffer_size(Some(TUNED_BUFFER));
            }
        }
        let participant =
            factory.create_participant(options.domain as _, QosKind::Default, NO_LISTENER, NO_STATUS).map_err(text)?;
        let writer = match (writes, options.complex) {
            (None, _) => None,
            (Some(topic), false) => Some(Writer::Octets(writer!(participant, options, topic, Blob))),
            (Some(topic), true) => Some(Writer::Complex(writer!(participant, options, topic, Complex))),
        };
        let reader = match (reads, options.complex) {
            (None, _) => None,
            (Some(topic), false) => Some(Reader::Octets(reader!(participant, options, topic, Blob))),
            (Some(topic), true) => Some(Reader::Complex(reader!(participant, options, topic, Complex))),
        };
        let reader = match reader {
            None => None,
            Some(reader) => {
                let condition = match &reader {
                    Reader::Octets(reader) => reader.get_statuscondition(),
                    Reader::Complex(reader) => reader.get_statuscondition(),
                };
                condition.set_enabled_statuses(&[StatusKind::DataAvailable]).map_err(text)?;
                let mut waitset = WaitSet::new();
                waitset.attach_condition(Condition::StatusCondition(condition)).map_err(text)?;
                Some((reader, Mutex::new(waitset)))
            }
        };
        Ok(DustDds { participant, writer, reader })
    }

    fn close(self: Box<Self>) {
        // After an error, the participant exists until the end of the process.
        let _ = self.participant.delete_contained_entities();
        let _ = DomainParticipantFactory::get_instance().delete_participant(&self.participant);
    }

    fn matched_readers(&self) -> usize {
        let status = match self.writer.as_ref() {
            None => return 0,
            Some(Writer::Octets(writer)) => writer.get_publication_matched_status(),
            Some(Writer::Complex(writer)) => writer.get_publication_matched_status(),
        };
        status.map_or(0, |status| status.current_count as usize)
    }

    fn matched_writers(&self) -> usize {
        let status = match self.reader.as_ref() {
            None => return 0,
            Some((Reader::Octets(reader), _)) => reader.get_subscription_matched_status(),
            Some((Reader::Complex(reader), _)) => reader.get_subscription_matched_status(),
        };
        status.map_or(0, |status| status.current_count as usize)
    }

    fn write(&self, data: &[u8]) -> Written {
        let Some(Writer::Octets(writer)) = &self.writer else { return Written::Refused };
        Written::of(writer.write(Blob { data: data.to_vec() }, None).is_ok())
    }

    fn wait_acknowledged(&self, timeout: Duration) {
        // A timeout is not an error of the agent: the reader may have left.
        let _ = match &self.writer {
            None => return,
            Some(Writer::Octets(writer)) => writer.wait_for_acknowledgments(dds_duration(timeout)),
            Some(Writer::Complex(writer)) => writer.wait_for_acknowledgments(dds_duration(timeout)),
        };
    }

    fn receive(&self, sink: Sink, timeout: Duration) {
        let Some((reader, waitset)) = &self.reader else { return };
        if !timeout.is_zero() {
            let Ok(waitset) = waitset.lock() else { return };
            if waitset.wait(dds_duration(timeout)).is_err() {
                return;
            }
        }
        match reader {
            Reader::Octets(reader) => each_sample!(reader, sample => {
                sink.deliver::<Complex>(Received::Octets(&sample.data));
            }),
            Reader::Complex(reader) => each_sample!(reader, sample => {
                let first = sample.groups.first().and_then(|group| group.items.first());
                let number = first.map_or(0, |item| item.number);
                sink.deliver(Received::Complex(&sample, number));
            }),
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
    agent::run::<DustDds>()
}
