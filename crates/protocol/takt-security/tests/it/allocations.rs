//! Tests that sealing and opening allocate no Rust memory while a session lasts, and that
//! handshakes respect their memory limit.

use std::time::Duration;

use takt_security::handshake::{
    Credentials, HANDSHAKE_MEMORY_MAX, Handshake, Options, PARTICIPANT_DATA_LEN_MAX, PERMISSIONS_LEN_MAX,
};
use takt_security::identity::{Authority, Certificate, Identity, KeyAlgorithm, PrivateKey, secure_guid_prefix};
use takt_security::keys::{KeyMaterial, TransformKind};
use takt_security::message::GenericMessage;
use takt_security::tools::{Issuer, Validity};
use takt_security::transform::{Opener, Receivers, Replays, Sealer};
use takt_testkit::memory::{allocations, peak_octets};
use takt_wire::parameter::{PID_PARTICIPANT_GUID, ParameterListBuilder};
use takt_wire::{Endianness, EntityId, Guid, GuidPrefix};

#[test]
fn sealing_and_opening_allocate_no_memory() {
    for kind in TransformKind::PROTECTING {
        let own = KeyMaterial::generate(kind).expect("random numbers");
        let remote = own.for_receiver().expect("random numbers");
        let mut sealer = Sealer::new(own).expect("a sealer");
        sealer.add_receiver(remote.clone()).expect("room");
        let mut opener = Opener::new(remote).expect("an opener").with_replays(Replays::Refused);
        let (mut frame, mut memory) = (vec![0; 2_048], vec![0; 2_048]);
        let mut pass = || {
            let payload = sealer.seal_payload(&mut frame, 64..1_088).expect("room");
            opener.open_payload(&frame[payload], &mut memory).expect("its own");
            frame[64..68].copy_from_slice(&[0x15, 1, 0xfc, 3]);
            let submessage = sealer.seal_submessage(&mut frame, 64..1_088, Receivers::All).expect("room");
            opener.open_submessage(&frame[submessage], &mut memory).expect("its own");
            frame[64..84].copy_from_slice(b"RTPS\x02\x05\x01\x99ABCDEFGHIJKL");
            frame[84..88].copy_from_slice(&[0x15, 1, 0xe8, 3]);
            let message = sealer.seal_message(&mut frame, 64..1_088, Receivers::All).expect("room");
            opener.open_message(&frame[message], &mut memory).expect("its own");
        };
        pass();
        let count = allocations(|| (0..100).for_each(|_| pass()));
        assert_eq!(count, 0, "{kind:?}");
    }
}

fn credentials(issuer: &Issuer, name: &str, validity: Validity) -> Credentials {
    let (pem, key) = issuer.issue(name, KeyAlgorithm::EcP256, validity).expect("an identity");
    let certificate = Certificate::from_pem(&pem).expect("a certificate");
    let prefix = secure_guid_prefix(&certificate, GuidPrefix([1; 12])).expect("a prefix");
    let guid = Guid::new(prefix, EntityId::PARTICIPANT);
    let mut list = ParameterListBuilder::new(Endianness::Big);
    list.put(PID_PARTICIPANT_GUID, |value| value.guid(guid));
    list.put(0x8000, |value| value.bytes(&vec![0; PARTICIPANT_DATA_LEN_MAX - 40]));
    let identity = Identity::new(certificate, PrivateKey::from_pem(&key, None).expect("a key")).expect("an identity");
    let authority = Authority::from_pem(&issuer.certificate_pem().expect("PEM")).expect("an authority");
    let permissions = vec![b'x'; PERMISSIONS_LEN_MAX];
    Credentials::new(guid, identity, authority, permissions, list.finish(), Options::default()).expect("fits")
}

#[test]
fn handshake_with_the_largest_messages_stays_below_its_memory_limit() {
    let validity = Validity { not_before: 0, not_after: 4_000_000_000 };
    let issuer = Issuer::create("CA", KeyAlgorithm::EcP256, validity).expect("an authority");
    let mut all = ["Alice", "Bob"].map(|name| credentials(&issuer, name, validity));
    all.sort_by_key(Credentials::guid);
    let [initiator, replier] = &all;
    let mut first = Handshake::new(initiator, replier.guid(), Duration::ZERO).expect("new");
    first.credit(1 << 20);
    let request =
        std::iter::from_fn(|| first.poll_transmit(Duration::ZERO).map(<[u8]>::to_vec)).last().expect("a Request");
    let mut replier_handshake = None;
    let peak = peak_octets(|| {
        let mut second = Handshake::new(replier, initiator.guid(), Duration::ZERO).expect("new");
        let message = GenericMessage::parse(&request).expect("a message");
        second.handle(replier, &message, request.len(), Duration::ZERO, 1_800_000_000).expect("a Request");
        replier_handshake = Some(second);
    });
    assert!(
        replier_handshake.is_some_and(|mut second| second.poll_transmit(Duration::ZERO).is_some()),
        "it has its Reply"
    );
    assert!(request.len() > 50_000, "{}", request.len());
    // Two copies of the Reply exist while it is created.
    assert!(peak > 100_000 && peak < 2 * HANDSHAKE_MEMORY_MAX, "{peak}");
}
