//! Bench agent for iceoryx2.
//!
//! transport=default polls the subscriber. transport=event sends an event after each sample, for
//! which the reader blocks.
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent::{Notify, Options, Received, Sink, System, Written};
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::sample_mut::SampleMut;
use iceoryx2::service::port_factory::publish_subscribe;

type Ipc = ipc_threadsafe::Service;
type Topic = publish_subscribe::PortFactory<Ipc, [u8], ()>;

const RECEIVE_MAX: usize = 256;
const MAX_READERS: usize = 16;
const MAX_DEPTH: u32 = 4096;
/// Samples that a queue holds with hist=all; fewer if they are large.
const QUEUE: usize = 256;
const QUEUE_OCTETS: usize = 16 << 20;

struct Writing {
    publisher: Publisher<Ipc, [u8], ()>,
    topic: Topic,
    notifier: Option<Notifier<Ipc>>,
    loaned: Mutex<Option<SampleMut<Ipc, [u8], ()>>>,
}

struct Reading {
    subscriber: Subscriber<Ipc, [u8], ()>,
    topic: Topic,
    listener: Option<Listener<Ipc>>,
}

struct Iceoryx2 {
    writing: Option<Writing>,
    reading: Option<Reading>,
    _node: Node<Ipc>,
}

fn text(error: impl std::fmt::Debug) -> String {
    format!("iceoryx2: {error:?}")
}

fn name(options: &Options, topic: &str) -> Result<ServiceName, String> {
    ServiceName::new(&format!("takt-agent-{}-{topic}", options.domain)).map_err(text)
}

fn queue(options: &Options) -> usize {
    match options.depth {
        Some(depth) => depth as usize,
        None => (QUEUE_OCTETS / options.max_size.max(1)).clamp(4, QUEUE),
    }
}

impl Writing {
    fn send(&self, sample: SampleMut<Ipc, [u8], ()>) -> Written {
        let sent = sample.send().is_ok();
        if let Some(notifier) = &self.notifier {
            // A full event queue wakes the reader anyway.
            let _ = notifier.notify();
        }
        Written::of(sent)
    }
}

impl Reading {
    fn take(&self, sink: Sink) -> usize {
        for taken in 0..RECEIVE_MAX {
            let Ok(Some(sample)) = self.subscriber.receive() else { return taken };
            sink.deliver::<()>(Received::Octets(sample.payload()));
        }
        RECEIVE_MAX
    }
}

impl System for Iceoryx2 {
    const PEER: &std::ffi::CStr = c"iceoryx2";
    const VERSION: &std::ffi::CStr = c"0.10.0";
    const TRANSPORTS: &std::ffi::CStr = c"default,event";
    const NOTIFIES: &std::ffi::CStr = c"poll,waitset";
    const LOANS: bool = true;
    type Complex = ();

    fn check(options: &Options) -> Result<(), String> {
        let event = options.transport == "event";
        let other = if event { Notify::Poll } else { Notify::Waitset };
        if options.notify == other {
            return Err("iceoryx2: notify=waitset has transport=event, notify=poll the other".into());
        }
        if options.depth.is_some_and(|depth| depth > MAX_DEPTH) {
            return Err(format!("iceoryx2: hist above {MAX_DEPTH}"));
        }
        if options.n > MAX_READERS {
            return Err(format!("iceoryx2: n above {MAX_READERS}"));
        }
        Ok(())
    }

    fn auto_notify(options: &Options) -> Option<Notify> {
        Some(if options.transport == "event" { Notify::Waitset } else { Notify::Poll })
    }

