//! Payloads loaned through shared memory: by `write` if they are large, by `loan` if the
//! application writes them.

use crate::support::*;
use takt::qos::*;
use takt::transport::shm::{ShmConfig, ShmTransport};
use takt::transport::udp::{InterfaceSelection, UdpConfig, UdpTransport};
use takt::*;

/// A single sequence of octets, so that an application can write its serialized form directly.
#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Octets", extensibility = "final")]
struct Octets {
    bytes: Vec<u8>,
}

impl Octets {
    fn new(number: u8, len: usize) -> Self {
        Self { bytes: (0..len).map(|at| (at / 7) as u8 ^ number).collect() }
    }
}

fn shared(domain: u32, runtime: Runtime) -> DomainParticipant {
    on_loopback(domain, runtime).shared_memory(true).build().expect("participant")
}

fn pair(runtime: Runtime, writer: DataWriterQos, reader: DataReaderQos) -> Pair<Octets> {
    let domain = domain();
    Pair::between(shared(domain, runtime), shared(domain, runtime), writer, reader)
}

/// Creates a participant with a shared memory segment of this size.
fn shares_memory(domain: u32, segment_bytes: usize) -> DomainParticipant {
    let interfaces = InterfaceSelection::Named(vec!["lo".into()]);
    let udp = UdpTransport::open(&UdpConfig { interfaces, ..UdpConfig::new(domain) }).expect("loopback");
    let shm = ShmTransport::open(&ShmConfig { segment_bytes, ..ShmConfig::default() }).expect("Linux 5.14");
    let participant = DomainParticipant::builder(domain).peers(["127.0.0.1"]);
    participant.transport(Box::new(udp)).transport(Box::new(shm)).build().expect("participant")
}

fn loaned_samples(participant: &DomainParticipant) -> u64 {
    participant.diagnostics().counters().expect("open").loaned_samples
}

fn copied_without_loan(participant: &DomainParticipant) -> u64 {
    participant.diagnostics().driver_counters().expect("open").payloads_copied_without_loan
}

/// Waits until the writer can loan payloads to its reader.
fn write_until_loaned(pair: &Pair<Octets>) {
    pair.wait_until("a ring", || {
        let loan = pair.writer.loan(4).expect("open");
        loan.is_shared()
    });
}

fn loan(writer: &DataWriter<Octets>, sample: &Octets) -> LoanedPayload {
    let mut loan = writer.loan(4 + sample.bytes.len()).expect("open");
    loan[..4].copy_from_slice(&(sample.bytes.len() as u32).to_le_bytes());
    loan[4..].copy_from_slice(&sample.bytes);
    loan
}

fn borrow(pair: &Pair<Octets>) -> LoanedSample<Octets> {
    let mut found = None;
    pair.wait_until("a sample", || {
        found = pair.reader.take_loaned().expect("open");
        found.is_some()
    });
    found.expect("there is one")
}

fn decoded(sample: &LoanedSample<Octets>) -> Octets {
    let mut value = Octets::default();
    assert!(sample.decode(&mut value));
    value
}

