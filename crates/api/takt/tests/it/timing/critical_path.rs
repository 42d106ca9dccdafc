//! System calls on the critical path of an urgent sample, from `write` to the listener that takes
//! it: only sending, receiving and waiting are permitted. No lock is contended, no memory is
//! allocated (`it_alloc` counts allocations), and no other thread is woken.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::counting_calls::with_counted_calls;
use crate::support::*;
use takt::qos::*;
use takt::*;

/// Number of samples observed.
const SAMPLES: i32 = 50;

/// Permitted system calls.
const EXPECTED: [(i64, &str); 9] = [
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendmmsg, "sendmmsg"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_recvmmsg, "recvmmsg"),
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_epoll_pwait2, "epoll_pwait2"),
];

/// Listener that counts the samples it takes.
struct Counting {
    taken: Rc<Cell<i32>>,
    sample: Shape,
}

// SAFETY: under `Runtime::Inline` the thread that built the participant calls its listeners; it
// also owns the counter.
unsafe impl Send for Counting {}

impl DataReaderListener<Shape> for Counting {
    fn on_data_available(&mut self, reader: &DataReader<Shape>) {
        let count = |_: &Shape, _: &SampleInfo| self.taken.set(self.taken.get() + 1);
        reader.take_each(usize::MAX, &mut self.sample, count).expect("open");
    }
}

/// Two participants of this thread with an urgent topic, and the number of samples that its
/// listener took.
struct Pair {
    from: DomainParticipant,
    to: DomainParticipant,
    writer: DataWriter<Shape>,
    _reader: DataReader<Shape>,
    taken: Rc<Cell<i32>>,
}

impl Pair {
    fn new(idle: Idle) -> Self {
        let domain = domain();
        let build =
            || on_loopback(domain, Runtime::Inline).shared_memory(false).idle(idle).build().expect("participant");
        let (from, to) = (build(), build());
        let topic = from.create_topic::<Shape>("Brake", TopicQos::default()).expect("topic");
        let publisher = from.create_publisher(PublisherQos::default()).expect("publisher");
        // Without a priority, a frequent destination gets a connected socket after some samples.
        let mut qos = reliable_writer(History::KeepLast(8));
        qos.property.set(PRIORITY_PROPERTY, "46", false);
        let writer = publisher.create_datawriter(&topic, qos).expect("writer");
        let topic = to.create_topic::<Shape>("Brake", TopicQos::default()).expect("topic");
        let subscriber = to.create_subscriber(SubscriberQos::default()).expect("subscriber");
        let mut qos = reliable_reader(History::KeepLast(8));
        qos.property.set(PRIORITY_PROPERTY, "46", false);
        let reader = subscriber.create_datareader(&topic, qos).expect("reader");
        let taken = Rc::default();
        reader.set_listener(Box::new(Counting { taken: Rc::clone(&taken), sample: Shape::default() })).expect("open");
        wait_until(&[&from, &to], "match", || writer.matched_subscriptions().expect("open").len() == 1);
        Self { from, to, writer, _reader: reader, taken }
    }

    /// Writes samples one by one, each after the previous one was taken.
    fn exchange(&self) {
        for x in 0..SAMPLES {
            let taken = self.taken.get();
            self.writer.write(&Shape::new("RED", x)).expect("room");
            while self.taken.get() == taken {
                self.to.spin_once(takt::Duration::from_millis(100)).expect("open");
            }
            // Receives the acknowledgments.
            self.from.spin_once(takt::Duration::ZERO).expect("open");
        }
    }
}

#[test]
fn urgent_sample_makes_no_system_call_except_send_receive_and_wait() {
    for idle in [Idle::Block, Idle::Spin] {
        let made = with_counted_calls(|calls| {
            let pair = Pair::new(idle);
            // Warm-up: performs what happens only once.
            pair.exchange();
            calls.during(|| pair.exchange())
        });
        let Some(made) = made else { return };
        let mut by_number: BTreeMap<i64, usize> = BTreeMap::new();
        made.iter().for_each(|number| *by_number.entry(*number).or_default() += 1);
        let count = |names: [&str; 3]| -> usize {
            let of = |(number, name): &(i64, &str)| names.contains(name).then(|| by_number.get(number).copied());
            EXPECTED.iter().filter_map(of).flatten().sum()
        };
        let others: Vec<_> =
            by_number.iter().filter(|(number, _)| EXPECTED.iter().all(|(expected, _)| expected != *number)).collect();
        assert!(others.is_empty(), "{idle:?}: system calls of these numbers, and how often: {others:?}");
        let sent = count(["sendto", "sendmsg", "sendmmsg"]);
        assert!((50..=120).contains(&sent), "{idle:?}: the sample, and an acknowledgment or a heartbeat: {sent}");
        assert!(count(["recvfrom", "recvmsg", "recvmmsg"]) >= 50, "{idle:?}: {by_number:?}");
    }
}
