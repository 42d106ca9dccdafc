//! Bench agent for HDDS.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use agent::{Notify, Options, Received, Sink, System, Written};
use hdds::dds::listener::{
    DataReaderListener, DataWriterListener, PublicationMatchedStatus, SubscriptionMatchedStatus,
};
use hdds::{DDS, DataReader, DataWriter, Participant, QoS, TransportMode, WaitSet};

#[derive(Debug, Clone, DDS)]
struct Blob {
    data: Vec<u8>,
}

#[derive(Default)]
struct Listening {
    readers: AtomicUsize,
    writers: AtomicUsize,
    /// Handler, serialized: HDDS may call from several threads, and the kit allows one at a time.
    sink: OnceLock<Mutex<Sink>>,
}

impl DataReaderListener<Blob> for Listening {
    fn on_data_available(&self, sample: &Blob) {
        if let Some(sink) = self.sink.get() {
            let sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
            sink.deliver::<()>(Received::Octets(&sample.data));
        }
    }
    fn on_subscription_matched(&self, status: SubscriptionMatchedStatus) {
        self.writers.store(status.current_count as usize, Ordering::Relaxed);
    }
}

struct WriterListening(Arc<Listening>);

impl DataWriterListener<Blob> for WriterListening {
    fn on_publication_matched(&self, status: PublicationMatchedStatus) {
        self.0.readers.store(status.current_count as usize, Ordering::Relaxed);
    }
}

struct Hdds {
    _participant: Arc<Participant>,
    /// Writer, with a lock because the writer of HDDS is not `Sync`.
    writer: Option<Mutex<DataWriter<Blob>>>,
    reader: Option<(DataReader<Blob>, WaitSet)>,
    listening: Arc<Listening>,
}

fn text(error: impl std::fmt::Debug) -> String {
    format!("HDDS: {error:?}")
}

impl System for Hdds {
    const PEER: &std::ffi::CStr = c"hdds";
    const VERSION: &std::ffi::CStr = c"1.1.2";
    const TRANSPORTS: &std::ffi::CStr = c"default,udp";
    const NOTIFIES: &std::ffi::CStr = c"listener,waitset,poll";
    type Complex = ();

    fn check(options: &Options) -> Result<(), String> {
        options.require_multicast()
    }

    fn open(options: &Options, writes: Option<&str>, reads: Option<&str>) -> Result<Self, String> {
        for key in ["HDDS_INTERFACE", "HDDS_MULTICAST_IF", "HDDS_UNICAST_IF"] {
            // No other thread runs yet.
            unsafe { std::env::set_var(key, &options.addr) };
        }
        unsafe { std::env::set_var("HDDS_EXPORTER_DISABLE", "1") };
        let mut builder =
            Participant::builder("agent").domain_id(options.domain).with_transport(TransportMode::UdpMulticast);
        if options.transport == "udp" {
            builder = builder.shm_disable();
        }
        let participant = builder.build().map_err(text)?;
        let qos = if options.reliable { QoS::reliable() } else { QoS::best_effort() };
        let qos = match options.depth {
            None => qos.keep_all(),
            Some(depth) => qos.keep_last(depth),
        };
        let qos = qos.volatile();
        let listening = Arc::new(Listening::default());
        let writer = match writes {
            None => None,
            Some(topic) => {
                let listener = Arc::new(WriterListening(listening.clone()));
                let builder = participant.topic::<Blob>(topic).map_err(text)?.writer();
                let writer = builder.qos(qos.clone()).with_listener(listener).build();
                Some(Mutex::new(writer.map_err(text)?))
            }
        };
        let reader = match reads {
            None => None,
            Some(topic) => {
                let builder = participant.topic::<Blob>(topic).map_err(text)?.reader();
                let reader = builder.qos(qos).with_listener(listening.clone()).build();
                let reader = reader.map_err(text)?;
                let waitset = WaitSet::new();
                if options.notify == Notify::Waitset {
                    waitset.attach_condition(reader.get_status_condition()).map_err(text)?;
                }
                Some((reader, waitset))
            }
        };
        Ok(Hdds { _participant: participant, writer, reader, listening })
    }

    fn close(self: Box<Self>) {
        // A thread of HDDS may still be in the listener.
        Box::leak(self);
    }

    fn matched_readers(&self) -> usize {
        self.listening.readers.load(Ordering::Relaxed)
    }

    fn matched_writers(&self) -> usize {
        self.listening.writers.load(Ordering::Relaxed)
    }

    fn write(&self, data: &[u8]) -> Written {
        let Some(writer) = &self.writer else { return Written::Refused };
        let writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        Written::of(writer.write(&Blob { data: data.to_vec() }).is_ok())
    }

    fn receive(&self, sink: Sink, timeout: Duration) {
        let Some((reader, waitset)) = &self.reader else { return };
        if !timeout.is_zero() && waitset.wait(Some(timeout)).map_or(true, |found| found.is_empty()) {
            return;
        }
        while let Ok(Some(sample)) = reader.take() {
            sink.deliver::<()>(Received::Octets(&sample.data));
        }
    }

    fn listen(&self, sink: Sink) -> Result<(), String> {
        self.listening.sink.set(Mutex::new(sink)).map_err(|_| "HDDS: listens already".into())
    }
}

fn main() {
    agent::run::<Hdds>()
}
