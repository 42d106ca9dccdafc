//! Tests of protection: round trips, layouts, single-bit damage, sessions, and receivers.

use takt_testkit::Random;

use super::*;
use crate::keys::{KeyMaterial, TransformKind, session_key};

const KINDS: [TransformKind; 4] = TransformKind::PROTECTING;
const FORMS: [Form; 3] = [Form::Payload, Form::Submessage, Form::Message];
const ROOM: usize = 64;

fn material(kind: TransformKind) -> KeyMaterial {
    KeyMaterial::generate(kind).expect("random numbers")
}

fn sealer(material: &KeyMaterial) -> Sealer {
    Sealer::new(material.clone()).expect("a sealer")
}

fn opener(material: &KeyMaterial) -> Opener {
    Opener::new(material.clone()).expect("an opener")
}

/// Returns plain octets of `form`: a payload, two submessages, or a message with them.
fn plain(form: Form, content_len: usize) -> Vec<u8> {
    let content: Vec<u8> = (0..content_len).map(|index| index as u8).collect();
    let mut octets = match form {
        Form::Payload => return content,
        Form::Submessage => Vec::new(),
        Form::Message => b"RTPS\x02\x05\x01\x99ABCDEFGHIJKL".to_vec(),
    };
    let [low, high] = u16::try_from(content_len).expect("short").to_le_bytes();
    octets.extend_from_slice(&[0x09, 0x01, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x15, 0x05, low, high]);
    octets.extend_from_slice(&content);
    octets
}

fn seal(sealer: &mut Sealer, form: Form, octets: &[u8], receivers: Receivers) -> Vec<u8> {
    let mut frame = [&[0xee; ROOM], octets, &[0xee; 2 * ROOM]].concat();
    let range = ROOM..ROOM + octets.len();
    let sealed = match form {
        Form::Payload => sealer.seal_payload(&mut frame, range.clone()),
        Form::Submessage => sealer.seal_submessage(&mut frame, range.clone(), receivers),
        Form::Message => sealer.seal_message(&mut frame, range.clone(), receivers),
    };
    let sealed = sealed.expect("there is room");
    assert!(range.start - sealed.start <= form.headroom(sealer.material().kind()));
    assert!(frame[..sealed.start].iter().chain(&frame[sealed.end..]).all(|octet| *octet == 0xee));
    frame[sealed].to_vec()
}

fn open(opener: &mut Opener, form: Form, octets: &[u8]) -> Result<Vec<u8>> {
    let mut memory = vec![0xee; octets.len()];
    let opened = match form {
        Form::Payload => opener.open_payload(octets, &mut memory)?,
        Form::Submessage => opener.open_submessage(octets, &mut memory)?,
        Form::Message => opener.open_message(octets, &mut memory)?,
    };
    assert!(opened.end == octets.len() || form == Form::Message, "all but messages end with their protection");
    let header = if form == Form::Message { &octets[..20] } else { &[] };
    Ok([header, opened.plain(octets, &memory)].concat())
}

#[test]
fn protected_octets_are_opened_for_every_kind_form_and_length() {
    for kind in KINDS {
        let own = material(kind);
        let (mut sealer, mut opener) = (sealer(&own), opener(&own));
        for form in FORMS {
            for len in [4, 8, 12, 16, 60, 1_024, 60_000] {
                let octets = plain(form, len);
                let sealed = seal(&mut sealer, form, &octets, Receivers::All);
                let overhead = form.headroom(kind) + sealer.tailroom(form);
                assert_eq!(sealed.len(), octets.len() + overhead, "{kind:?} {form:?} {len}");
                assert_eq!(open(&mut opener, form, &sealed), Ok(octets), "{kind:?} {form:?} {len}");
            }
        }
    }
}

#[test]
fn content_is_hidden_by_encryption_and_visible_with_a_signature() {
    let marker = b"plaintext-marker";
    for (kind, form) in KINDS.into_iter().flat_map(|kind| FORMS.map(|form| (kind, form))) {
        let mut octets = plain(form, 64);
        let at = octets.len() - 32;
        octets[at..at + marker.len()].copy_from_slice(marker);
        let sealed = seal(&mut sealer(&material(kind)), form, &octets, Receivers::All);
        let is_visible = sealed.windows(marker.len()).any(|window| window == marker);
        assert_eq!(is_visible, !kind.is_encrypted(), "{kind:?} {form:?}");
    }
}

