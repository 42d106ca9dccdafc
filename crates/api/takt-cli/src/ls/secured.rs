//! Participants and endpoints that DDS Security keeps from communicating, as far as discovery
//! shows.

use crate::finding::Finding;
use takt::{DomainParticipant, ParticipantData, PublicationData, RefusedParticipant, SubscriptionData};
use takt_bench::Result;
use takt_security::attributes::SecurityInfo;
use takt_security::identity::{SubjectName, announced_authority};

/// Maximum number of participants that a finding names.
const NAMES_MAX: usize = 3;

/// Security data that a participant announces. Participants with equal data may authenticate each
/// other.
#[derive(Clone, PartialEq)]
struct Announced {
    /// Subject of the certificate authority that the participant trusts, if it can be parsed.
    authority: Option<SubjectName>,
    info: SecurityInfo,
}

/// Participants that announce the same security data. `None` stands for no security.
struct Group {
    announced: Option<Announced>,
    names: Vec<String>,
}

/// Finds participants that cannot authenticate each other: their authorities or protection differ,
/// or one side has no security.
pub fn unauthenticated_pairs(participants: &[ParticipantData]) -> Vec<Finding> {
    let mut groups: Vec<Group> = Vec::new();
    for data in participants {
        let (announced, name) = (announced(data), name(data));
        match groups.iter_mut().find(|group| group.announced == announced) {
            Some(group) => group.names.push(name),
            None => groups.push(Group { announced, names: vec![name] }),
        }
    }
    let pairs = groups.iter().enumerate().flat_map(|(at, one)| groups[at + 1..].iter().map(move |other| (one, other)));
    pairs.filter_map(|(one, other)| difference(one, other)).collect()
}

/// Finds participants that refuse this one or that it refuses, because of certificates, permissions
/// or protection.
///
/// # Errors
/// The participant is closed.
pub fn refused(participant: &DomainParticipant) -> Result<Vec<Finding>> {
    let finding = |refused: RefusedParticipant| {
        let remedy = "run takt security check on the enclaves of both; docs/guide/security.md";
        let what = format!("{} is not authenticated", refused.guid);
        Finding::of_network("not-authenticated", what, refused.reason, remedy)
            .with("participant", refused.guid.to_string())
    };
    Ok(participant.diagnostics().refused_participants()?.into_iter().map(finding).collect())
}

/// Returns why the protection of two endpoints keeps them from matching.
pub fn incompatible_protection(writer: &PublicationData, reader: &SubscriptionData) -> Option<String> {
    let info = SecurityInfo::from(writer.security_info?);
    let differences = info.differences_of_endpoints(reader.security_info?.into(), ["the writer", "the reader"])?;
    Some(format!("their protection differs: {differences}"))
}

fn announced(data: &ParticipantData) -> Option<Announced> {
    let token = data.identity_token.as_ref()?;
    let info = data.security_info.map(SecurityInfo::from).unwrap_or_default();
    Some(Announced { authority: announced_authority(token), info })
}

fn name(data: &ParticipantData) -> String {
    let name: String = data.entity_name.0.chars().filter(|c| !c.is_control()).collect();
    if name.is_empty() { data.guid.to_string() } else { format!("\"{name}\"") }
}

impl Group {
    fn named(&self) -> String {
        let shown = self.names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
        match self.names.len().saturating_sub(NAMES_MAX) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }
}

