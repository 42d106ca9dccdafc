//! Writers and readers of each supported type, and the listeners that report their events.

use std::time::{Duration, Instant};

use takt::qos::*;
use takt::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, MatchedStatus, SampleLostStatus, SampleRejectedStatus,
};
use takt::{
    DataReader, DataReaderListener, DataWriter, DataWriterListener, DomainParticipant, Guid, Publisher, Result, Sample,
    Subscriber,
};
use takt_interop::content;

use crate::report;
use crate::types::Exchanged;

/// Maximum number of samples per take.
const TAKE_MAX: usize = 16;

/// Entities that contain the endpoints.
pub struct Entities {
    pub participant: DomainParticipant,
    pub publisher: Publisher,
    pub subscriber: Subscriber,
}

/// Description of an endpoint to create.
pub struct Spec {
    pub id: String,
    pub topic: String,
    pub representation: String,
    pub reliable: bool,
    pub durability: String,
    /// Depth of KEEP_LAST; 0 is KEEP_ALL.
    pub keep_last: u32,
    pub autodispose: bool,
    pub max_blocking_time: Duration,
    pub lifespan: Option<Duration>,
    pub deadline: Option<Duration>,
    /// Lease duration of LIVELINESS.
    pub lease: Option<Duration>,
    /// Strength of EXCLUSIVE ownership; `None` is SHARED.
    pub strength: Option<i32>,
    /// Bound `N` of a reader's content filter `seq < N`.
    pub filter_below: Option<String>,
    /// Whether a reader takes on command only.
    pub on_demand: bool,
    /// Whether DESTINATION_ORDER is BY_SOURCE_TIMESTAMP.
    pub by_source: bool,
}

impl Spec {
    fn reliability(&self) -> Reliability {
        let kind = if self.reliable { ReliabilityKind::Reliable } else { ReliabilityKind::BestEffort };
        Reliability { kind, max_blocking_time: self.max_blocking_time.into() }
    }

    fn durability(&self) -> Durability {
        match self.durability.as_str() {
            "transient" => Durability::Transient,
            "transient_local" => Durability::TransientLocal,
            _ => Durability::Volatile,
        }
    }

    fn destination_order(&self) -> DestinationOrder {
        if self.by_source { DestinationOrder::BySourceTimestamp } else { DestinationOrder::default() }
    }

    fn history(&self) -> History {
        if self.keep_last == 0 { History::KeepAll } else { History::KeepLast(self.keep_last) }
    }

    fn liveliness(&self) -> Liveliness {
        let lease_duration = self.lease.map_or(takt::Duration::INFINITE, takt::Duration::from);
        Liveliness { lease_duration, ..Liveliness::default() }
    }

    fn ownership(&self) -> Ownership {
        if self.strength.is_some() { Ownership::Exclusive } else { Ownership::Shared }
    }

    fn deadline(&self) -> Deadline {
        Deadline { period: self.deadline.map_or(takt::Duration::INFINITE, takt::Duration::from) }
    }

    fn representation(&self) -> DataRepresentation {
        match self.representation.as_str() {
            "xcdr2" => DataRepresentation::xcdr2(),
            "any" => DataRepresentation(vec![DataRepresentation::XCDR1, DataRepresentation::XCDR2]),
            _ => DataRepresentation::xcdr1(),
        }
    }
}

/// Samples to write; see `takt_interop::peer::Batch`.
pub struct Batch {
    pub first: u64,
    pub count: u64,
    pub key: u32,
    pub keys: u32,
    pub size: usize,
    pub period: Duration,
}

/// A writer of any type.
pub trait WriterEndpoint {
    fn write(&self, batch: &Batch) -> Result<()>;
    fn dispose(&self, key: u32) -> Result<()>;
    fn unregister(&self, key: u32) -> Result<()>;
    fn wait_acknowledged(&self, max_wait: Duration) -> Result<()>;
}

/// A reader of any type. Dropping it deletes the reader.
pub trait ReaderEndpoint {
    /// Takes and reports all available samples.
    fn take(&self);

