//! The ring on atomics whose scheduler the tests hold in hand (shuttle): writer and reader in many orders of events, and
//! small cases in all of them. Atomics are sequentially consistent here: orders of memory are for Miri to judge.

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

/// Records of one line and of two by turns.
fn record(n: u8) -> Vec<u8> {
    vec![n; if n.is_multiple_of(2) { 9 } else { 60 }]
}

/// A bell that stays rung until it is heard, as a socket with a byte in it does.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().expect("no thread panics inside") = true;
        self.changed.notify_one();
    }

    fn hear(&self) {
        let mut rung = self.rung.lock().expect("no thread panics inside");
        while !*rung {
            rung = self.changed.wait(rung).expect("no thread panics inside");
        }
        *rung = false;
    }
}

/// A reader that sleeps whenever there is nothing hears of every record; otherwise this is a deadlock, which fails.
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
                if needs_bell(&lane) {
                    bell.ring();
                }
            }
        })
    };
    let (mut head, mut bytes) = (Head::default(), [0; 64]);
    for n in 0..count {
        loop {
            if let Some((ports, len)) = head.pop(&lane, &mut bytes).expect("a sound lane") {
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

/// More than the ring holds: it is full, given back, and skipped at its end.
#[test]
fn many_records_in_many_orders() {
    shuttle::check_random(|| every_record_wakes(7), 2_000);
    shuttle::check_pct(|| every_record_wakes(6), 2_000, 3);
}