    fn open(options: &Options, writes: Option<&str>, reads: Option<&str>) -> Result<Self, String> {
        set_log_level(LogLevel::Error);
        // The kit handles SIGTERM.
        let node =
            NodeBuilder::new().signal_handling_mode(SignalHandlingMode::Disabled).create::<Ipc>().map_err(text)?;
        let topic = |topic: &str| -> Result<Topic, String> {
            node.service_builder(&name(options, topic)?)
                .publish_subscribe::<[u8]>()
                .enable_safe_overflow(options.depth.is_some())
                .subscriber_max_buffer_size(queue(options))
                .subscriber_max_borrowed_samples(2)
                .max_subscribers(MAX_READERS)
                .max_publishers(2)
                .max_nodes(MAX_READERS + 4)
                .open_or_create()
                .map_err(text)
        };
        let event = |topic: &str| {
            node.service_builder(&name(options, &format!("{topic}-event"))?)
                .event()
                .max_listeners(MAX_READERS)
                .max_nodes(MAX_READERS + 4)
                .open_or_create()
                .map_err(text)
        };
        let events = options.transport == "event";
        let writing = match writes {
            None => None,
            Some(writes) => {
                let topic = topic(writes)?;
                let publisher = topic
                    .publisher_builder()
                    .initial_max_slice_len(options.max_size)
                    .allocation_strategy(AllocationStrategy::Static)
                    .backpressure_strategy(if options.reliable {
                        BackpressureStrategy::RetryUntilDelivered
                    } else {
                        BackpressureStrategy::DiscardData
                    })
                    .create()
                    .map_err(text)?;
                let notifier = match events {
                    true => Some(event(writes)?.notifier_builder().create().map_err(text)?),
                    false => None,
                };
                Some(Writing { publisher, topic, notifier, loaned: Mutex::default() })
            }
        };
        let reading = match reads {
            None => None,
            Some(reads) => {
                let topic = topic(reads)?;
                let subscriber = topic.subscriber_builder().create().map_err(text)?;
                let listener = match events {
                    true => Some(event(reads)?.listener_builder().create().map_err(text)?),
                    false => None,
                };
                Some(Reading { subscriber, topic, listener })
            }
        };
        Ok(Iceoryx2 { writing, reading, _node: node })
    }

    /// Removes the shared memory. Without listeners, no thread is in a call.
    fn close(self: Box<Self>) {
        drop(self);
    }

    fn matched_readers(&self) -> usize {
        let writing = self.writing.as_ref();
        writing.map_or(0, |writing| writing.topic.dynamic_config().number_of_subscribers())
    }

    fn matched_writers(&self) -> usize {
        let reading = self.reading.as_ref();
        reading.map_or(0, |reading| reading.topic.dynamic_config().number_of_publishers())
    }

    fn write(&self, data: &[u8]) -> Written {
        let Some(writing) = &self.writing else { return Written::Refused };
        match writing.publisher.loan_slice_uninit(data.len()) {
            Ok(loan) => writing.send(loan.write_from_slice(data)),
            Err(_) => Written::Refused,
        }
    }

    fn receive(&self, sink: Sink, timeout: Duration) {
        let Some(reading) = &self.reading else { return };
        if reading.take(sink) > 0 || timeout.is_zero() {
            return;
        }
        if let Some(listener) = &reading.listener {
            // An error is a timeout or a signal.
            let _ = listener.timed_wait(|_| {}, timeout);
            reading.take(sink);
        }
    }

    fn loan(&self, size: usize) -> Option<*mut u8> {
        let writing = self.writing.as_ref()?;
        let loan = writing.publisher.loan_slice_uninit(size).ok()?;
        // The kit writes as much as `touch` says; octets of shared memory are always initialized.
        let mut sample = unsafe { loan.assume_init() };
        let at = sample.payload_mut().as_mut_ptr();
        *writing.loaned.lock().unwrap_or_else(PoisonError::into_inner) = Some(sample);
        Some(at)
    }

    fn write_loan(&self) -> Written {
        let Some(writing) = &self.writing else { return Written::Refused };
        let loaned = writing.loaned.lock().unwrap_or_else(PoisonError::into_inner).take();
        loaned.map_or(Written::Refused, |sample| writing.send(sample))
    }
}

fn main() {
    agent::run::<Iceoryx2>()
}