#[test]
fn every_changed_bit_is_detected() {
    for (kind, form) in KINDS.into_iter().flat_map(|kind| FORMS.map(|form| (kind, form))) {
        for has_receiver in [false, true] {
            let own = material(kind);
            let mut sealer = sealer(&own);
            let own = if has_receiver { own.for_receiver().expect("random numbers") } else { own };
            if has_receiver {
                sealer.add_receiver(own.clone()).expect("room");
            }
            let mut opener = opener(&own);
            let octets = plain(form, 24);
            let sealed = seal(&mut sealer, form, &octets, Receivers::All);
            for bit in 0..sealed.len() * 8 {
                let mut damaged = sealed.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let opened = open(&mut opener, form, &damaged);
                assert!(opened.is_err(), "{kind:?} {form:?} octet {} bit {}", bit / 8, bit % 8);
            }
            assert_eq!(open(&mut opener, form, &sealed), Ok(octets), "{kind:?} {form:?}");
        }
    }
}

#[test]
fn body_opens_when_its_length_is_the_same_in_both_byte_orders() {
    // A body of 1,024 octets, whose length field is 0x0404.
    let own = material(TransformKind::Aes256Gcm);
    let octets = plain(Form::Submessage, 1_024 - 16);
    let sealed = seal(&mut sealer(&own), Form::Submessage, &octets, Receivers::All);
    assert_eq!(sealed[24..28], [0x30, 0x01, 0x04, 0x04]);
    let mut damaged = sealed;
    damaged[25] ^= 1;
    assert!(open(&mut opener(&own), Form::Submessage, &damaged).is_err());
}

#[test]
fn every_prefix_and_random_octets_are_refused() {
    let mut random = Random(3);
    for (kind, form) in KINDS.into_iter().flat_map(|kind| FORMS.map(|form| (kind, form))) {
        let own = material(kind);
        let mut opener = opener(&own);
        let sealed = seal(&mut sealer(&own), form, &plain(form, 24), Receivers::All);
        for len in 0..sealed.len() {
            assert!(open(&mut opener, form, &sealed[..len]).is_err(), "{kind:?} {form:?} {len}");
        }
        for _ in 0..2_000 {
            let mut damaged = sealed.clone();
            for _ in 0..=random.below(8) {
                let at = random.below(damaged.len());
                damaged[at] = random.next() as u8;
            }
            let is_same = damaged == sealed;
            assert_eq!(open(&mut opener, form, &damaged).is_ok(), is_same, "{kind:?} {form:?}");
        }
    }
}

#[test]
fn encrypted_payload_has_the_layout_of_the_specification() {
    let own = material(TransformKind::Aes128Gcm);
    let octets = plain(Form::Payload, 20);
    let sealed = seal(&mut sealer(&own), Form::Payload, &octets, Receivers::All);
    let header = peek_payload(&sealed).expect("a header");
    assert_eq!(sealed[..4], [0, 0, 0, 2]);
    assert_eq!(sealed[4..8], own.sender_key_id());
    assert_eq!(sealed[20..24], [0, 0, 0, 20]);
    let key = session_key(&own, header.session_id).expect("a key");
    let mut code = [0; 16];
    let cipher = openssl::symm::Cipher::aes_128_gcm();
    let key = key.octets(TransformKind::Aes128Gcm);
    let expected =
        openssl::symm::encrypt_aead(cipher, key, Some(&sealed[8..20]), &[], &octets, &mut code).expect("a cipher");
    assert_eq!(sealed[24..44], expected);
    assert_eq!(sealed[44..60], code);
    assert_eq!(sealed[60..], [0; 4]);
}

