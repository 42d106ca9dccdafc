//! Packet vectors of os-ken (PyPI, Apache-2.0): each is decoded and encoded again to the same
//! octets.
//!
//! `make setup` installs the wheel. Vectors that are not decoded are listed here by name with the
//! reason. Any other failure, and an entry without a failure, fails the test.

use std::fs;
use std::path::PathBuf;

use takt_openflow::multipart::{ReplyBody, RequestBody};
use takt_openflow::{Message, Version};
use takt_testkit::not_run;

/// Vectors that are no valid message, or that this crate does not decode.
const NOT_BUILT: &[(&str, &str)] = &[
    ("of13/libofproto-OFP13-flow_mod.truncated64", "the file is empty: it stands for a message that was cut off"),
    ("of15/libofproto-OFP15-flow_desc_reply.packet", "its GOTO_TABLE says 2056 octets in a message of 80"),
    ("of15/libofproto-OFP15-meter_features_reply.packet", "its header says 32 octets, the file has 40"),
];

/// Vectors whose body is kept as octets. They round-trip, but have no type in this crate.
const KEPT_AS_OCTETS: &[(&str, &str)] = &[
    ("of14/5-66-ofp_flow_monitor_request.packet", "flow monitors are kept as octets"),
    ("of14/5-67-ofp_flow_monitor_reply.packet", "flow monitors are kept as octets"),
    ("of15/libofproto-OFP15-bundle_features_reply.packet", "features of bundles are kept as octets"),
    ("of15/libofproto-OFP15-bundle_features_request.packet", "features of bundles are kept as octets"),
    ("of15/libofproto-OFP15-flow_monitor_reply.packet", "flow monitors are kept as octets"),
    ("of15/libofproto-OFP15-flow_monitor_request.packet", "flow monitors are kept as octets"),
];

const DIRECTORIES: &[(&str, Version, usize)] = &[
    ("of10", Version::V1_0, 13),
    ("of13", Version::V1_3, 105),
    ("of14", Version::V1_4, 73),
    ("of15", Version::V1_5, 77),
];

/// Returns the directory in which the wheel is installed.
fn packet_data() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let library = fs::read_dir(cache.join("takt/venv/lib")).ok()?;
    let mut packages = library.filter_map(|entry| Some(entry.ok()?.path().join("site-packages")));
    packages.find_map(|path| Some(path.join("os_ken/tests/packet_data")).filter(|path| path.is_dir()))
}

/// Returns name and octets of each vector.
fn vectors(directory: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let entries = fs::read_dir(packet_data()?.join(directory)).expect("the wheel contains this directory");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("the directory can be read").path();
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            (format!("{directory}/{name}"), fs::read(&path).expect("the file can be read"))
        })
        .collect();
    files.sort();
    Some(files)
}

fn is_kept_as_octets(message: &Message) -> bool {
    match message {
        Message::MultipartRequest(request) => matches!(request.body, RequestBody::Other { .. }),
        Message::MultipartReply(reply) => matches!(reply.body, ReplyBody::Other { .. }),
        _ => false,
    }
}

fn reason<'a>(list: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    list.iter().find(|(listed, _)| *listed == name).map(|(_, reason)| *reason)
}

/// Returns the failure of a vector, or `None` if it round-trips.
fn fault(version: Version, octets: &[u8]) -> Option<String> {
    let (xid, message) = match Message::decode(version, octets) {
        Ok(decoded) => decoded,
        Err(error) => return Some(error.to_string()),
    };
    match message.encode(version, xid) {
        Ok(again) if again == octets => None,
        Ok(again) => Some(format!("encodes to {again:x?} instead of {octets:x?}")),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn published_vectors_round_trip() {
    if packet_data().is_none() {
        return not_run("os-ken is not installed in the cache of `make setup`");
    }
    let mut wrong = Vec::new();
    let mut built = 0;
    for (directory, version, count) in DIRECTORIES {
        let vectors = vectors(directory).expect("the wheel is installed");
        assert_eq!(vectors.len(), *count, "vectors in {directory}");
        for (name, octets) in vectors {
            let listed = reason(NOT_BUILT, &name);
            match (fault(*version, &octets), listed) {
                (None, None) => {
                    built += 1;
                    let (_, message) = Message::decode(*version, &octets).expect("the message is well formed");
                    let is_listed = reason(KEPT_AS_OCTETS, &name).is_some();
                    if is_kept_as_octets(&message) != is_listed {
                        wrong.push(format!("{name}: kept as octets: {}, listed: {is_listed}", !is_listed));
                    }
                }
                (None, Some(_)) => wrong.push(format!("{name} is no longer kept as octets: remove it from the list")),
                (Some(fault), None) => wrong.push(format!("{name}: {fault}")),
                (Some(_), Some(_)) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(built + NOT_BUILT.len(), DIRECTORIES.iter().map(|(_, _, count)| count).sum::<usize>());
}

#[test]
fn every_prefix_of_a_published_vector_is_malformed() {
    if packet_data().is_none() {
        return not_run("os-ken is not installed in the cache of `make setup`");
    }
    for (directory, version, _) in DIRECTORIES {
        for (name, octets) in vectors(directory).expect("the wheel is installed") {
            for len in 0..octets.len() {
                assert!(Message::decode(*version, &octets[..len]).is_err(), "{name} cut to {len} octets");
            }
        }
    }
}