#[test]
fn large_samples_are_loaned_and_small_ones_are_copied() {
    for runtime in RUNTIMES {
        let pair = pair(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        write_until_loaned(&pair);
        for (number, len) in (0..).zip([0, 100, 4084, 4088, 5000, 65_536, 1 << 20, 3_000_001]) {
            let before = loaned_samples(&pair.subscriber);
            pair.writer.write(&Octets::new(number, len)).expect("room");
            assert_eq!(pair.take(1)[0].data, Some(Octets::new(number, len)));
            assert_eq!(loaned_samples(&pair.subscriber) - before, u64::from(len >= 4088), "{runtime:?}: {len}");
        }
        assert_eq!(copied_without_loan(&pair.publisher), 0);
    }
}

/// A loaned payload written by the application arrives and remains readable until it is released,
/// even if more samples are written.
#[test]
fn held_loan_is_not_overwritten() {
    for runtime in RUNTIMES {
        let pair = pair(runtime, reliable_writer(History::KeepLast(1)), reliable_reader(History::KeepLast(1)));
        write_until_loaned(&pair);
        pair.reader.borrow_samples(true).expect("open");
        let mut held = Vec::new();
        for number in 0..200_u8 {
            let sample = Octets::new(number, 10_000 + usize::from(number));
            let loan = loan(&pair.writer, &sample);
            assert!(loan.is_shared());
            pair.writer.write_loaned(loan).expect("room");
            let borrowed = borrow(&pair);
            assert!(borrowed.is_loaned() && borrowed.info.valid_data);
            if number % 10 == 0 {
                held.push((sample, borrowed));
            }
        }
        for (sample, borrowed) in &held {
            assert_eq!((&decoded(borrowed), borrowed.is_intact()), (sample, true), "{runtime:?}");
            let mut some = [0; 5];
            assert_eq!((borrowed.read_at(4 + 7, &mut some), &some[..]), (5, &sample.bytes[7..12]));
            assert_eq!(borrowed.read_at(borrowed.len(), &mut some), 0);
        }
        assert_eq!(loaned_samples(&pair.subscriber), 200);
    }
}

/// A borrowing reader also supports `take`, and a copying reader also supports `take_loaned`.
#[test]
fn borrowing_and_copying_reads_can_be_combined() {
    let pair = pair(Runtime::Inline, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    write_until_loaned(&pair);
    for borrows in [true, false] {
        pair.reader.borrow_samples(borrows).expect("open");
        for number in 0..20 {
            let sample = Octets::new(number, 9_999);
            pair.writer.write_loaned(loan(&pair.writer, &sample)).expect("room");
            if number % 2 == 0 {
                assert_eq!(pair.take(1)[0].data, Some(sample));
            } else {
                let borrowed = borrow(&pair);
                assert_eq!((borrowed.is_loaned(), decoded(&borrowed)), (borrows, sample));
            }
        }
    }
}

/// If no shared memory is free, payloads are copied and counted. They arrive in order, and the
/// writer does not wait for the holder.
#[test]
fn payloads_are_copied_when_no_shared_memory_is_free() {
    let domain = domain();
    let (publisher, subscriber) = (shares_memory(domain, 1 << 20), shares_memory(domain, 1 << 20));
    let qos = (reliable_writer(History::KeepLast(1)), reliable_reader(History::KeepAll));
    let pair = Pair::between(publisher, subscriber, qos.0, qos.1);
    write_until_loaned(&pair);
    pair.reader.borrow_samples(true).expect("open");
    let mut held = Vec::new();
    for number in 0..20 {
        let sample = Octets::new(number, 200_000);
        pair.writer.write(&sample).expect("the writer waits for no reader");
        let borrowed = borrow(&pair);
        held.push((sample, borrowed));
    }
    let borrowed = held.iter().filter(|(_, borrowed)| borrowed.is_loaned()).count();
    assert!((2..6).contains(&borrowed), "one MiB holds few loans: {borrowed}");
    assert!(held.iter().all(|(sample, borrowed)| decoded(borrowed) == *sample));
    assert_eq!(copied_without_loan(&pair.publisher), 20 - borrowed as u64);
    drop(held);
    let sample = Octets::new(1, 200_000);
    pair.writer.write(&sample).expect("room");
    assert!(borrow(&pair).is_loaned(), "released memory is loaned again");
    // More than the capacity of the segment.
    let loan = loan(&pair.writer, &Octets::new(2, 2 << 20));
    assert!(!loan.is_shared());
    pair.writer.write_loaned(loan).expect("room");
    assert_eq!(decoded(&borrow(&pair)), Octets::new(2, 2 << 20));
}

/// One sample for readers that borrow, that copy, and that share no memory with the writer.
#[test]
fn borrowing_copying_and_remote_readers_receive_the_same_sample() {
    for reliable in [true, false] {
        let domain = domain();
        let participant = |memory| {
            let participant = on_loopback(domain, Runtime::Shared).shared_memory(memory).build();
            participant.expect("participant")
        };
        let (publisher, subscribers) = (participant(true), [true, true, false, true].map(participant));
        let qos = if reliable {
            (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
        } else {
            (
                DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() },
                DataReaderQos::default(),
            )
        };
        let readers =
            subscribers.each_ref().map(|subscriber| create_reader::<Octets>(subscriber, "Topic", qos.1.clone()));
        readers[0].borrow_samples(true).expect("open");
        let writer = create_writer::<Octets>(&publisher, "Topic", qos.0);
        wait_until(&[&publisher], "matches", || writer.matched_subscriptions().expect("open").len() == 4);
        let before = Octets::new(255, 20_000);
        wait_until(&[&publisher], "rings, and matches of all", || {
            writer.write(&before).expect("room");
            let received = readers.iter().filter(|reader| reader.take_loaned().expect("open").is_some()).count();
            received == 4 && [0, 1, 3].iter().all(|at| loaned_samples(&subscribers[*at]) > 0)
        });
        let loaned_before = subscribers.each_ref().map(loaned_samples);
        for number in 0..30 {
            // Alternately loaned and serialized.
            let sample = Octets::new(number, 20_000);
            if number % 2 == 0 {
                writer.write_loaned(loan(&writer, &sample)).expect("room");
            } else {
                writer.write(&sample).expect("room");
            }
            for (at, reader) in readers.iter().enumerate() {
                let mut taken = None;
                wait_until(&[&publisher], "a sample", || {
                    taken = reader.take_loaned().expect("open");
                    taken.as_ref().is_some_and(|taken| decoded(taken) != before)
                });
                let taken = taken.expect("there is one");
                assert_eq!(decoded(&taken), sample, "reader {at}");
                assert_eq!(taken.is_loaned(), at == 0);
            }
        }
        let all = subscribers.each_ref().map(loaned_samples);
        assert!([0, 1, 3].iter().all(|at| all[*at] >= loaned_before[*at] + 30) && all[2] == 0, "{all:?}");
    }
}

/// A late joiner receives the history as loans.
#[test]
fn late_joiner_receives_the_history_as_loans() {
    let domain = domain();
    let publisher = shared(domain, Runtime::Shared);
    let qos = DataWriterQos { durability: Durability::TransientLocal, ..reliable_writer(History::KeepAll) };
    let writer = create_writer::<Octets>(&publisher, "Topic", qos);
    let early = shared(domain, Runtime::Shared);
    let qos = DataReaderQos { durability: Durability::TransientLocal, ..reliable_reader(History::KeepAll) };
    let first = create_reader::<Octets>(&early, "Topic", qos.clone());
    wait_until(&[&publisher], "a ring", || writer.loan(4).expect("open").is_shared());
    for number in 0..12 {
        writer.write(&Octets::new(number, 50_000)).expect("room");
    }
    let late = shared(domain, Runtime::Shared);
    let second = create_reader::<Octets>(&late, "Topic", qos);
    for (participant, reader) in [(&early, &first), (&late, &second)] {
        let mut taken = Vec::new();
        wait_until(&[&publisher], "history", || {
            taken.extend(reader.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
            taken.len() == 12
        });
        assert!((0..).zip(&taken).all(|(number, sample)| *sample == Octets::new(number, 50_000)));
        assert!(loaned_samples(participant) > 0);
    }
}

/// Payloads that the application holds remain intact when the reader's participant is closed, and
/// then the writer's.
#[test]
fn held_loans_outlive_their_participants() {
    let mut pair = pair(Runtime::Shared, reliable_writer(History::KeepLast(1)), reliable_reader(History::KeepLast(1)));
    write_until_loaned(&pair);
    pair.reader.borrow_samples(true).expect("open");
    let sample = Octets::new(9, 100_000);
    pair.writer.write(&sample).expect("room");
    let borrowed = borrow(&pair);
    assert!(borrowed.is_loaned());
    pair.subscriber.close().expect("open");
    for number in 0..50 {
        pair.writer.write(&Octets::new(number, 100_000)).expect("room");
    }
    assert_eq!((decoded(&borrowed), borrowed.is_intact()), (sample.clone(), true));
    pair.publisher.close().expect("open");
    assert_eq!((decoded(&borrowed), borrowed.is_intact()), (sample, true));
    pair.subscriber = shared(domain(), Runtime::Shared);
}

/// Content filters and queries read loaned payloads.
#[test]
fn content_filter_reads_loaned_payloads() {
    let domain = domain();
    let (publisher, subscriber) = (shared(domain, Runtime::Shared), shared(domain, Runtime::Shared));
    let topic = subscriber.create_topic::<Blob>("Topic", TopicQos::default()).expect("topic");
    let filtered = subscriber.create_contentfilteredtopic("Large", &topic, "number > %0", &["5"]).expect("filter");
    let readers = subscriber.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let reader = readers.create_datareader(&filtered, reliable_reader(History::KeepAll)).expect("reader");
    reader.borrow_samples(true).expect("open");
    let writer = create_writer::<Blob>(&publisher, "Topic", reliable_writer(History::KeepAll));
    wait_until(&[&publisher], "a ring", || writer.loan(4).expect("open").is_shared());
    for number in 0..10 {
        writer.write(&Blob::new(number, 10_000)).expect("room");
    }
    let mut taken = Vec::new();
    wait_until(&[&publisher], "samples", || {
        taken.extend(reader.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
        taken.len() == 4
    });
    assert!((6..).zip(&taken).all(|(number, blob)| *blob == Blob::new(number, 10_000)));
}

/// Loans work without readers on this host, and fail for types with a key.
#[test]
fn loan_works_without_borrowers_and_fails_for_keyed_types() {
    let publisher = shared(domain(), Runtime::Inline);
    let writer = create_writer::<Octets>(&publisher, "Topic", DataWriterQos::default());
    let loan = writer.loan(100).expect("open");
    assert_eq!((loan.is_shared(), loan.len()), (false, 100));
    writer.write_loaned(loan).expect("no process listens");
    assert!(writer.loan(0).is_ok() && writer.loan(usize::MAX).is_err());
    let keyed = create_writer::<Shape>(&publisher, "Shapes", DataWriterQos::default());
    assert!(matches!(keyed.loan(8), Err(Error::IllegalOperation { .. })));
    assert_eq!(copied_without_loan(&publisher), 0);
}