#[test]
fn signed_message_has_the_layout_of_the_specification() {
    let own = material(TransformKind::Aes256Gmac);
    let octets = plain(Form::Message, 8);
    let sealed = seal(&mut sealer(&own), Form::Message, &octets, Receivers::All);
    assert_eq!(sealed[..20], octets[..20]);
    assert_eq!(sealed[20..28], [0x33, 1, 20, 0, 0, 0, 0, 3]);
    assert_eq!(sealed[44..52], [0x0c, 1, 20, 0, 0, 0, 0, 0]);
    assert_eq!(sealed[52..68], octets[4..20]);
    assert_eq!(sealed[68..92], octets[20..]);
    assert_eq!(sealed[92..96], [0x34, 1, 20, 0]);
    let header = peek_message(&sealed).expect("a header");
    let key = session_key(&own, header.session_id).expect("a key");
    let mut code = [0; 16];
    let (cipher, key) = (openssl::symm::Cipher::aes_256_gcm(), key.octets(TransformKind::Aes256Gmac));
    openssl::symm::encrypt_aead(cipher, key, Some(&sealed[32..44]), &sealed[44..92], &[], &mut code).expect("a cipher");
    assert_eq!(sealed[96..112], code);
}

#[test]
fn big_endian_lengths_are_accepted() {
    let own = material(TransformKind::Aes256Gcm);
    let octets = plain(Form::Submessage, 8);
    let mut sealed = seal(&mut sealer(&own), Form::Submessage, &octets, Receivers::All);
    let postfix = sealed.len() - 24;
    for at in [0, 24, postfix] {
        sealed[at + 1] = 0;
        sealed.swap(at + 2, at + 3);
    }
    assert_eq!(open(&mut opener(&own), Form::Submessage, &sealed), Ok(octets));
}

/// Returns the header, the ciphertext of `12345` and its authentication code, computed without the
/// code under test.
fn sealed_by_openssl(own: &KeyMaterial) -> (CryptoHeader, Vec<u8>, [u8; 16]) {
    let header = CryptoHeader { kind: own.kind(), key_id: own.sender_key_id(), session_id: [1, 2, 3, 4], counter: 9 };
    let key = session_key(own, header.session_id).expect("a key");
    let mut code = [0; 16];
    let (cipher, key) = (openssl::symm::Cipher::aes_256_gcm(), key.octets(own.kind()));
    let content = openssl::symm::encrypt_aead(cipher, key, Some(&header.nonce()), &[], b"12345", &mut code);
    (header, content.expect("a cipher"), code)
}

#[test]
fn payload_of_odd_length_with_padding_after_its_code_is_opened() {
    let own = material(TransformKind::Aes256Gcm);
    let (header, content, code) = sealed_by_openssl(&own);
    let start = [&header.to_octets()[..], &[0, 0, 0, 5], &content, &code].concat();
    for padding in [4, 7, 10] {
        let sealed = [&start[..], &vec![0; padding]].concat();
        assert_eq!(open(&mut opener(&own), Form::Payload, &sealed), Ok(b"12345".to_vec()), "{padding}");
    }
    for (padding, value) in [(3, 0), (11, 0), (4, 1)] {
        let sealed = [&start[..], &vec![value; padding]].concat();
        assert!(open(&mut opener(&own), Form::Payload, &sealed).is_err(), "{padding} {value}");
    }
}

#[test]
fn body_with_nonzero_padding_is_refused() {
    let own = material(TransformKind::Aes256Gcm);
    let (header, content, code) = sealed_by_openssl(&own);
    for (padding, is_accepted) in [([0; 3], true), ([0, 0, 1], false), ([1, 0, 0], false)] {
        let head = [&[0x31, 1, 20, 0][..], &header.to_octets(), &[0x30, 1, 12, 0, 0, 0, 0, 5]].concat();
        let sealed = [&head[..], &content, &padding, &[0x32, 1, 20, 0], &code, &[0; 4]].concat();
        let opened = open(&mut opener(&own), Form::Submessage, &sealed);
        assert_eq!(opened.is_ok(), is_accepted, "{padding:?}");
        assert!(!is_accepted || opened == Ok(b"12345".to_vec()));
    }
}

