//! Tests of serialized forms, and of derivations against independently computed values.

use takt_wire::{Cursor, Endianness};

use super::*;
use crate::token::Token;

fn material(kind: TransformKind) -> KeyMaterial {
    KeyMaterial::generate(kind).expect("random numbers")
}

#[test]
fn key_material_round_trips_for_each_kind_and_every_prefix_fails() {
    for kind in TransformKind::PROTECTING {
        for own in [material(kind), material(kind).for_receiver().expect("random numbers")] {
            let octets = own.to_octets();
            assert_eq!(KeyMaterial::parse(&octets), Ok(own.clone()));
            let receivers = usize::from(own.receiver_key_id().is_some());
            assert_eq!(octets.len(), 24 + (2 + receivers) * kind.key_len());
            for len in 0..octets.len() {
                assert!(KeyMaterial::parse(&octets[..len]).is_err(), "{len}");
            }
            assert!(KeyMaterial::parse(&[&octets[..], &[0]].concat()).is_err());
        }
    }
    let none = material(TransformKind::None);
    assert_eq!(none.to_octets(), [0; 24]);
    for len in [24, 44] {
        assert_eq!(KeyMaterial::parse(&vec![0; len]), Ok(none.clone()), "{len}");
    }
    let mut left = [0; 44];
    left[43] = 1;
    assert!(KeyMaterial::parse(&left).is_err() && KeyMaterial::parse(&[0; 45]).is_err());
}

#[test]
fn unknown_kinds_wrong_lengths_and_zero_keys_are_refused() {
    let good = material(TransformKind::Aes128Gcm).to_octets();
    for (at, value) in [(3, 5), (3, 4), (0, 1), (7, 15), (7, 32)] {
        let mut bad = good.clone();
        bad[at] = value;
        assert!(KeyMaterial::parse(&bad).is_err(), "{at} {value}");
    }
    let mut zero = good.clone();
    zero[32..48].fill(0);
    assert!(KeyMaterial::parse(&zero).is_err(), "the sender's key is zero");
    let mut huge = good;
    huge[4..8].fill(0xff);
    assert!(KeyMaterial::parse(&huge).is_err());
}

#[test]
fn fields_have_the_offsets_of_the_specification() {
    let own = material(TransformKind::Aes128Gmac).for_receiver().expect("random numbers");
    let octets = own.to_octets();
    assert_eq!(octets[..8], [0, 0, 0, 1, 0, 0, 0, 16]);
    assert_eq!(octets[24..28], own.sender_key_id());
    assert_eq!(octets[28..32], [0, 0, 0, 16]);
    assert_eq!(Some(octets[48..52].try_into().expect("four")), own.receiver_key_id());
}

/// Expected values were computed with the `hmac` module of Python.
#[test]
fn session_keys_equal_independently_computed_values() {
    let mut own = material(TransformKind::Aes256Gcm).for_receiver().expect("random numbers");
    own.salt = Key::new(&[1; 32]);
    own.sender_key = Key::new(&[2; 32]);
    own.receiver_key = Key::new(&[3; 32]);
    let hex = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let key = session_key(&own, [0, 0, 0, 5]).expect("a key");
    assert_eq!(hex(key.octets(own.kind)), "44d6d4a49ad8c2508880e3b62fca9b02c189ecbc71e00f4a9dd8b14eb15ad4ea");
    let key = session_receiver_key(&own, [0, 0, 0, 5]).expect("a key");
    assert_eq!(hex(key.octets(own.kind)), "f7df36d8e9145ef8e69a9cd60375c671287049ea428d04d899649bb1b93c84ca");
    own.kind = TransformKind::Aes128Gcm;
    let short = session_key(&own, [0, 0, 0, 5]).expect("a key");
    assert_eq!(short.octets(own.kind).len(), 16);
}

#[test]
fn key_exchange_key_equals_an_independently_computed_value() {
    let material = SharedSecret::new(&[7; 32], [8; 32], [9; 32]).key_exchange_material().expect("a key");
    let hex: String = material.to_octets().iter().map(|octet| format!("{octet:02x}")).collect();
    assert_eq!(
        hex,
        "0000000400000020793c6cedebb70e0e70429c76e6f0c22e907311a3b5e8718f79b56bbb56507f81000000000000002064953060cc2668a1f52c3cd27cc4f10512a539608b8b64028a3b37e43bc62aa90000000000000000"
    );
}

#[test]
fn key_tokens_round_trip_and_other_tokens_are_refused() {
    let (one, two) = (material(TransformKind::Aes256Gcm), material(TransformKind::Aes128Gmac));
    let tokens = key_tokens(&[&one, &two]);
    let octets = tokens[1].to_octets(Endianness::Little);
    let received = Token::parse(&mut Cursor::new(&octets, Endianness::Little)).expect("a token");
    assert_eq!(key_materials(&[tokens[0].clone(), received]), Ok(vec![one, two]));
    assert!(key_materials(&[Token::new("DDS:Crypto:AES_GCM_GMAC")]).is_err());
    assert!(key_materials(&[Token { class_id: "other".into(), ..tokens[0].clone() }]).is_err());
    assert_eq!(key_materials(&[]), Ok(Vec::new()));
}

#[test]
fn debug_forms_reveal_no_key() {
    let own = material(TransformKind::Aes256Gcm);
    let text = format!("{own:?}");
    assert!(text.len() < 100 && text.contains("Aes256Gcm"), "{text}");
    assert_eq!(format!("{:?}", SharedSecret::new(&[1; 32], [2; 32], [3; 32])), "SharedSecret");
}
