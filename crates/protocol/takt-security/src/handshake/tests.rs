//! Tests of two handshake state machines: all algorithms, network faults, and forgeries.

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use takt_testkit::Random;
use takt_wire::parameter::{PID_PARTICIPANT_GUID, ParameterListBuilder};
use takt_wire::{Endianness, EntityId, Guid, GuidPrefix};

use super::*;
use crate::error::{ErrorKind, SecurityError};
use crate::identity::{Authority, Identity, KeyAlgorithm, PrivateKey, UnixSeconds, secure_guid_prefix};
use crate::message::{CLASS_AUTH, CLASS_AUTH_REQUEST, GenericMessage};
use crate::token::Token;
use crate::tools::{Issuer, Validity};

const NOW: UnixSeconds = 1_800_000_000;
const VALID: Validity = Validity { not_before: NOW - 1_000, not_after: NOW + 1_000 };
/// Length in octets of an announcement, which credits the machines.
const ANNOUNCEMENT: usize = 4_000;

fn issuer() -> &'static Issuer {
    static ISSUER: OnceLock<Issuer> = OnceLock::new();
    ISSUER.get_or_init(|| Issuer::create("Identity CA", KeyAlgorithm::EcP256, VALID).expect("an authority"))
}

fn authority(issuer: &Issuer) -> Authority {
    Authority::from_pem(&issuer.certificate_pem().expect("PEM")).expect("an authority")
}

fn participant_data(guid: Guid) -> Vec<u8> {
    let mut list = ParameterListBuilder::new(Endianness::Big);
    list.put(PID_PARTICIPANT_GUID, |value| value.guid(guid));
    list.finish()
}

fn identity(issuer: &Issuer, name: &str, algorithm: KeyAlgorithm, validity: Validity) -> Identity {
    let (pem, key) = issuer.issue(name, algorithm, validity).expect("an identity");
    let key = PrivateKey::from_pem(&key, None).expect("a key");
    Identity::new(Certificate::from_pem(&pem).expect("a certificate"), key).expect("an identity")
}

fn guid_of(certificate: &Certificate) -> Guid {
    let prefix = secure_guid_prefix(certificate, GuidPrefix([1; 12])).expect("a prefix");
    Guid::new(prefix, EntityId::PARTICIPANT)
}

fn credentials(identity: Identity, options: Options) -> Credentials {
    let guid = guid_of(identity.certificate());
    let permissions = format!("permissions of {}", identity.certificate().subject()).into_bytes();
    Credentials::new(guid, identity, authority(issuer()), permissions, participant_data(guid), options).expect("fits")
}

struct Known {
    name: &'static str,
    algorithm: KeyAlgorithm,
    pem: Vec<u8>,
    key: Vec<u8>,
}

/// Returns an identity that is generated once: RSA key generation is slow.
fn known(name: &'static str, algorithm: KeyAlgorithm) -> Identity {
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().expect("no test panics with it");
    let is_it = |one: &Known| (one.name, one.algorithm) == (name, algorithm);
    if !known.iter().any(is_it) {
        let (pem, key) = issuer().issue(name, algorithm, VALID).expect("an identity");
        known.push(Known { name, algorithm, pem, key });
    }
    let Known { pem, key, .. } = known.iter().find(|one| is_it(one)).expect("it was made");
    let key = PrivateKey::from_pem(key, None).expect("a key");
    Identity::new(Certificate::from_pem(pem).expect("a certificate"), key).expect("an identity")
}

/// Returns initiator and replier. The GUID follows from the name, the role from the GUID.
fn pair(algorithms: [KeyAlgorithm; 2], options: [Options; 2]) -> [Credentials; 2] {
    let mut names = ["Alice", "Bob"];
    names.sort_by_key(|name| guid_of(known(name, KeyAlgorithm::EcP256).certificate()));
    let [first, second] = [0, 1].map(|index| known(names[index], algorithms[index]));
    [credentials(first, options[0]), credentials(second, options[1])]
}

/// Returns options without the optional hashes, so that tests can change the values that these
/// cover.
fn sparse(agreement: AgreementAlgorithm) -> Options {
    Options { agreement, sends_optional_properties: false, ..Options::default() }
}

fn ec_pair() -> [Credentials; 2] {
    pair([KeyAlgorithm::EcP256; 2], [sparse(AgreementAlgorithm::EcdhP256); 2])
}

fn machines(locals: &[Credentials; 2]) -> [Handshake; 2] {
    let [mut one, mut two] = [(0, 1), (1, 0)]
        .map(|(own, other)| Handshake::new(&locals[own], locals[other].guid(), Duration::ZERO).expect("new"));
    one.credit(ANNOUNCEMENT);
    two.credit(ANNOUNCEMENT);
    assert_eq!((one.role(), two.role()), (Role::Initiator, Role::Replier));
    [one, two]
}