#[test]
fn rtps_header_of_another_participant_is_refused() {
    for kind in KINDS {
        let own = material(kind);
        let (mut sealer, mut opener) = (sealer(&own), opener(&own).with_replays(Replays::Refused));
        // In a new session and in a known one.
        for _ in 0..2 {
            let sealed = seal(&mut sealer, Form::Message, &plain(Form::Message, 8), Receivers::All);
            let mut other = sealed.clone();
            other[8..20].copy_from_slice(b"abcdefghijkl");
            let error = open(&mut opener, Form::Message, &other).expect_err("another participant");
            assert_eq!(error, TransformError::Malformed("RTPS header differs from the protected INFO_SRC"));
            assert!(open(&mut opener, Form::Message, &sealed).is_ok(), "the window does not know it");
        }
    }
}

#[test]
fn submessages_after_the_postfix_of_a_message_are_ignored() {
    for kind in KINDS {
        let own = material(kind);
        let octets = plain(Form::Message, 8);
        let mut sealed = seal(&mut sealer(&own), Form::Message, &octets, Receivers::All);
        sealed.extend_from_slice(&[0x80, 1, 4, 0, 1, 2, 3, 4]);
        assert_eq!(open(&mut opener(&own), Form::Message, &sealed), Ok(octets));
    }
}

#[test]
fn octets_of_another_key_are_refused() {
    let (own, other) = (material(TransformKind::Aes256Gcm), material(TransformKind::Aes256Gcm));
    for form in FORMS {
        let sealed = seal(&mut sealer(&own), form, &plain(form, 8), Receivers::All);
        assert_eq!(open(&mut opener(&other), form, &sealed), Err(TransformError::WrongKey));
    }
    assert!(Sealer::new(material(TransformKind::None)).is_err() && Opener::new(material(TransformKind::None)).is_err());
}

#[test]
fn session_changes_after_its_blocks_and_messages_of_the_previous_one_are_opened() {
    for prepares in [false, true] {
        let own = material(TransformKind::Aes128Gcm);
        let mut sealer = sealer(&own).with_blocks_per_session(8);
        let (mut opener, mut sessions, mut sealed) = (opener(&own), Vec::new(), Vec::new());
        for _ in 0..12 {
            if prepares && sealer.is_rollover_due() {
                sealer.prepare_rollover().expect("the next session");
            }
            let octets = seal(&mut sealer, Form::Payload, &plain(Form::Payload, 32), Receivers::All);
            sessions.push(u32::from_be_bytes(peek_payload(&octets).expect("a header").session_id));
            sealed.push(octets);
        }
        // Each message has two blocks, each session four messages.
        let first = sessions[0];
        let expected: Vec<u32> = (0..12).map(|index| first.wrapping_add(index / 4)).collect();
        assert_eq!(sessions, expected);
        for index in [0, 4, 3, 5, 1, 8, 7, 2] {
            assert!(open(&mut opener, Form::Payload, &sealed[index]).is_ok(), "{index}");
        }
    }
}

#[test]
fn message_with_more_blocks_than_a_session_is_protected() {
    let own = material(TransformKind::Aes128Gcm);
    let mut sealer = sealer(&own).with_blocks_per_session(2);
    let octets = plain(Form::Payload, 1_000);
    let sealed: Vec<_> = (0..3).map(|_| seal(&mut sealer, Form::Payload, &octets, Receivers::All)).collect();
    let mut sessions: Vec<_> = sealed.iter().map(|one| peek_payload(one).expect("a header").session_id).collect();
    sessions.dedup();
    assert_eq!(sessions.len(), 3);
}

#[test]
fn nonces_do_not_repeat_across_sessions() {
    let mut sealer = sealer(&material(TransformKind::Aes256Gcm)).with_blocks_per_session(16);
    let mut nonces = std::collections::HashSet::new();
    for _ in 0..1_000 {
        let sealed = seal(&mut sealer, Form::Submessage, &plain(Form::Submessage, 8), Receivers::All);
        assert!(nonces.insert(peek_submessage(&sealed).expect("a header").nonce()));
    }
}

