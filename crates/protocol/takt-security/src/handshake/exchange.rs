//! Handshake steps of both roles: construction and verification of each message.

use takt_wire::Guid;

use super::agreement::{KeyPair, ModpForm};
use super::wire::{self, Challenge, Hash, Transcript};
use super::{Authenticated, Credentials};
use crate::error::Result;
use crate::identity::{Certificate, UnixSeconds};
use crate::keys::SharedSecret;
use crate::token::Token;

/// Initiator that waits for the Reply.
pub(super) struct Initiation {
    pair: KeyPair,
    dh1: Vec<u8>,
    hash1: Hash,
    challenge1: Challenge,
}

/// Replier that waits for the Final.
pub(super) struct Answer {
    certificate: Certificate,
    permissions: Vec<u8>,
    participant_data: Vec<u8>,
    secret: [u8; 32],
    hash1: Hash,
    hash2: Hash,
    challenge1: Challenge,
    challenge2: Challenge,
    dh1: Vec<u8>,
    dh2: Vec<u8>,
}

impl Initiation {
    pub(super) fn begin(local: &Credentials, challenge1: Challenge) -> Result<Self> {
        let pair = KeyPair::generate(local.options.agreement)?;
        let dh1 = pair.public(ModpForm::Raw)?;
        let (_, hash1) = wire::request(local, &pair, &dh1, &challenge1)?;
        Ok(Self { pair, dh1, hash1, challenge1 })
    }

    pub(super) fn request<'a>(&'a self, local: &'a Credentials) -> Result<Token<'a>> {
        Ok(wire::request(local, &self.pair, &self.dh1, &self.challenge1)?.0)
    }

    /// Checks the Reply and creates the Final.
    pub(super) fn finish(
        &self,
        local: &Credentials,
        remote: Guid,
        reply: &Token<'_>,
        now: UnixSeconds,
        last: impl FnOnce(Token<'_>) -> Vec<u8>,
    ) -> Result<(Authenticated, Vec<u8>)> {
        let agreement = wire::agreement(reply)?;
        if agreement != self.pair.algorithm() {
            let (found, own) = (agreement.name(), self.pair.algorithm().name());
            return Err(wire::malformed(format!("Reply agrees by {found}, the Request by {own}")));
        }
        if wire::challenge(reply, "challenge1")? != self.challenge1 {
            return Err(wire::malformed("Reply to another Request: challenge1 differs"));
        }
        wire::check_repeated(reply, "hash_c1", &self.hash1)?;
        wire::check_repeated(reply, "dh1", &self.dh1)?;
        let hash2 = wire::credentials_hash(reply)?;
        wire::check_repeated(reply, "hash_c2", &hash2)?;
        let challenge2 = wire::challenge(reply, "challenge2")?;
        let dh2 = wire::public_key(reply, "dh2")?;
        let signature = wire::signature_of(reply)?;
        let certificate = wire::check_credentials(reply, remote, local, now)?;
        let transcript = Transcript {
            hash1: &self.hash1,
            hash2: &hash2,
            challenge1: &self.challenge1,
            challenge2: &challenge2,
            dh1: &self.dh1,
            dh2,
        };
        certificate.verify(&transcript.of_reply(), signature)?;
        let secret = self.pair.agree(dh2)?;
        let own_signature = local.identity.key().sign(&transcript.of_final())?;
        let last = last(wire::last(local, &transcript, own_signature));
        let authenticated = Authenticated {
            certificate,
            permissions: reply.octets("c.perm").unwrap_or_default().to_vec(),
            participant_data: reply.octets("c.pdata").unwrap_or_default().to_vec(),
            secret: SharedSecret::new(&secret, self.challenge1, challenge2),
        };
        Ok((authenticated, last))
    }
}

impl Answer {
    /// Checks the Request and creates the Reply.
    pub(super) fn to_request(
        local: &Credentials,
        remote: Guid,
        request: &Token<'_>,
        challenge2: Challenge,
        now: UnixSeconds,
        reply: impl FnOnce(Token<'_>) -> Vec<u8>,
    ) -> Result<(Self, Vec<u8>)> {
        let agreement = wire::agreement(request)?;
        let hash1 = wire::credentials_hash(request)?;
        wire::check_repeated(request, "hash_c1", &hash1)?;
        let challenge1 = wire::challenge(request, "challenge1")?;
        let dh1 = wire::public_key(request, "dh1")?;
        let certificate = wire::check_credentials(request, remote, local, now)?;
        let pair = KeyPair::generate(agreement)?;
        let secret = pair.agree(dh1)?;
        let dh2 = pair.public(ModpForm::of(dh1))?;
        let own = wire::with_credentials(Token::new(wire::REPLY), local, agreement);
        let hash2 = wire::credentials_hash(&own)?;
        let transcript = Transcript {
            hash1: &hash1,
            hash2: &hash2,
            challenge1: &challenge1,
            challenge2: &challenge2,
            dh1,
            dh2: &dh2,
        };
        let own_signature = local.identity.key().sign(&transcript.of_reply())?;
        let payload = reply(wire::reply(local, own, &transcript, own_signature));
        let dh1 = dh1.to_vec();
        let permissions = request.octets("c.perm").unwrap_or_default().to_vec();
        let participant_data = request.octets("c.pdata").unwrap_or_default().to_vec();
        let answer =
            Self { certificate, permissions, participant_data, secret, hash1, hash2, challenge1, challenge2, dh1, dh2 };
        Ok((answer, payload))
    }

    /// Reports whether this is the Request that was answered.
    pub(super) fn answers(&self, request: &Token<'_>) -> bool {
        let is_same = |name: &str, known: &[u8]| request.octets(name) == Some(known);
        is_same("challenge1", &self.challenge1)
            && is_same("dh1", &self.dh1)
            && wire::credentials_hash(request).is_ok_and(|hash| hash == self.hash1)
    }

    /// Checks the Final.
    pub(super) fn check(&self, last: &Token<'_>) -> Result<()> {
        for (name, own) in [("challenge1", &self.challenge1), ("challenge2", &self.challenge2)] {
            if wire::challenge(last, name)? != *own {
                return Err(wire::malformed(format!("Final of another handshake: {name} differs")));
            }
        }
        wire::check_repeated(last, "hash_c1", &self.hash1)?;
        wire::check_repeated(last, "hash_c2", &self.hash2)?;
        wire::check_repeated(last, "dh1", &self.dh1)?;
        wire::check_repeated(last, "dh2", &self.dh2)?;
        let transcript = Transcript {
            hash1: &self.hash1,
            hash2: &self.hash2,
            challenge1: &self.challenge1,
            challenge2: &self.challenge2,
            dh1: &self.dh1,
            dh2: &self.dh2,
        };
        self.certificate.verify(&transcript.of_final(), wire::signature_of(last)?)
    }

    pub(super) fn into_authenticated(self) -> Authenticated {
        Authenticated {
            certificate: self.certificate,
            permissions: self.permissions,
            participant_data: self.participant_data,
            secret: SharedSecret::new(&self.secret, self.challenge1, self.challenge2),
        }
    }
}
