//! Captures of secured participants: they contain nothing that the governance encrypts, and
//! everything that stays visible according to `docs/guide/security.md`. Unencrypted data must be
//! found, so that a capture without traffic fails.

use takt_interop::capture::{Capture, Eavesdropped};
use takt_interop::content;
use takt_interop::programs::Program;
use takt_security::documents::BasicProtectionKind;
use takt_security::identity::KeyAlgorithm;

use crate::scene::{hosts, possible};
use crate::security::{SIZES, THERE, chosen, exchange_in, options, variant};

const SEC_PREFIX: u64 = 0x31;
const SRTPS_PREFIX: u64 = 0x33;
/// Bits of an entity id that distinguish builtin, vendor and application entities. They are zero
/// for application entities.
const ORIGIN: u64 = 0xc0;

#[test]
fn capture_contains_only_data_that_is_not_encrypted() {
    let pairs: &[_] = match takt_testkit::is_full_length() {
        true => &[[Program::Takt; 2], [Program::Takt, Program::Cyclone10], [Program::Takt, Program::FastDds2]],
        false => &[[Program::Takt; 2]],
    };
    let mut failures = Vec::new();
    for (pair, index) in pairs.iter().flat_map(|pair| chosen().into_iter().map(move |index| (*pair, index))) {
        match seen(index, pair) {
            None => return,
            Some(Err(why)) => failures.push(format!("variant {index} ({}), {pair:?}: {why}", variant(index))),
            Some(Ok(seen)) => {
                let wrong = find_contradictions(&seen, index, pair);
                failures
                    .extend(wrong.iter().map(|what| format!("variant {index} ({}), {pair:?}: {what}", variant(index))));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn seen(index: usize, pair: [Program; 2]) -> Option<Result<Eavesdropped, String>> {
    let network = hosts()?;
    let capture = possible(Capture::start(&network))?;
    let exchanged = exchange_in(&network, "capture", index, pair, [KeyAlgorithm::EcP256; 2])?;
    Some(exchanged.and_then(|()| capture.eavesdropped().map_err(|error| error.to_string())))
}

/// Returns the contradictions between the capture and the governance.
fn find_contradictions(seen: &Eavesdropped, index: usize, [left, right]: [Program; 2]) -> Vec<String> {
    let governance = variant(index);
    let mut payload = vec![0; SIZES[0]];
    content::fill(&mut payload, 0, 0);
    let hides_data = governance.data == BasicProtectionKind::Encrypt;
    let hides_submessages = governance.rtps.is_encrypted() || governance.metadata.is_encrypted();
    let shows_discovery = options(index, left, right).clear_discovery && !governance.discovery.is_protected();
    let hides_topics = governance.discovery.is_encrypted() || (governance.rtps.is_encrypted() && !shows_discovery);
    let of_application = |writer: &u64| writer & ORIGIN == 0;
    let is_whole = |submessages: &[u64]| submessages.contains(&SRTPS_PREFIX);
    let in_the_clear = || seen.messages.iter().filter(|message| !is_whole(&message.submessages));
    let mut wrong = Vec::new();
    let mut expect = |what: &str, is_seen: bool, shall_be_seen: bool| {
        if is_seen != shall_be_seen {
            wrong.push(format!("{what}: {}", if is_seen { "seen" } else { "not seen" }));
        }
    };
    expect("a payload", seen.has(&payload), !(hides_submessages || hides_data));
    expect("the name of a topic", seen.has(THERE.as_bytes()), !hides_topics);
    let shows_writer = seen.messages.iter().any(|message| message.writers.iter().any(of_application));
    expect("a writer of the application", shows_writer, !hides_submessages);
    let is_unprotected = in_the_clear().any(|message| message.writers.iter().any(of_application));
    let is_protected = governance.rtps.is_protected() || governance.metadata.is_encrypted();
    expect("a writer of the application in a message that is not protected", is_unprotected, !is_protected);
    let has_whole = seen.messages.iter().any(|message| is_whole(&message.submessages));
    expect("a message that is protected as a whole", has_whole, governance.rtps.is_protected());
    let has_sealed = in_the_clear().any(|message| message.submessages.contains(&SEC_PREFIX));
    expect("a protected submessage: those of keys always are", has_sealed, true);
    wrong
}