    /// Reports whether the reader knows an instance.
    fn lookup(&self, key: u32) -> Result<()>;
}

/// A reader with the reporter of its samples.
struct ActiveReader<T: Exchanged> {
    reader: DataReader<T>,
    reporter: Reporter,
}

impl<T: Exchanged> ReaderEndpoint for ActiveReader<T> {
    fn take(&self) {
        self.reporter.take(&self.reader);
    }

    fn lookup(&self, key: u32) -> Result<()> {
        let mut sample = T::new(key, content::instance_name(key), 0, 0, Vec::new());
        let handle = self.reader.lookup_instance(&sample)?;
        report::instance(&self.reporter.id, self.reader.key_value(&mut sample, handle)? && sample.key().0 == key);
        Ok(())
    }
}

impl Entities {
    pub fn writer<T: Exchanged>(&self, spec: &Spec) -> Result<Box<dyn WriterEndpoint>> {
        let topic = self.participant.create_topic::<T>(&spec.topic, TopicQos::default())?;
        let qos = DataWriterQos {
            reliability: spec.reliability(),
            durability: spec.durability(),
            history: spec.history(),
            destination_order: spec.destination_order(),
            durability_service: DurabilityService { history: spec.history(), ..DurabilityService::default() },
            lifespan: Lifespan { duration: spec.lifespan.map_or(takt::Duration::INFINITE, takt::Duration::from) },
            deadline: spec.deadline(),
            liveliness: spec.liveliness(),
            ownership: spec.ownership(),
            ownership_strength: OwnershipStrength(spec.strength.unwrap_or(0)),
            data_representation: spec.representation(),
            writer_data_lifecycle: WriterDataLifecycle { autodispose_unregistered_instances: spec.autodispose },
            ..DataWriterQos::default()
        };
        let writer = self.publisher.create_datawriter(&topic, qos)?;
        writer.set_listener(Box::new(self.reporter(spec, writer.guid())))?;
        Ok(Box::new(writer))
    }

    pub fn reader<T: Exchanged>(&self, spec: &Spec) -> Result<Box<dyn ReaderEndpoint>> {
        let topic = self.participant.create_topic::<T>(&spec.topic, TopicQos::default())?;
        let qos = DataReaderQos {
            reliability: spec.reliability(),
            durability: spec.durability(),
            history: spec.history(),
            destination_order: spec.destination_order(),
            deadline: spec.deadline(),
            liveliness: spec.liveliness(),
            ownership: spec.ownership(),
            data_representation: spec.representation(),
            ..DataReaderQos::default()
        };
        let reader = match &spec.filter_below {
            None => self.subscriber.create_datareader(&topic, qos)?,
            Some(end) => {
                let name = format!("{}_filtered", spec.id);
                let filtered = self.participant.create_contentfilteredtopic(&name, &topic, "seq < %0", &[end])?;
                self.subscriber.create_datareader(&filtered, qos)?
            }
        };
        let reporter = self.reporter(spec, reader.guid());
        reader.set_listener(Box::new(reporter.clone()))?;
        Ok(Box::new(ActiveReader { reader, reporter }))
    }

    fn reporter(&self, spec: &Spec, guid: Guid) -> Reporter {
        Reporter { id: spec.id.clone(), participant: self.participant.clone(), guid, on_demand: spec.on_demand }
    }
}

