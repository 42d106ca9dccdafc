//! Asynchronous code: a stream of samples on Takt's executor. Other async executors work as well.

use std::sync::mpsc;

use takt::prelude::*;
use takt::real_time::Priority;

#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    celsius: f64,
}

fn main() -> takt::Result<()> {
    let executor = Executor::builder("async").start()?;
    let participant = DomainParticipant::builder(0).executor(&executor).build()?;
    let reader = participant.reader_with::<Reading>("Temperature", DataReaderQos::reliable().keep_all())?;
    let writer = participant.writer_with::<Reading>("Temperature", DataWriterQos::reliable().keep_all())?;

    let (done, finished) = mpsc::channel();
    let _task = executor.spawn(Priority::NORMAL, "watch", async move {
        let mut samples = reader.stream();
        for _ in 0..3 {
            if let Some(Ok(sample)) = samples.next().await {
                println!("{:?}", sample.data.unwrap_or_default());
            }
        }
        done.send(()).expect("main waits");
    })?;
    for step in 0..3 {
        writer.write(&Reading { celsius: 20.0 + f64::from(step) })?;
    }
    finished.recv().expect("the task ends");
    Ok(())
}
