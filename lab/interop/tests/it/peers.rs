//! The peers of other vendors with one another. A failure here is not a fault of Takt. Only late
//! joiners are tested, since theirs is the only delivery between all peers that does not depend on
//! timing.

use takt_interop::programs::Program;

use crate::exchange::{Delivery, cases, exchange};
use crate::scene::Scene;

#[test]
fn cyclonedds_0_10_and_fast_dds_serve_late_joiners() {
    both_ways(Program::Cyclone10, Program::FastDds2);
}

#[test]
fn cyclonedds_11_and_cyclonedds_0_10_serve_late_joiners() {
    both_ways(Program::Cyclone11, Program::Cyclone10);
}

fn both_ways(left: Program, right: Program) {
    let Some(mut scene) = Scene::new(left, right) else { return };
    let mut failures = Vec::new();
    for (publisher, subscriber) in [(left, right), (right, left)] {
        let cases = cases(publisher, subscriber).into_iter().filter(|case| case.delivery == Delivery::LateJoiner);
        for (number, case) in cases.enumerate() {
            let topic = format!("{}{number}", if publisher == left { "l" } else { "r" });
            let result = match publisher == left {
                true => exchange((&mut scene.left, left), (&mut scene.right, right), &case, &topic, None),
                false => exchange((&mut scene.right, right), (&mut scene.left, left), &case, &topic, None),
            };
            failures.extend(result.err().map(|why| format!("{publisher} -> {subscriber}, {case}: {why}")));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