impl<T: Exchanged> WriterEndpoint for DataWriter<T> {
    fn write(&self, batch: &Batch) -> Result<()> {
        let (mut seq, mut due) = (batch.first, Instant::now());
        let mut samples: Vec<T> = (0..batch.keys)
            .map(|n| T::new(batch.key + n, content::instance_name(batch.key + n), 0, 0, vec![0; batch.size]))
            .collect();
        for at in (0..samples.len()).cycle().take(usize::try_from(batch.count).unwrap_or(usize::MAX)) {
            let sample = &mut samples[at];
            let key = sample.key().0;
            let (number, stamp_ns, payload) = sample.data_mut();
            *number = seq;
            content::fill(payload, key, seq);
            *stamp_ns = report::realtime_ns();
            DataWriter::write(self, sample)?;
            seq += 1;
            if !batch.period.is_zero() {
                due += batch.period;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
        Ok(())
    }

    fn dispose(&self, key: u32) -> Result<()> {
        DataWriter::dispose(self, &T::new(key, content::instance_name(key), 0, 0, Vec::new()))
    }

    fn unregister(&self, key: u32) -> Result<()> {
        self.unregister_instance(&T::new(key, content::instance_name(key), 0, 0, Vec::new()))
    }

    fn wait_acknowledged(&self, max_wait: Duration) -> Result<()> {
        self.wait_for_acknowledgments(max_wait)
    }
}

/// Listener that prints the events of an endpoint.
#[derive(Clone)]
struct Reporter {
    id: String,
    participant: DomainParticipant,
    guid: Guid,
    on_demand: bool,
}

impl Reporter {
    fn matched(&self, status: MatchedStatus) {
        report::matched(&self.id, status.current_count, status.total_count);
    }

    fn incompatible(&self, status: IncompatibleQosStatus) {
        let refusals = self.participant.diagnostics().refusals().unwrap_or_default();
        let own = refusals.iter().filter(|refusal| refusal.local == self.guid);
        let reasons: Vec<String> = own.map(ToString::to_string).collect();
        let policy = status.last_policy.map_or(0, |policy| policy as i64);
        report::incompatible(&self.id, policy, status.total_count, &reasons);
    }
}

impl<T: Exchanged> DataWriterListener<T> for Reporter {
    fn on_offered_deadline_missed(&mut self, _: &DataWriter<T>, status: DeadlineMissedStatus) {
        report::deadline_missed(&self.id, status.total_count);
    }

    fn on_publication_matched(&mut self, _: &DataWriter<T>, status: MatchedStatus) {
        self.matched(status);
    }

    fn on_offered_incompatible_qos(&mut self, _: &DataWriter<T>, status: IncompatibleQosStatus) {
        self.incompatible(status);
    }
}

impl<T: Exchanged> DataReaderListener<T> for Reporter {
    fn on_requested_deadline_missed(&mut self, _: &DataReader<T>, status: DeadlineMissedStatus) {
        report::deadline_missed(&self.id, status.total_count);
    }

    fn on_subscription_matched(&mut self, _: &DataReader<T>, status: MatchedStatus) {
        self.matched(status);
    }

    fn on_requested_incompatible_qos(&mut self, _: &DataReader<T>, status: IncompatibleQosStatus) {
        self.incompatible(status);
    }

    fn on_sample_lost(&mut self, _: &DataReader<T>, status: SampleLostStatus) {
        report::lost(&self.id, status.total_count);
    }

    fn on_sample_rejected(&mut self, _: &DataReader<T>, status: SampleRejectedStatus) {
        report::rejected(&self.id, status.total_count);
    }

    fn on_data_available(&mut self, reader: &DataReader<T>) {
        if !self.on_demand {
            self.take(reader);
        }
    }
}

impl Reporter {
    fn take<T: Exchanged>(&self, reader: &DataReader<T>) {
        loop {
            match reader.take(TAKE_MAX) {
                Ok(samples) if samples.is_empty() => return,
                Ok(samples) => samples.iter().for_each(|sample| self.report_sample(sample)),
                Err(error) => return report::error(&self.id, "take", &error.to_string()),
            }
        }
    }

    fn report_sample<T: Exchanged>(&self, sample: &Sample<T>) {
        let source_ns = sample.info.source_timestamp.to_nanos();
        report::sample(&report::Taken {
            id: &self.id,
            state: sample.info.instance_state,
            key: sample.data.as_ref().or(sample.key.as_ref()).map(Exchanged::key),
            data: sample.data.as_ref().map(Exchanged::data),
            source_ns,
        });
    }
}