fn deliver(
    machine: &mut Handshake,
    local: &Credentials,
    payload: &[u8],
    clock: Duration,
) -> crate::Result<Option<Event>> {
    let message = GenericMessage::parse(payload)?;
    machine.handle(local, &message, payload.len(), clock, NOW)
}

fn authenticated(event: Option<Event>) -> Authenticated {
    match event {
        Some(Event::Authenticated(authenticated)) => *authenticated,
        other => panic!("{other:?}"),
    }
}

/// Simulated network between two machines, with its own clock.
struct World {
    locals: [Credentials; 2],
    machines: [Handshake; 2],
    random: Random,
    /// Loss in per mille.
    loss: u64,
    /// Messages in flight: arrival time, receiver, payload.
    flight: Vec<(Duration, usize, Vec<u8>)>,
    clock: Duration,
    results: [Option<Authenticated>; 2],
    refused_count: usize,
}

impl World {
    fn new(locals: [Credentials; 2], seed: u64, loss: u64) -> Self {
        let machines = machines(&locals);
        Self {
            locals,
            machines,
            random: Random(seed),
            loss,
            flight: Vec::new(),
            clock: Duration::ZERO,
            results: [None, None],
            refused_count: 0,
        }
    }

    fn run(mut self) -> Self {
        while self.clock < Duration::from_secs(100) {
            for sender in 0..2 {
                while let Some(payload) = self.machines[sender].poll_transmit(self.clock) {
                    let payload = payload.to_vec();
                    for _ in 0..1 + usize::from(self.random.one_in(4)) {
                        if self.random.below(1_000) as u64 >= self.loss {
                            // Random delays reorder messages.
                            let delay = Duration::from_millis(self.random.between(1, 300));
                            self.flight.push((self.clock + delay, 1 - sender, payload.clone()));
                        }
                    }
                }
                assert!(self.machines[sender].handle_timeout(self.clock).is_none() || self.loss > 0);
            }
            let next = (0..self.flight.len()).min_by_key(|index| self.flight[*index].0);
            let timeouts = self.machines.iter().filter_map(Handshake::next_timeout).min();
            match (next, timeouts) {
                (Some(next), timeout) if timeout.is_none_or(|timeout| self.flight[next].0 <= timeout) => {
                    let (at, receiver, payload) = self.flight.swap_remove(next);
                    self.clock = at;
                    match deliver(&mut self.machines[receiver], &self.locals[receiver], &payload, at) {
                        Ok(Some(Event::Authenticated(found))) => {
                            assert!(self.results[receiver].replace(*found).is_none(), "authenticated once");
                        }
                        Ok(_) => {}
                        Err(_) => self.refused_count += 1,
                    }
                }
                (_, Some(timeout)) => {
                    self.clock = timeout.max(self.clock);
                    for machine in &mut self.machines {
                        machine.credit(ANNOUNCEMENT);
                    }
                }
                (None, None) => break,
                (Some(_), None) => unreachable!("the first arm has it"),
            }
        }
        self
    }

    /// Checks that both machines are authenticated and have the same secret.
    fn check(&self) {
        let [Some(first), Some(second)] = &self.results else { panic!("not authenticated at {:?}", self.clock) };
        assert_eq!(first.secret, second.secret);
        for (result, local) in [(first, &self.locals[1]), (second, &self.locals[0])] {
            assert_eq!(result.certificate.pem(), local.identity().certificate().pem());
            assert_eq!(result.permissions, local.permissions);
            assert_eq!(result.participant_data, local.participant_data);
        }
    }
}

#[test]
fn participants_authenticate_with_every_pair_of_algorithms() {
    use KeyAlgorithm::{EcP256, Rsa2048};
    for algorithms in [[EcP256, EcP256], [EcP256, Rsa2048], [Rsa2048, EcP256], [Rsa2048, Rsa2048]] {
        for agreement in AgreementAlgorithm::ALL {
            for sends_optional_properties in [false, true] {
                let options = Options { agreement, sends_optional_properties, ..Options::default() };
                let world = World::new(pair(algorithms, [options; 2]), 1, 0).run();
                world.check();
                assert_eq!(world.refused_count, 0);
            }
        }
    }
}

#[test]
fn participants_authenticate_despite_loss_reordering_and_duplication() {
    for seed in 0..40 {
        World::new(ec_pair(), seed, 300).run().check();
    }
}