#[test]
fn replayed_and_late_messages_and_payloads_are_refused_with_a_window() {
    let own = material(TransformKind::Aes256Gcm);
    let mut sealer = sealer(&own);
    let mut opener = opener(&own).with_replays(Replays::Refused);
    let octets = plain(Form::Submessage, 8);
    let mut next = || seal(&mut sealer, Form::Submessage, &octets, Receivers::All);
    let early = next();
    let sealed: Vec<_> = (0..REPLAY_WINDOW).map(|_| next()).collect();
    for index in [1, 0, 1_023, 5] {
        assert!(open(&mut opener, Form::Submessage, &sealed[index]).is_ok(), "{index}");
    }
    for octets in [&early, &sealed[1], &sealed[0], &sealed[1_023], &sealed[5]] {
        assert_eq!(open(&mut opener, Form::Submessage, octets), Err(TransformError::Replay));
    }
    let payload = seal(&mut sealer, Form::Payload, &plain(Form::Payload, 8), Receivers::All);
    assert!(open(&mut opener, Form::Payload, &payload).is_ok());
    assert_eq!(open(&mut opener, Form::Payload, &payload), Err(TransformError::Replay));
}

#[test]
fn forged_counter_does_not_move_the_window() {
    let own = material(TransformKind::Aes256Gmac);
    let mut sealer = sealer(&own);
    let mut opener = opener(&own).with_replays(Replays::Refused);
    let octets = plain(Form::Submessage, 8);
    let [first, second] = [0, 1].map(|_| seal(&mut sealer, Form::Submessage, &octets, Receivers::All));
    assert!(open(&mut opener, Form::Submessage, &first).is_ok());
    let mut forged = second.clone();
    forged[20] ^= 1;
    assert_eq!(open(&mut opener, Form::Submessage, &forged), Err(TransformError::Authentication));
    assert!(open(&mut opener, Form::Submessage, &second).is_ok());
}

#[test]
fn messages_of_discarded_sessions_are_refused_with_a_window() {
    let own = material(TransformKind::Aes256Gcm);
    let mut sealer = sealer(&own).with_blocks_per_session(2);
    let mut opener = opener(&own).with_replays(Replays::Refused);
    let octets = plain(Form::Submessage, 8);
    let sealed: Vec<_> = (0..4).map(|_| seal(&mut sealer, Form::Submessage, &octets, Receivers::All)).collect();
    for index in [0, 2, 3] {
        assert!(open(&mut opener, Form::Submessage, &sealed[index]).is_ok(), "{index}");
    }
    for index in [0, 1, 2] {
        assert_eq!(open(&mut opener, Form::Submessage, &sealed[index]), Err(TransformError::Replay), "{index}");
    }
}

/// Both volatile endpoints of a peer share the key. Their session ids start at random, so that
/// either may have the lower ids.
#[test]
fn two_session_series_open_each_message_once_in_any_order() {
    for _ in 0..20 {
        let own = material(TransformKind::Aes256Gcm);
        let mut opener = opener(&own).with_replays(Replays::RefusedInTwoSeries);
        let mut sealers = [0, 1].map(|_| sealer(&own).with_blocks_per_session(2));
        let octets = plain(Form::Submessage, 8);
        let sealed: Vec<_> = (0..12)
            .flat_map(|_| [0, 1])
            .map(|which| seal(&mut sealers[which], Form::Submessage, &octets, Receivers::All))
            .collect();
        for (index, octets) in sealed.iter().enumerate() {
            assert!(open(&mut opener, Form::Submessage, octets).is_ok(), "{index}");
        }
        for (index, octets) in sealed.iter().enumerate() {
            assert_eq!(open(&mut opener, Form::Submessage, octets), Err(TransformError::Replay), "{index}");
        }
        let third = seal(&mut sealer(&own), Form::Submessage, &octets, Receivers::All);
        assert_eq!(open(&mut opener, Form::Submessage, &third), Err(TransformError::Replay), "a third series");
    }
}

