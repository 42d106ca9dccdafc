//! Model checking of the ring with shuttle: random schedules of writer and reader, and all
//! schedules of small cases. Atomics are sequentially consistent here; Miri checks the memory
//! orders.

use shuttle::sync::Arc;
use shuttle::sync::atomic::AtomicU64;
use shuttle::sync::{Condvar, Mutex};

use super::*;

const PORTS: Ports = Ports { to: 1, from: 2 };

struct Modelled(AtomicU64);

impl Word for Modelled {
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

fn lane() -> Arc<Vec<Modelled>> {
    Arc::new((0..RECORDS + 32).map(|_| Modelled(AtomicU64::new(0))).collect())
}

/// Makes records of one line and of two lines alternately.
fn record(n: u8) -> Vec<u8> {
    vec![n; if n.is_multiple_of(2) { 9 } else { 60 }]
}

/// Wake-up that stays pending until it is consumed, like a byte in a socket.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().expect("no thread panics while holding the lock") = true;
        self.changed.notify_one();
    }

    fn hear(&self) {
        let mut rung = self.rung.lock().expect("no thread panics while holding the lock");
        while !*rung {
            rung = self.changed.wait(rung).expect("no thread panics while holding the lock");
        }
        *rung = false;
    }
}

/// Checks that a reader that sleeps whenever the ring is empty is woken for every record; a missed
/// wake-up is a deadlock, which fails.
fn every_record_wakes(count: u8) {
    let (lane, bell) = (lane(), Arc::new(Bell::default()));
    let writer = {
        let (lane, bell) = (Arc::clone(&lane), Arc::clone(&bell));
        shuttle::thread::spawn(move || {
            let mut tail = Tail::default();
            for n in 0..count {
                while tail.push(&lane, PORTS, &record(n)).is_err() {
                    shuttle::thread::yield_now();
                }
                Modelled::fence();
                if needs_wakeup(&lane) {
                    bell.ring();
                }
            }
        })
    };
    let (mut head, mut bytes) = (Head::default(), [0; 64]);
    for n in 0..count {
        loop {
            if let Some((ports, len)) = head.pop(&lane, &mut bytes).expect("the ring is valid") {
                assert_eq!((ports, &bytes[..len]), (PORTS, &record(n)[..]));
                break;
            }
            fall_asleep(&lane);
            Modelled::fence();
            if head.is_drained(&lane) {
                bell.hear();
            }
            wake_up(&lane);
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
