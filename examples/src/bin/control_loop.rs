//! Control loop with a proven latency bound. `takt analyze examples/control_loop.toml` computes the
//! maximum latency of its command. `control_loop` runs the loop for a second and prints the
//! statistics of the executor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use takt::prelude::*;
use takt::real_time::Priority;

#[derive(DdsType, Clone, Debug, Default)]
struct Command {
    step: u32,
    torque: f64,
}

fn main() -> takt::Result<()> {
    let executor = Executor::builder("control").start()?;
    let participant = DomainParticipant::builder(0).executor(&executor).build()?;
    let qos = DataReaderQos::reliable().latency(ms(10)).max_size(64).priority(46);
    let actuator = participant.reader_with::<Command>("Command", qos)?;
    actuator.on_data_available(|actuator| {
        let _applied = actuator.take(usize::MAX).map(|samples| samples.len());
    })?;
    let qos = DataWriterQos::reliable().min_separation(ms(5)).refuse_early().max_size(64).priority(46);
    let controller = participant.writer_with::<Command>("Command", qos)?;

    let mut step = 0;
    let skipped = Arc::new(AtomicU32::new(0));
    let skips = Arc::clone(&skipped);
    let control = executor.every(ms(10), Priority::new(50), "control loop", move || {
        step += 1;
        // Refused if the last run was more than 5 ms late, and this one is not.
        if controller.write(&Command { step, torque: f64::from(step) }).is_err() {
            skips.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    std::thread::sleep(Duration::from_secs(1));
    let statistics = control.statistics();
    println!("{} runs, the longest took {} ns", statistics.durations.count(), statistics.durations.max_ns());
    println!("skipped commands: {}", skipped.load(Ordering::Relaxed));
    println!("late commands: {}", actuator.latency_exceeded_status()?.map_or(0, |status| status.total_count));
    Ok(())
}