#[test]
fn unanswered_handshake_times_out_and_reports_the_last_refusal() {
    let locals = ec_pair();
    let [mut one, mut two] = machines(&locals);
    while one.poll_transmit(Duration::ZERO).is_some() {}
    assert!(one.handle_timeout(Duration::from_secs(59)).is_none());
    let Some(Event::TimedOut(error)) = one.handle_timeout(Duration::from_secs(60)) else { panic!("no time-out") };
    assert!(error.reason().ends_with("sent no valid Reply in time"), "{error}");
    assert_eq!((one.progress(), one.next_timeout()), (Progress::Failed, None));
    assert!(one.poll_transmit(Duration::from_secs(61)).is_none());
    let request = requests(&locals, |token| token);
    let changed = replaced(&request, "challenge1", b"short");
    deliver(&mut two, &locals[1], &changed, Duration::ZERO).expect_err("refused");
    let Some(Event::TimedOut(error)) = two.handle_timeout(Duration::from_secs(60)) else { panic!("no time-out") };
    assert!(error.reason().contains("no valid Request in time: challenge1 of 5 octets"), "{error}");
}

#[test]
fn unauthenticated_sender_receives_at_most_three_octets_per_octet_sent() {
    let locals = ec_pair();
    for (own, other) in [(0, 1), (1, 0)] {
        let mut machine = Handshake::new(&locals[own], locals[other].guid(), Duration::ZERO).expect("new");
        let (mut sent, mut received) = (0, 0);
        for second in 0..30 {
            let clock = Duration::from_secs(second);
            while let Some(payload) = machine.poll_transmit(clock) {
                sent += payload.len();
                assert!(sent <= received * AMPLIFICATION_MAX, "{sent} octets for {received}");
            }
            machine.credit(150);
            received += 150;
        }
        assert!(sent > 0, "{:?}", machine.role());
    }
    // The limit does not apply to a validated address.
    let mut initiator = Handshake::new(&locals[0], locals[1].guid(), Duration::ZERO).expect("new");
    initiator.handle_validated_address();
    assert!(sent(&mut initiator, wire::REQUEST).len() > 1_000);
    // The Reply counts as an answer as well.
    let mut replier = Handshake::new(&locals[1], locals[0].guid(), Duration::ZERO).expect("new");
    let request = requests(&locals, |token| token);
    deliver(&mut replier, &locals[1], &request, Duration::ZERO).expect("a Request");
    let mut sent = 0;
    for second in 0..30 {
        while let Some(payload) = replier.poll_transmit(Duration::from_secs(second)) {
            sent += payload.len();
        }
    }
    assert!(sent > 0 && sent <= request.len() * AMPLIFICATION_MAX, "{sent} octets for {}", request.len());
}

