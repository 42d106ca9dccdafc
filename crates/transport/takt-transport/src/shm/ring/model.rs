//! Model checking of the ring with shuttle: random schedules of writer and reader, and all
//! schedules of small cases. Atomics are sequentially consistent here; Miri checks the memory
//! orders.

use shuttle::sync::Arc;
use shuttle::sync::atomic::AtomicU64;
use shuttle::sync::{Condvar, Mutex};

use super::*;

const PORTS: Ports = Ports { to: 1, from: 2 };

struct Modeled(AtomicU64);

impl Word for Modeled {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.0.swap(value, order)
    }

    fn fence() {}
}

fn new_ring() -> Arc<Vec<Modeled>> {
    Arc::new((0..RECORDS + 32).map(|_| Modeled(AtomicU64::new(0))).collect())
}

/// Makes records of one line and of two lines alternately.
fn record(n: u8) -> Vec<u8> {
    vec![n; if n.is_multiple_of(2) { 9 } else { 60 }]
}

/// Wake-up that stays pending until it is consumed, like a byte in a socket.
#[derive(Default)]
struct PendingWakeup {
    is_pending: Mutex<bool>,
    changed: Condvar,
}

impl PendingWakeup {
    fn set(&self) {
        *self.is_pending.lock().expect("no thread panics while holding the lock") = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut is_pending = self.is_pending.lock().expect("no thread panics while holding the lock");
        while !*is_pending {
            is_pending = self.changed.wait(is_pending).expect("no thread panics while holding the lock");
        }
        *is_pending = false;
    }
}

/// Checks that a reader that sleeps whenever the ring is empty is woken for every record; a missed
/// wake-up is a deadlock, which fails.
fn every_record_wakes(count: u8) {
    let (ring, wakeup) = (new_ring(), Arc::new(PendingWakeup::default()));
    let writer = {
        let (ring, wakeup) = (Arc::clone(&ring), Arc::clone(&wakeup));
        shuttle::thread::spawn(move || {
            let mut tail = Tail::default();
            for n in 0..count {
                while tail.push(&ring, PORTS, &record(n)).is_err() {
                    shuttle::thread::yield_now();
                }
                Modeled::fence();
                if needs_wakeup(&ring) {
                    wakeup.set();
                }
            }
        })
    };
    let (mut head, mut bytes) = (Head::default(), [0; 64]);
    for n in 0..count {
        loop {
            if let Some((ports, len)) = head.pop(&ring, &mut bytes).expect("the ring is valid") {
                assert_eq!((ports, &bytes[..len]), (PORTS, &record(n)[..]));
                break;
            }
            fall_asleep(&ring);
            Modeled::fence();
            if head.is_drained(&ring) {
                wakeup.wait();
            }
            wake_up(&ring);
        }
    }
    writer.join().expect("the writer ends");
}

#[test]
fn one_record_in_every_order() {
    shuttle::check_dfs(|| every_record_wakes(1), Some(50_000));
}

/// More records than the ring holds: the ring becomes full, is freed, and wraps.
#[test]
fn many_records_in_many_orders() {
    shuttle::check_random(|| every_record_wakes(7), 2_000);
    shuttle::check_pct(|| every_record_wakes(6), 2_000, 3);
}
