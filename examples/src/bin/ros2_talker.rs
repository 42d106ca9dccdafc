//! Talker for ROS 2: `ros2 topic echo /chatter` prints its messages. `ros2_talker COUNT` exits
//! after `COUNT` messages.

use takt::prelude::*;

#[derive(DdsType, Clone, Debug, Default)]
#[dds(name = "std_msgs::msg::dds_::String_", extensibility = "final")]
struct RosString {
    data: String,
}

fn main() -> takt::Result<()> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(u32::MAX);
    let participant = DomainParticipant::builder(0).name("talker").build()?;
    let writer = participant.writer_with::<RosString>("rt/chatter", DataWriterQos::reliable().keep_last(10))?;
    writer.wait_for_readers(1, secs(30))?;
    for number in 1..=count {
        let data = format!("hello {number}");
        println!("{data}");
        writer.write(&RosString { data })?;
        std::thread::sleep(ms(100));
    }
    writer.wait_for_acknowledgments(secs(10))
}
