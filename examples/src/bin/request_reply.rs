//! Request and reply: two topics, and an identifier that a reply repeats.

use takt::prelude::*;

#[derive(DdsType, Clone, Debug, Default)]
struct Request {
    id: u64,
    terms: Vec<i32>,
}

#[derive(DdsType, Clone, Debug, Default)]
struct Reply {
    id: u64,
    sum: i32,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::new(0)?;

    let replies = participant.writer_with::<Reply>("SumReply", DataWriterQos::reliable().keep_all())?;
    let service = participant.reader_with::<Request>("SumRequest", DataReaderQos::reliable().keep_all())?;
    service.on_data_available(move |service| {
        for request in service.take(usize::MAX).into_iter().flatten().filter_map(|sample| sample.data) {
            let reply = Reply { id: request.id, sum: request.terms.iter().sum() };
            replies.write(&reply).expect("the participant is open, and there is room");
        }
    })?;

    let results = participant.reader_with::<Reply>("SumReply", DataReaderQos::reliable().keep_all())?;
    let requests = participant.writer_with::<Request>("SumRequest", DataWriterQos::reliable().keep_all())?;
    for (id, terms) in [(1, vec![2, 3]), (2, vec![10, 20, 30])] {
        requests.write(&Request { id, terms })?;
        let reply = results.recv_timeout(secs(10))?.data.expect("no reply is disposed");
        println!("request {}: {}", reply.id, reply.sum);
    }
    Ok(())
}
