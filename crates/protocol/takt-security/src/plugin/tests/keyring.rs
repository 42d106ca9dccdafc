//! Keys that are removed and arrive again.

use takt_wire::{EntityId, GuidPrefix};

use super::super::keyring::{Keyring, NewKey, OpenError, Uses};
use crate::keys::{KeyMaterial, TransformKind};
use crate::transform::{Receivers, Replays, Sealer, TransformError};

const SENDER: GuidPrefix = GuidPrefix([7; 12]);
const OWNER: EntityId = EntityId::SEDP_PUB_SECURE_WRITER;
const READERS: [EntityId; 2] = [EntityId::SEDP_PUB_SECURE_READER, EntityId::SEDP_SUB_SECURE_READER];

fn insert(keyring: &mut Keyring, material: &KeyMaterial, receiver: EntityId) {
    let (material, uses, replays) = (material.clone(), Uses::PAYLOADS, Replays::Refused);
    keyring.insert(NewKey { sender: SENDER, owner: OWNER, receiver, material, uses, replays }).expect("room");
}

fn open(keyring: &mut Keyring, material: &KeyMaterial, octets: &[u8]) -> Result<(), OpenError> {
    let mut memory = vec![0; octets.len()];
    let id = (SENDER, material.sender_key_id());
    keyring.open(id, Uses::PAYLOADS, None, |opener| opener.open_payload(octets, &mut memory).map(|_| ())).map(|_| ())
}

fn seal(sealer: &mut Sealer) -> Vec<u8> {
    let mut frame = vec![0; 256];
    let sealed = sealer.seal_payload(&mut frame, 64..96).expect("there is room");
    frame[sealed].to_vec()
}

#[test]
fn content_opens_once_when_its_key_is_removed_and_arrives_again() {
    const REPLAY: Result<(), OpenError> = Err(OpenError::Transform(TransformError::Replay));
    let removals: [fn(&mut Keyring, &KeyMaterial); 3] = [
        |keyring, _| keyring.remove_sender(SENDER),
        |keyring, _| keyring.remove_owner(SENDER, OWNER),
        |keyring, material| keyring.remove(SENDER, material, READERS[0]),
    ];
    for remove in removals {
        let material = KeyMaterial::generate(TransformKind::Aes256Gcm).expect("random numbers");
        let mut sealer = Sealer::new(material.clone()).expect("a sealer");
        let [first, second, third] = [(); 3].map(|()| seal(&mut sealer));
        let mut keyring = Keyring::default();
        insert(&mut keyring, &material, READERS[0]);
        assert_eq!(open(&mut keyring, &material, &first), Ok(()));
        remove(&mut keyring, &material);
        assert_eq!(open(&mut keyring, &material, &first), Err(OpenError::UnknownKey));
        // A key for another receiver has the same sessions.
        let again = material.for_receiver().expect("random numbers");
        insert(&mut keyring, &again, READERS[1]);
        assert_eq!(open(&mut keyring, &material, &first), REPLAY);
        assert_eq!(open(&mut keyring, &material, &third), Ok(()));
        keyring.remove_sender(SENDER);
        insert(&mut keyring, &material, READERS[0]);
        assert_eq!([&first, &third].map(|octets| open(&mut keyring, &material, octets)), [REPLAY, REPLAY]);
        assert_eq!(open(&mut keyring, &material, &second), Ok(()), "it was never opened");
    }
}

#[test]
fn remaining_receiver_of_a_key_refuses_what_a_removed_one_opened() {
    let master = KeyMaterial::generate(TransformKind::Aes256Gcm).expect("random numbers");
    let mut sealer = Sealer::new(master.clone()).expect("a sealer");
    let materials = [(); 2].map(|()| master.for_receiver().expect("random numbers"));
    let mut keyring = Keyring::default();
    for (material, reader) in materials.iter().zip(READERS) {
        sealer.add_receiver(material.clone()).expect("room");
        insert(&mut keyring, material, reader);
    }
    let mut frame = vec![0; 512];
    frame[64..80].copy_from_slice(&[0x09, 0x01, 12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9]);
    let sealed = sealer.seal_submessage(&mut frame, 64..80, Receivers::All).expect("there is room");
    let octets = frame[sealed].to_vec();
    let open = |keyring: &mut Keyring| {
        let mut memory = vec![0; octets.len()];
        let id = (SENDER, master.sender_key_id());
        keyring.open(id, Uses::PAYLOADS, None, |opener| opener.open_submessage(&octets, &mut memory).map(|_| ()))
    };
    assert!(open(&mut keyring).is_ok());
    keyring.remove(SENDER, &materials[0], READERS[0]);
    assert_eq!(open(&mut keyring), Err(OpenError::Transform(TransformError::Replay)));
}
