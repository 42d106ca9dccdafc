//! The peers among themselves: what fails here is not Takt's fault.

use takt_interop::programs::Program;

use crate::exchange::{cases, exchange};
use crate::scene::Scene;

fn both_ways(a: Program, b: Program) {
    let Some(mut scene) = Scene::new(a, b) else { return };
    let mut failures = Vec::new();
    let t0 = std::time::Instant::now();
    for (n, case) in cases(a, b).iter().enumerate() {
        let t = std::time::Instant::now();
        if let Err(why) = exchange((&mut scene.left, a), (&mut scene.right, b), case, &format!("L{n}")) {
            failures.push(format!("{a} -> {b}, {case}: {why}"));
        }
        if failures.len() > 8 { break }
        if t.elapsed().as_millis() > 300 { eprintln!("{case} {:?}", t.elapsed()); }
    }
    eprintln!("{:?}", t0.elapsed());
    for (n, case) in cases(b, a).iter().enumerate() {
        let t = std::time::Instant::now();
        if let Err(why) = exchange((&mut scene.right, b), (&mut scene.left, a), case, &format!("R{n}")) {
            failures.push(format!("{b} -> {a}, {case}: {why}"));
        }
        if failures.len() > 8 { break }
        if t.elapsed().as_millis() > 300 { eprintln!("{case} {:?}", t.elapsed()); }
    }
    eprintln!("{:?}", t0.elapsed());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn cyclone_10_and_fast_dds() {
    both_ways(Program::Cyclone10, Program::FastDds);
}
#[test]
fn cyclone_11_and_fast_dds() {
    both_ways(Program::Cyclone11, Program::FastDds);
}
#[test]
fn cyclone_10_and_cyclone_11() {
    both_ways(Program::Cyclone10, Program::Cyclone11);
}
