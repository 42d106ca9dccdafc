//! Capture files of participants.

use crate::support::*;
use takt::qos::*;
use takt::*;
use takt_testkit::directory::Directory;
use takt_testkit::pcapng::Pcapng;

/// Returns whether `octets` contains `part`.
fn contains(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}

#[test]
fn capture_has_discovery_and_the_loaned_samples_of_shared_memory() {
    for runtime in RUNTIMES {
        let (directory, domain) = (Directory::new("capture"), domain());
        let participant = |file: &str, name: &str| {
            let builder = on_loopback(domain, runtime).shared_memory(true).name(name);
            builder.capture(directory.text(file)).build().expect("participant")
        };
        let (publisher, subscriber) = (participant("out.pcapng", "talker"), participant("in.pcapng", "listener"));
        let pair =
            Pair::between(publisher, subscriber, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        // Once the ring of the reader is known, its samples are loaned.
        pair.exchange(50, 100);
        let sent: Vec<Blob> = (100..105).map(|number| Blob::new(number, 20_000)).collect();
        sent.iter().for_each(|blob| pair.writer.write(blob).expect("room"));
        assert_eq!(pair.take(sent.len()).into_iter().filter_map(|sample| sample.data).collect::<Vec<_>>(), sent);
        let loaned = pair.subscriber.diagnostics().counters().expect("open").loaned_samples;
        assert_eq!(loaned, 5, "{runtime:?}");
        drop(pair);
        for (name, label, is_outbound) in [("out.pcapng", "talker", true), ("in.pcapng", "listener", false)] {
            let file = Pcapng::read(&directory.file(name));
            let names: Vec<&str> = file.interfaces.iter().map(|interface| interface.name.as_str()).collect();
            assert_eq!(names, ["udp", "shm"]);
            assert!(file.interfaces[0].description.contains(label), "{:?}", file.interfaces[0]);
            assert!(file.packets.iter().all(|packet| packet.udp_payload().starts_with(b"RTPS")));
            assert!(file.packets_of("udp").count() > 0);
            let of_samples: Vec<_> =
                file.packets_of("shm").filter(|packet| packet.is_outbound == is_outbound).collect();
            for blob in &sent {
                let whole = of_samples.iter().filter(|packet| contains(packet.udp_payload(), &blob.bytes));
                assert_eq!(whole.count(), 1, "{runtime:?}: {name}: {}", blob.number);
            }
        }
    }
}

/// The participants of a process share a file, and the one that cannot write it is not built.
#[test]
fn participants_of_a_process_share_a_file() {
    let (directory, domain) = (Directory::new("capture-shared"), domain());
    let path = directory.text("{pid}.pcapng");
    let participant = || on_loopback(domain, Runtime::Inline).shared_memory(false).capture(&path).build();
    let (first, second) = (participant().expect("participant"), participant().expect("participant"));
    wait_until(&[&first, &second], "discovery", || first.discovered_participants().expect("open").len() == 1);
    drop((first, second));
    let file = Pcapng::read(&directory.file(&format!("{}.pcapng", std::process::id())));
    assert_eq!((file.sections, file.interfaces.len()), (1, 2));
    assert!(file.interfaces.iter().all(|interface| interface.counts.is_some_and(|(seen, lost)| seen > 0 && lost == 0)));
    let builder = on_loopback(domain, Runtime::Inline).capture("/nonexistent/file.pcapng");
    let error = builder.build().expect_err("no such directory").to_string();
    assert!(error.contains("/nonexistent/file.pcapng"), "{error}");
}
