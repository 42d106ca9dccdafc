//! Tests of the fault injector: faults as configured, and reproducible.

use takt_transport::{Commit, FaultConfig, FaultCounts, FaultInjector, Faults, FlowId, Transport};

use takt_testkit::waiting::until;

use super::{drain, drain_until, loopback, open, user_locator};

const COUNT: u32 = 2000;

/// Sends [`COUNT`] numbers in bursts. Returns those that arrive, and the fault counts.
fn run(domain: u32, config: FaultConfig) -> (Vec<u32>, FaultCounts, FaultCounts) {
    let mut a = FaultInjector::new(open(&loopback(domain)), FaultConfig { rx: Faults::NONE, ..config });
    let mut b = FaultInjector::new(open(&loopback(domain)), FaultConfig { tx: Faults::NONE, ..config });
    let to = user_locator(&b);
    let mut arrived = Vec::new();
    for n in 0..COUNT {
        a.loan().expect("a frame is loaned")[..4].copy_from_slice(&n.to_le_bytes());
        a.commit(Commit::new(4, FlowId::DEFAULT, &[to])).expect("the frame is accepted");
        if n % 50 == 49 {
            a.flush().expect("flush succeeds");
            arrived.extend(drain_until(a.status().stats.datagrams_out, &mut b));
        }
    }
    // Delayed datagrams are sent when the sender is idle.
    for _ in 0..16 {
        assert_eq!(drain(&mut a), []);
    }
    arrived.extend(drain_until(a.status().stats.datagrams_out, &mut b));
    let arrived = arrived.into_iter().map(|(bytes, _)| number(&bytes)).collect();
    (arrived, a.tx_counts(), b.rx_counts())
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes were sent"))
}

fn both_directions(seed: u64, faults: Faults) -> FaultConfig {
    FaultConfig { seed, tx: faults, rx: faults }
}

#[test]
fn same_seed_has_the_same_effect() {
    let faults = Faults { loss: 0.1, duplication: 0.1, reorder: 0.2, hold: 4 };
    // Losses and duplicates only; the order depends on the kernel too.
    let effect = |seed| {
        let (mut arrived, tx, rx) = run(70, both_directions(seed, faults));
        arrived.sort_unstable();
        (arrived, tx, rx)
    };
    let first = effect(1);
    assert_eq!(first, effect(1));
    assert_ne!(first, effect(2));
}

#[test]
fn every_loss_is_counted() {
    let faults = Faults { loss: 0.3, duplication: 0.1, reorder: 0.1, hold: 4 };
    let (arrived, tx, rx) = run(71, both_directions(3, faults));
    assert_eq!(tx.seen, u64::from(COUNT));
    assert_eq!(rx.seen, tx.seen - tx.lost + tx.duplicated);
    assert_eq!(arrived.len() as u64, rx.seen - rx.lost + rx.duplicated);
    assert!(tx.lost > 0 && tx.duplicated > 0 && tx.reordered > 0, "{tx:?}");
    assert!(rx.lost > 0 && rx.duplicated > 0 && rx.reordered > 0, "{rx:?}");
}

#[test]
fn reordering_loses_nothing_and_is_bounded() {
    let faults = Faults { reorder: 0.3, hold: 5, ..Faults::NONE };
    let config = FaultConfig { seed: 4, tx: faults, rx: Faults::NONE };
    let (mut arrived, tx, _) = run(72, config);
    let late = arrived.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(late > 100, "{late} of {} held back", tx.reordered);
    for (at, n) in arrived.iter().enumerate() {
        assert!(at.abs_diff(*n as usize) <= 12, "{n} arrived as number {at}");
    }
    arrived.sort_unstable();
    assert!(arrived.into_iter().eq(0..COUNT));
}

#[test]
fn duplicates_arrive_twice() {
    let faults = Faults { duplication: 1.0, ..Faults::NONE };
    let config = FaultConfig { seed: 5, tx: Faults::NONE, rx: faults };
    let (arrived, _, rx) = run(73, config);
    assert_eq!((rx.seen, rx.duplicated), (u64::from(COUNT), u64::from(COUNT)));
    assert!(arrived.into_iter().eq((0..COUNT).flat_map(|n| [n, n])));
}

/// Each destination of a frame has independent faults.
#[test]
fn destinations_are_lost_independently() {
    let faults = Faults { loss: 0.5, ..Faults::NONE };
    let config = FaultConfig { seed: 6, tx: faults, rx: Faults::NONE };
    let mut a = FaultInjector::new(open(&loopback(74)), config);
    let mut others = [open(&loopback(74)), open(&loopback(74))];
    let to = [user_locator(&others[0]), user_locator(&others[1])];
    for n in 0..100u8 {
        a.loan().expect("a frame is loaned")[0] = n;
        a.commit(Commit::new(1, FlowId::DEFAULT, &to)).expect("the frame is accepted");
    }
    a.flush().expect("flush succeeds");
    let sent = a.status().stats.datagrams_out;
    assert_eq!(sent, 200 - a.tx_counts().lost);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    until("all that was sent is received", || {
        x.extend(drain(&mut others[0]).into_iter().map(|(bytes, _)| bytes));
        y.extend(drain(&mut others[1]).into_iter().map(|(bytes, _)| bytes));
        (x.len() + y.len()) as u64 >= sent
    });
    assert!(!x.is_empty() && !y.is_empty() && x != y);
}