/// Returns the Request of the initiator with a modified token.
fn requests(locals: &[Credentials; 2], change: impl FnOnce(Token<'static>) -> Token<'static>) -> Vec<u8> {
    let [mut one, _] = machines(locals);
    let payload = sent(&mut one, wire::REQUEST);
    changed(&payload, change)
}

/// Returns the message of this class that a machine sends.
fn sent(machine: &mut Handshake, class: &str) -> Vec<u8> {
    while let Some(payload) = machine.poll_transmit(Duration::ZERO) {
        if GenericMessage::parse(payload).expect("a message").tokens[0].class_id == class {
            return payload.to_vec();
        }
    }
    panic!("no {class}")
}

fn owned(token: &Token<'_>) -> Token<'static> {
    let own = |text: &str| std::borrow::Cow::Owned(text.to_owned());
    Token {
        class_id: own(&token.class_id),
        properties: token.properties.iter().map(|(name, value)| (own(name), own(value))).collect(),
        binary_properties: token
            .binary_properties
            .iter()
            .map(|(name, value)| (own(name), value.to_vec().into()))
            .collect(),
    }
}

fn changed(payload: &[u8], change: impl FnOnce(Token<'static>) -> Token<'static>) -> Vec<u8> {
    let mut message = GenericMessage::parse(payload).expect("a message");
    message.tokens[0] = change(owned(&message.tokens[0]));
    message.to_payload()
}

fn replaced(payload: &[u8], name: &str, value: &[u8]) -> Vec<u8> {
    changed(payload, |mut token| {
        let property = token.binary_properties.iter_mut().find(|(own, _)| own == name);
        property.expect("it has the property").1 = value.to_vec().into();
        token
    })
}

fn without(payload: &[u8], name: &str) -> Vec<u8> {
    changed(payload, |mut token| {
        token.binary_properties.retain(|(own, _)| own != name);
        token
    })
}

/// Returns the reason for which the replier refuses a Request.
fn refusal_of_request(locals: &[Credentials; 2], payload: &[u8]) -> SecurityError {
    let [_, mut two] = machines(locals);
    let error = deliver(&mut two, &locals[1], payload, Duration::ZERO).expect_err("refused");
    assert_eq!((two.progress(), two.last_refusal()), (Progress::Pending, Some(&error)));
    // The genuine Request is accepted afterwards.
    let request = requests(locals, |token| token);
    deliver(&mut two, &locals[1], &request, Duration::ZERO).expect("a Request");
    error
}

#[test]
fn certificates_of_another_authority_or_outside_their_validity_are_refused() {
    let foreign = Issuer::create("Identity CA", KeyAlgorithm::EcP256, VALID).expect("an authority");
    let expired = Validity { not_before: NOW - 10, not_after: NOW - 1 };
    let early = Validity { not_before: NOW + 1, not_after: NOW + 10 };
    let name = ec_pair()[0].identity().certificate().subject().to_string().replace("CN=", "");
    for (issuer, validity, expected) in
        [(&foreign, VALID, "certificate"), (issuer(), expired, "expired"), (issuer(), early, "not yet valid")]
    {
        let [_, two] = ec_pair();
        let one = credentials(identity(issuer, &name, KeyAlgorithm::EcP256, validity), Options::default());
        let locals = [one, two];
        let [mut initiator, mut replier] = machines(&locals);
        let request = sent(&mut initiator, wire::REQUEST);
        let error = deliver(&mut replier, &locals[1], &request, Duration::ZERO).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Certificate);
        assert!(error.reason().contains(expected), "{error}");
    }
}

#[test]
fn participant_that_announces_the_guid_of_another_is_refused() {
    let locals = ec_pair();
    let request = requests(&locals, |token| token);
    let other = participant_data(locals[1].guid());
    let error = refusal_of_request(&locals, &replaced(&request, "c.pdata", &other));
    assert!(error.reason().starts_with("c.pdata has the GUID"), "{error}");
    for broken in [&b""[..], b"abc", &[0, 1, 0, 0]] {
        refusal_of_request(&locals, &replaced(&request, "c.pdata", broken));
    }
    // Mallory has her own certificate, and uses the GUID of Alice.
    let mallory = identity(issuer(), "Mallory", KeyAlgorithm::EcP256, VALID);
    let stolen = replaced(&request, "c.id", mallory.certificate().pem());
    let error = refusal_of_request(&locals, &stolen);
    assert!(error.reason().contains("does not belong to the certificate of \"CN=Mallory\""), "{error}");
    let guid = locals[0].guid();
    let own =
        Credentials::new(guid, mallory, authority(issuer()), Vec::new(), participant_data(guid), Options::default());
    assert!(own.is_err());
}

#[test]
fn missing_and_malformed_properties_of_a_request_are_refused() {
    let locals = ec_pair();
    let request = requests(&locals, |token| token);
    for name in ["c.id", "c.perm", "c.pdata", "c.dsign_algo", "c.kagree_algo", "dh1", "challenge1"] {
        let error = refusal_of_request(&locals, &without(&request, name));
        assert!(error.reason().contains(&format!("without {name}")), "{error}");
    }
    for (name, value) in [
        ("c.id", &b"-----BEGIN"[..]),
        ("c.dsign_algo", b"RSASSA-PKCS1"),
        ("c.kagree_algo", b"DH+MODP-2048-256"),
        ("c.kagree_algo", b"unknown"),
        ("dh1", b""),
        ("dh1", &[4; 65]),
        ("challenge1", &[0; 31]),
    ] {
        refusal_of_request(&locals, &replaced(&request, name, value));
    }
    for (name, len) in [("c.perm", PERMISSIONS_LEN_MAX), ("c.pdata", PARTICIPANT_DATA_LEN_MAX), ("dh1", 512)] {
        let error = refusal_of_request(&locals, &replaced(&request, name, &vec![0; len + 1]));
        assert_eq!(error.kind(), ErrorKind::Limit, "{name}");
    }
    let wrong_hash = changed(&request, |token| token.with_octets("hash_c1", &[0; 32][..]));
    assert!(refusal_of_request(&locals, &wrong_hash).reason().contains("hash_c1"));
}

#[test]
fn messages_with_wrong_sender_receiver_or_token_are_refused() {
    let locals = ec_pair();
    let request = requests(&locals, |token| token);
    let mut message = GenericMessage::parse(&request).expect("a message");
    message.destination_participant = Guid::from_bytes([7; 16]);
    refusal_of_request(&locals, &message.to_payload());
    let mut message = GenericMessage::parse(&request).expect("a message");
    message.identity.source.prefix = GuidPrefix([7; 12]);
    refusal_of_request(&locals, &message.to_payload());
    let mut message = GenericMessage::parse(&request).expect("a message");
    message.tokens.push(message.tokens[0].clone());
    refusal_of_request(&locals, &message.to_payload());
    let mut message = GenericMessage::parse(&request).expect("a message");
    message.class_id = CLASS_AUTH_REQUEST;
    refusal_of_request(&locals, &message.to_payload());
    refusal_of_request(&locals, &changed(&request, |token| Token { class_id: wire::REPLY.into(), ..token }));
    let [mut one, _] = machines(&locals);
    let mut back = GenericMessage::parse(&request).expect("a message");
    (back.identity.source.prefix, back.destination_participant) = (locals[1].guid().prefix, locals[0].guid());
    let error = deliver(&mut one, &locals[0], &back.to_payload(), Duration::ZERO).expect_err("a reflected Request");
    assert!(error.reason().contains("for the Initiator"), "{error}");
    assert!(Handshake::new(&locals[0], locals[0].guid(), Duration::ZERO).is_err());
}

/// Returns both machines after Request and Reply were exchanged. The Reply has not arrived yet.
fn replied(locals: &[Credentials; 2]) -> ([Handshake; 2], Vec<u8>) {
    let [mut one, mut two] = machines(locals);
    let request = sent(&mut one, wire::REQUEST);
    deliver(&mut two, &locals[1], &request, Duration::ZERO).expect("a Request");
    let reply = sent(&mut two, wire::REPLY);
    ([one, two], reply)
}

#[test]
fn modified_replies_are_refused_and_the_genuine_one_is_accepted() {
    let locals = ec_pair();
    let ([mut one, _], reply) = replied(&locals);
    let mut refused = |payload: &[u8]| {
        let error = deliver(&mut one, &locals[0], payload, Duration::ZERO).expect_err("refused");
        assert_eq!(one.progress(), Progress::Pending);
        error
    };
    assert_eq!(refused(&replaced(&reply, "signature", &[0; 70])).kind(), ErrorKind::Signature);
    assert_eq!(refused(&replaced(&reply, "signature", b"")).kind(), ErrorKind::Signature);
    assert_eq!(refused(&replaced(&reply, "c.perm", b"other permissions")).kind(), ErrorKind::Signature);
    assert_eq!(refused(&replaced(&reply, "challenge2", &[1; 32])).kind(), ErrorKind::Signature);
    assert!(refused(&replaced(&reply, "challenge1", &[1; 32])).reason().contains("another Request"));
    assert!(refused(&replaced(&reply, "c.kagree_algo", b"DH+MODP-2048-256")).reason().contains("agrees by"));
    let other = agreement::KeyPair::generate(AgreementAlgorithm::EcdhP256).expect("a key pair");
    let other = other.public(agreement::ModpForm::Raw).expect("a key");
    assert_eq!(refused(&replaced(&reply, "dh2", &other)).kind(), ErrorKind::Signature);
    for name in ["hash_c1", "hash_c2", "dh1"] {
        refused(&changed(&reply, |token| token.with_octets("x", &b""[..]).with_octets(name, &b"wrong"[..])));
    }
    let event = deliver(&mut one, &locals[0], &reply, Duration::ZERO).expect("a Reply");
    assert_eq!(authenticated(event).certificate.pem(), locals[1].identity().certificate().pem());
}

#[test]
fn every_damaged_octet_of_a_reply_or_final_is_refused() {
    let locals = ec_pair();
    let ([mut one, mut two], reply) = replied(&locals);
    let mut random = Random(5);
    // The first 4 octets and the identities and endpoints of the message are not signed.
    let begin =
        reply.len() - GenericMessage::parse(&reply).expect("a message").tokens[0].to_octets(Endianness::Little).len();
    for at in begin..reply.len() {
        let mut damaged = reply.clone();
        damaged[at] ^= 1 << random.below(8);
        // Padding between properties is not significant.
        if GenericMessage::parse(&damaged) != GenericMessage::parse(&reply) {
            assert!(deliver(&mut one, &locals[0], &damaged, Duration::ZERO).is_err(), "{at}");
        }
    }
    deliver(&mut one, &locals[0], &reply, Duration::ZERO).expect("a Reply");
    let last = sent(&mut one, wire::FINAL);
    let begin =
        last.len() - GenericMessage::parse(&last).expect("a message").tokens[0].to_octets(Endianness::Little).len();
    for at in begin..last.len() {
        let mut damaged = last.clone();
        damaged[at] ^= 1 << random.below(8);
        if GenericMessage::parse(&damaged) != GenericMessage::parse(&last) {
            assert!(deliver(&mut two, &locals[1], &damaged, Duration::ZERO).is_err(), "{at}");
        }
    }
    authenticated(deliver(&mut two, &locals[1], &last, Duration::ZERO).expect("a Final"));
}

#[test]
fn replayed_messages_of_an_earlier_handshake_do_not_authenticate() {
    let locals = ec_pair();
    let ([mut one, mut two], reply) = replied(&locals);
    let request = requests(&locals, |token| token);
    authenticated(deliver(&mut one, &locals[0], &reply, Duration::ZERO).expect("a Reply"));
    let last = sent(&mut one, wire::FINAL);
    authenticated(deliver(&mut two, &locals[1], &last, Duration::ZERO).expect("a Final"));
    // Replayed to the finished machines.
    for payload in [&request, &last] {
        assert!(deliver(&mut two, &locals[1], payload, Duration::ZERO).expect("ignored").is_none());
    }
    // Replayed to new machines.
    let [mut new_one, mut new_two] = machines(&locals);
    let error = deliver(&mut new_one, &locals[0], &reply, Duration::ZERO).expect_err("an old Reply");
    assert!(error.reason().contains("another Request"), "{error}");
    deliver(&mut new_two, &locals[1], &request, Duration::ZERO).expect("a Request proves nothing");
    let error = deliver(&mut new_two, &locals[1], &last, Duration::ZERO).expect_err("an old Final");
    assert!(error.reason().contains("another handshake"), "{error}");
    assert_eq!((new_one.progress(), new_two.progress()), (Progress::Pending, Progress::Pending));
}

#[test]
fn genuine_request_is_answered_after_a_forged_one() {
    let locals = ec_pair();
    let [mut one, mut two] = machines(&locals);
    let forged = replaced(&requests(&locals, |token| token), "challenge1", &[9; 32]);
    deliver(&mut two, &locals[1], &forged, Duration::ZERO).expect("nothing proves it wrong");
    let first = sent(&mut two, wire::REPLY);
    let request = sent(&mut one, wire::REQUEST);
    // Within the period the repeated Request is ignored.
    deliver(&mut two, &locals[1], &request, Duration::from_millis(999)).expect("ignored");
    assert!(two.poll_transmit(Duration::from_millis(999)).is_none());
    deliver(&mut two, &locals[1], &request, Duration::from_secs(1)).expect("a Request");
    let reply = two.poll_transmit(Duration::from_secs(1)).expect("another Reply").to_vec();
    assert_ne!(first, reply);
    authenticated(deliver(&mut one, &locals[0], &reply, Duration::from_secs(1)).expect("a Reply"));
}

#[test]
fn handshake_with_unannounced_challenge_is_refused() {
    let locals = ec_pair();
    let [mut one, mut two] = machines(&locals);
    let [first, second] = [&mut one, &mut two].map(|machine| sent(machine, wire::AUTH_REQUEST));
    deliver(&mut one, &locals[0], &second, Duration::ZERO).expect("an AuthRequest");
    deliver(&mut two, &locals[1], &first, Duration::ZERO).expect("an AuthRequest");
    let request = sent(&mut one, wire::REQUEST);
    let error = deliver(&mut two, &locals[1], &replaced(&request, "challenge1", &[9; 32]), Duration::ZERO);
    assert!(error.expect_err("refused").reason().contains("not the one announced"));
    // One forged announcement displaces no genuine challenge.
    let forged = replaced(&first, "future_challenge", &[8; 32]);
    deliver(&mut two, &locals[1], &forged, Duration::ZERO).expect("an AuthRequest");
    deliver(&mut two, &locals[1], &request, Duration::ZERO).expect("the Request");
    assert!(deliver(&mut two, &locals[1], &replaced(&first, "future_challenge", &[8; 3]), Duration::ZERO).is_err());
}

/// A message that the initiator sends before the replier has discovered it is lost.
#[test]
fn request_is_repeated_soon_after_the_auth_request_of_the_replier() {
    let locals = ec_pair();
    let [mut initiator, mut replier] = machines(&locals);
    while initiator.poll_transmit(Duration::ZERO).is_some() {}
    let at = Duration::from_millis(300);
    let announcement = replier.poll_transmit(at).expect("an AuthRequest").to_vec();
    assert!(deliver(&mut initiator, &locals[0], &announcement, at).expect("it fits").is_none());
    assert!(initiator.poll_transmit(at).is_none(), "a Reply may be under way");
    assert_eq!(initiator.next_timeout(), Some(at + Duration::from_millis(20)));
    for _ in [wire::AUTH_REQUEST, wire::REQUEST] {
        let payload = initiator.poll_transmit(at + Duration::from_millis(20)).expect("both are repeated").to_vec();
        deliver(&mut replier, &locals[1], &payload, at).expect("it fits");
    }
    assert!(replier.poll_transmit(at).is_some(), "the Reply");
    deliver(&mut initiator, &locals[0], &announcement, at).expect("it fits");
    assert_eq!(initiator.next_timeout(), Some(at + Duration::from_millis(1_020)), "the same one has no effect");
}

/// Delivers all messages of a machine that are due, and returns the reason of the last refusal.
fn deliver_all(from: &mut Handshake, to: &mut Handshake, local: &Credentials, clock: Duration) -> Option<String> {
    let mut refusal = None;
    while let Some(payload) = from.poll_transmit(clock) {
        let delivered = deliver(to, local, payload, clock);
        refusal = delivered.err().map(|error| error.reason().to_owned()).or(refusal);
    }
    refusal
}

/// Regression: the AuthRequest of the initiator was sent once. If it was lost, the replier refused
/// each Request until its timeout, since it knew the challenge of an earlier handshake.
#[test]
fn lost_auth_request_of_another_handshake_is_repeated() {
    let locals = ec_pair();
    let [mut earlier, mut replier] = machines(&locals);
    assert_eq!(deliver_all(&mut earlier, &mut replier, &locals[1], Duration::ZERO), None);
    // The Reply is lost, and the initiator begins another handshake.
    let [mut initiator, _] = machines(&locals);
    assert!(initiator.poll_transmit(Duration::ZERO).is_some(), "the AuthRequest is lost");
    let clock = Duration::from_secs(1);
    let request = sent(&mut initiator, wire::REQUEST);
    let error = deliver(&mut replier, &locals[1], &request, clock).expect_err("its challenge was not announced");
    assert!(error.reason().contains("not the one announced"), "{error}");
    assert_eq!(deliver_all(&mut initiator, &mut replier, &locals[1], clock), None);
    deliver_all(&mut replier, &mut initiator, &locals[0], clock);
    assert_eq!(deliver_all(&mut initiator, &mut replier, &locals[1], clock), None);
    assert_eq!([initiator.progress(), replier.progress()], [Progress::Authenticated; 2]);
}

/// Regression: after the Request the replier did not repeat its AuthRequest. An initiator that had
/// received only forged ones refused each Reply until its timeout.
#[test]
fn forged_auth_requests_do_not_exclude_the_reply() {
    let locals = ec_pair();
    let [mut initiator, mut replier] = machines(&locals);
    let announcement = sent(&mut replier, wire::AUTH_REQUEST);
    for forged in [[8; 32], [9; 32]] {
        let forged = replaced(&announcement, "future_challenge", &forged);
        deliver(&mut initiator, &locals[0], &forged, Duration::ZERO).expect("nothing proves it wrong");
    }
    deliver_all(&mut initiator, &mut replier, &locals[1], Duration::ZERO);
    let refusal = deliver_all(&mut replier, &mut initiator, &locals[0], Duration::ZERO).expect("a refusal");
    assert!(refusal.contains("not the one announced"), "{refusal}");
    let clock = Duration::from_secs(1);
    assert_eq!(deliver_all(&mut replier, &mut initiator, &locals[0], clock), None);
    assert_eq!(deliver_all(&mut initiator, &mut replier, &locals[1], clock), None);
    assert_eq!([initiator.progress(), replier.progress()], [Progress::Authenticated; 2]);
    assert_eq!([replier.next_timeout(), initiator.next_timeout()], [None; 2]);
}

#[test]
fn repeated_auth_request_leaves_octets_for_the_request() {
    let locals = ec_pair();
    let mut initiator = Handshake::new(&locals[0], locals[1].guid(), Duration::ZERO).expect("new");
    // Each second credits less than the AuthRequest has.
    let first = (1..60).map(Duration::from_secs).find(|clock| {
        initiator.credit(60);
        let mut classes = Vec::new();
        while let Some(payload) = initiator.poll_transmit(*clock) {
            let message = GenericMessage::parse(payload).expect("a message");
            classes.push(message.tokens[0].class_id.to_string());
        }
        classes.iter().any(|class| class == wire::REQUEST)
    });
    assert!(first.is_some(), "no Request in a minute");
}

#[test]
fn final_is_sent_again_when_the_reply_is_repeated() {
    let locals = ec_pair();
    let ([mut one, mut two], reply) = replied(&locals);
    deliver(&mut one, &locals[0], &reply, Duration::ZERO).expect("a Reply");
    let lost = sent(&mut one, wire::FINAL);
    assert!(one.poll_transmit(Duration::from_secs(5)).is_none() && one.next_timeout().is_none());
    deliver(&mut one, &locals[0], &reply, Duration::from_secs(5)).expect("a Reply");
    let again = one.poll_transmit(Duration::from_secs(5)).expect("the Final").to_vec();
    assert_eq!(again, lost);
    deliver(&mut one, &locals[0], &reply, Duration::from_secs(5)).expect("a Reply");
    assert!(one.poll_transmit(Duration::from_secs(5)).is_none(), "once in half a period");
    authenticated(deliver(&mut two, &locals[1], &again, Duration::from_secs(5)).expect("a Final"));
}

#[test]
fn replier_accepts_algorithm_names_with_nul_and_answers_in_the_encoding_of_the_initiator() {
    let locals = pair([KeyAlgorithm::EcP256; 2], [sparse(AgreementAlgorithm::Modp2048); 2]);
    let request = requests(&locals, |token| token);
    let pair = agreement::KeyPair::generate(AgreementAlgorithm::Modp2048).expect("a key pair");
    for form in [agreement::ModpForm::Raw, agreement::ModpForm::Der] {
        let request = replaced(&request, "dh1", &pair.public(form).expect("a key"));
        let request = replaced(&request, "c.kagree_algo", b"DH+MODP-2048-256\0");
        let request = replaced(&request, "c.dsign_algo", b"ECDSA-SHA256\0");
        let request = replaced(&request, "c.perm", b"permissions\0");
        let [_, mut two] = machines(&locals);
        deliver(&mut two, &locals[1], &request, Duration::ZERO).expect("a Request");
        let reply = sent(&mut two, wire::REPLY);
        let message = GenericMessage::parse(&reply).expect("a message");
        assert_eq!(agreement::ModpForm::of(message.tokens[0].octets("dh2").expect("a key")), form);
        assert_eq!(message.related, GenericMessage::parse(&request).expect("a message").identity);
        assert_eq!(message.class_id, CLASS_AUTH);
    }
}

#[test]
fn new_handshake_is_accepted_after_one_at_the_limit_times_out() {
    let locals = ec_pair();
    let mut all = Handshakes::new(2);
    let remote = |index: u8| Guid::new(GuidPrefix([0xff - index; 12]), EntityId::PARTICIPANT);
    for index in 0..2 {
        all.handle_announcement(&locals[0], remote(index), 100, Duration::ZERO).expect("room");
        all.handle_announcement(&locals[0], remote(index), 100, Duration::ZERO).expect("known");
    }
    let error = all.handle_announcement(&locals[0], remote(2), 100, Duration::ZERO).expect_err("full");
    assert_eq!(error.kind(), ErrorKind::Limit);
    let mut sent = VecDeque::new();
    while let Some((guid, payload)) = all.poll_transmit(Duration::ZERO) {
        sent.push_back((guid, payload.len()));
    }
    assert_eq!(sent.len(), 2, "an AuthRequest each; the Request has no credit: {sent:?}");
    assert_eq!(all.next_timeout(), Some(Duration::from_secs(60)));
    let over = Duration::from_secs(60);
    assert!(all.poll_timeout(over).is_some() && all.poll_timeout(over).is_some() && all.poll_timeout(over).is_none());
    all.handle_announcement(&locals[0], remote(2), 100, over).expect("room");
    assert!(all.get(remote(2)).is_some() && all.get(remote(0)).is_none());
    all.remove(remote(2));
    assert!(all.get(remote(2)).is_none());
}

#[test]
fn set_routes_messages_to_their_handshake_and_refuses_unannounced_participants() {
    let [one, two] = ec_pair();
    let mut sets = [Handshakes::new(4), Handshakes::new(4)];
    sets[0].handle_announcement(&one, two.guid(), ANNOUNCEMENT, Duration::ZERO).expect("room");
    let (_, payload) = sets[0].poll_transmit(Duration::ZERO).expect("an AuthRequest");
    let payload = payload.to_vec();
    assert!(sets[1].handle(&two, &payload, Duration::ZERO, NOW).is_err(), "not announced");
    sets[1].handle_announcement(&two, one.guid(), ANNOUNCEMENT, Duration::ZERO).expect("room");
    let (locals, mut events) = ([one, two], 0);
    for _ in 0..8 {
        for own in 0..2 {
            while let Some((remote, payload)) = sets[own].poll_transmit(Duration::ZERO) {
                assert_eq!(remote, locals[1 - own].guid());
                let payload = payload.to_vec();
                let event = sets[1 - own].handle(&locals[1 - own], &payload, Duration::ZERO, NOW).expect("accepted");
                events += usize::from(matches!(event, Some((_, Event::Authenticated(_)))));
            }
        }
    }
    assert_eq!(events, 2);
    assert_eq!(sets[0].get(locals[1].guid()).map(Handshake::progress), Some(Progress::Authenticated));
}