fn difference(one: &Group, other: &Group) -> Option<Finding> {
    let names = [one.named(), other.named()];
    let (a, b) = match (&one.announced, &other.announced) {
        (Some(a), Some(b)) => (a, b),
        (None, None) => return None,
        (is_secured, _) => {
            let [first, second] = names;
            let (secured, plain) = if is_secured.is_some() { (first, second) } else { (second, first) };
            let what = format!("{plain} without DDS Security, {secured} with it");
            let why =
                "they match only on unprotected topics, and only if the governance allows unauthenticated participants";
            let remedy = "set TAKT_SECURITY to the enclave of the participant; docs/guide/security-tools.md";
            let finding = Finding::of_network("security-missing", what, why, remedy);
            return Some(finding.with("without_security", plain).with("with_security", secured).into_hint());
        }
    };
    let [left, right] = &names;
    if let (Some(a), Some(b)) = (&a.authority, &b.authority)
        && a != b
    {
        let what = format!("{left} and {right} have identities of different authorities");
        let remedy = "issue the certificates of both from one keystore: takt security participant";
        let why = format!("\"{a}\" and \"{b}\": each refuses the other");
        let finding = Finding::of_network("authorities-differ", what, why, remedy);
        return Some(finding.with("authorities", vec![a.to_string(), b.to_string()]));
    }
    let differences = a.info.differences_of_participants(b.info, [left, right])?;
    let what = format!("{left} and {right} have different governance documents");
    let remedy = "copy one governance.p7s to the enclaves of both; docs/guide/security-tools.md";
    let why = format!("{differences}: each refuses the other");
    Some(Finding::of_network("governances-differ", what, why, remedy).with("differences", differences))
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_security::attributes::VALID;
    use takt_security::token::Token;

    fn participant(name: &str, authority: Option<&str>, rtps: u32) -> ParticipantData {
        let mut data =
            ParticipantData { entity_name: takt::qos::EntityName(name.into()), ..ParticipantData::default() };
        if let Some(authority) = authority {
            data.identity_token = Some(Token::new("DDS:Auth:PKI-DH:1.0").with("dds.ca.sn", authority).into());
            let info = SecurityInfo { attributes: VALID | rtps, plugin_attributes: VALID };
            data.security_info = Some(info.into());
        }
        data
    }

    fn findings(participants: &[ParticipantData]) -> Vec<String> {
        unauthenticated_pairs(participants).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn participants_that_announce_the_same_security_have_no_finding() {
        let spelled = ["CN=a,O=b", "/O=b/CN=a", "O = b, CN = a"];
        let all: Vec<_> = spelled.iter().map(|authority| participant("p", Some(authority), 1)).collect();
        assert!(findings(&all).is_empty());
        assert!(findings(&[participant("p", None, 0), participant("q", None, 0)]).is_empty());
    }

    #[test]
    fn each_difference_is_named_with_both_sides() {
        let one = participant("one", Some("CN=a"), 1);
        let found = findings(&[one.clone(), participant("two", Some("CN=b"), 1)]);
        assert!(found[0].starts_with("\"one\" and \"two\" have identities of different authorities"), "{found:?}");
        let found = findings(&[one.clone(), participant("two", Some("CN=a"), 0)]);
        assert!(found[0].contains("is_rtps_protected on the side of \"one\" only"), "{found:?}");
        for pair in [[one.clone(), participant("two", None, 0)], [participant("two", None, 0), one]] {
            let found = findings(&pair);
            assert!(found[0].starts_with("\"two\" without DDS Security, \"one\" with it"), "{found:?}");
        }
    }

    #[test]
    fn many_participants_are_counted_instead_of_named() {
        let mut all: Vec<_> = (0..5).map(|number| participant(&format!("p{number}"), Some("CN=a"), 1)).collect();
        all.push(participant("last", Some("CN=b"), 1));
        assert!(
            findings(&all)[0].starts_with("\"p0\", \"p1\", \"p2\" and 2 more and \"last\""),
            "{:?}",
            findings(&all)
        );
    }

    #[test]
    fn endpoints_with_different_protection_masks_do_not_match() {
        let mask = |attributes| Some(SecurityInfo { attributes: VALID | attributes, plugin_attributes: VALID }.into());
        let writer = PublicationData { security_info: mask(1 << 4), ..Default::default() };
        let reader = SubscriptionData { security_info: mask(0), ..Default::default() };
        let why = incompatible_protection(&writer, &reader);
        assert_eq!(
            why.as_deref(),
            Some("their protection differs: is_payload_protected on the side of the writer only")
        );
        assert_eq!(incompatible_protection(&writer, &SubscriptionData::default()), None);
    }
}