#[test]
fn receiver_requires_its_own_code_and_ignores_codes_of_others() {
    for (kind, form) in KINDS.into_iter().flat_map(|kind| [(kind, Form::Submessage), (kind, Form::Message)]) {
        let own = material(kind);
        let [alice, bob] = [0, 1].map(|_| own.for_receiver().expect("random numbers"));
        let mut sealer = sealer(&own);
        sealer.add_receiver(alice.clone()).expect("room");
        sealer.add_receiver(bob.clone()).expect("room");
        let octets = plain(form, 8);
        let both = seal(&mut sealer, form, &octets, Receivers::All);
        let for_bob = bob.receiver_key_id().expect("an id");
        let one = seal(&mut sealer, form, &octets, Receivers::One(for_bob));
        let none = seal(&mut sealer, form, &octets, Receivers::None);
        assert_eq!((both.len() - none.len(), one.len() - none.len()), (40, 20));
        let (mut alice, mut bob, mut other) = (opener(&alice), opener(&bob), opener(&own));
        for sealed in [&both, &one, &none] {
            assert!(open(&mut other, form, sealed).is_ok(), "a receiver that asks for no code");
        }
        assert!(open(&mut alice, form, &both).is_ok() && open(&mut bob, form, &both).is_ok());
        assert!(open(&mut bob, form, &one).is_ok());
        assert_eq!(open(&mut alice, form, &one), Err(TransformError::ReceiverCode));
        assert_eq!(open(&mut alice, form, &none), Err(TransformError::ReceiverCode));
        // The code of Bob comes last.
        let mut damaged = both.clone();
        *damaged.last_mut().expect("octets") ^= 1;
        assert!(open(&mut alice, form, &damaged).is_ok());
        assert_eq!(open(&mut bob, form, &damaged), Err(TransformError::ReceiverCode));
        sealer.remove_receiver(for_bob);
        let after = seal(&mut sealer, form, &octets, Receivers::All);
        assert!(open(&mut alice, form, &after).is_ok() && open(&mut bob, form, &after).is_err());
    }
}

#[test]
fn receiver_codes_change_with_the_session() {
    let own = material(TransformKind::Aes256Gmac);
    let mut sealer = sealer(&own).with_blocks_per_session(8);
    let alice = own.for_receiver().expect("random numbers");
    sealer.prepare_rollover().expect("the next session");
    sealer.add_receiver(alice.clone()).expect("room");
    let mut opener = opener(&alice);
    for _ in 0..20 {
        let sealed = seal(&mut sealer, Form::Submessage, &plain(Form::Submessage, 8), Receivers::All);
        assert!(open(&mut opener, Form::Submessage, &sealed).is_ok());
    }
    assert!(sealer.add_receiver(own).is_err(), "no key of a receiver");
}

#[test]
fn missing_room_and_wrong_lengths_are_errors() {
    for kind in KINDS {
        let mut sealer = sealer(&material(kind));
        for form in FORMS {
            let octets = plain(form, 8);
            let (head, tail) = (form.headroom(kind), sealer.tailroom(form));
            let mut run = |head: usize, tail: usize, len: usize| {
                let mut frame = [&vec![0; head], &octets[..], &vec![0; tail]].concat();
                let range = head..head + len;
                match form {
                    Form::Payload => sealer.seal_payload(&mut frame, range),
                    Form::Submessage => sealer.seal_submessage(&mut frame, range, Receivers::All),
                    Form::Message => sealer.seal_message(&mut frame, range, Receivers::All),
                }
            };
            assert_eq!(run(head, tail, octets.len()), Ok(0..head + octets.len() + tail));
            assert_eq!(run(head - 1, tail, octets.len()), Err(TransformError::BufferTooSmall), "{kind:?} {form:?}");
            assert_eq!(run(head, tail - 1, octets.len()), Err(TransformError::BufferTooSmall), "{kind:?} {form:?}");
            assert!(matches!(run(head, tail, octets.len() - 1), Err(TransformError::Malformed(_))));
            assert!(matches!(run(head, tail, 0), Err(TransformError::Malformed(_))));
        }
    }
}

#[test]
fn content_longer_than_a_body_is_refused() {
    let mut sealer = sealer(&material(TransformKind::Aes256Gcm));
    let mut frame = vec![0; BODY_LEN_MAX + 200];
    let fits = sealer.seal_submessage(&mut frame, 64..64 + BODY_LEN_MAX, Receivers::All);
    assert!(fits.is_ok());
    let long = sealer.seal_submessage(&mut frame, 64..64 + BODY_LEN_MAX + 4, Receivers::All);
    assert_eq!(long, Err(TransformError::TooLong));
}
