//! Tests of signed documents, their decisions, and refused documents.

use super::*;
use crate::error::ErrorKind;
use crate::identity::{Authority, KeyAlgorithm, SubjectName};
use crate::tools::{Issuer, Validity, governance_xml, permissions_xml, sign_document};

const NOW: i64 = 1_800_000_000;
const VALID: Validity = Validity { not_before: NOW - 1_000, not_after: NOW + 1_000 };

fn issuer() -> Issuer {
    Issuer::create("Permissions CA", KeyAlgorithm::EcP256, VALID).expect("an authority")
}

fn authority(issuer: &Issuer) -> Authority {
    Authority::from_pem(&issuer.certificate_pem().expect("PEM")).expect("an authority")
}

fn topic_rule(expression: &str) -> TopicRule {
    TopicRule {
        topic_expression: expression.to_owned(),
        enable_discovery_protection: true,
        enable_liveliness_protection: false,
        enable_read_access_control: true,
        enable_write_access_control: true,
        metadata_protection_kind: ProtectionKind::SignWithOriginAuthentication,
        data_protection_kind: BasicProtectionKind::Encrypt,
    }
}

fn governance() -> Governance {
    Governance {
        domain_rules: vec![DomainRule {
            domains: DomainSet(vec![(0, 0), (5, 9)]),
            allow_unauthenticated_participants: false,
            enable_join_access_control: true,
            discovery_protection_kind: ProtectionKind::Encrypt,
            liveliness_protection_kind: ProtectionKind::Sign,
            rtps_protection_kind: ProtectionKind::EncryptWithOriginAuthentication,
            topic_rules: vec![
                TopicRule { enable_write_access_control: false, ..topic_rule("open/*") },
                topic_rule("rt/*"),
            ],
        }],
    }
}

fn rule(effect: Effect, topics: &[&str], partitions: &[&str], data_tags: &[(&str, &str)]) -> Rule {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let data_tags = data_tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let criteria = Criteria { topics: owned(topics), partitions: owned(partitions), data_tags };
    Rule {
        line: 0,
        effect,
        domains: DomainSet(vec![(0, 9)]),
        publish: vec![criteria],
        subscribe: Vec::new(),
        relay: Vec::new(),
    }
}

fn grant(rules: Vec<Rule>) -> Grant {
    Grant {
        name: "alice & co".to_owned(),
        subject: SubjectName::parse("CN=Alice").expect("a name"),
        not_before: NOW - 10,
        not_after: NOW + 10,
        rules,
        default: Effect::Deny,
    }
}

fn publish<'a>(topic_name: &'a str, partitions: &'a [&'a str], data_tags: &'a [(&'a str, &'a str)]) -> Query<'a> {
    Query { action: Action::Publish, domain_id: 0, topic_name, partitions, data_tags }
}

#[test]
fn signed_governance_parses_back() {
    let ca = issuer();
    let signed = sign_document(&ca, &governance_xml(&governance())).expect("a signature");
    let text = verify(&signed, &authority(&ca), NOW).expect("its signature");
    assert_eq!(Governance::parse(&text), Ok(governance()));
}

#[test]
fn signed_permissions_parse_back() {
    let ca = issuer();
    let mut rules = vec![
        rule(Effect::Deny, &["rt/secret"], &["a"], &[]),
        rule(Effect::Allow, &["rt/*", "x<y"], &[], &[("n", "v")]),
    ];
    rules[1].domains = DomainSet(vec![(0, 3), (7, 7)]);
    let permissions = Permissions { grants: vec![grant(rules)] };
    let signed = sign_document(&ca, &permissions_xml(&permissions)).expect("a signature");
    let text = verify(&signed, &authority(&ca), NOW).expect("its signature");
    let mut read = Permissions::parse(&text).expect("permissions");
    assert_eq!(read.grants[0].rules.iter().map(|rule| rule.line).collect::<Vec<_>>(), [10, 26]);
    read.grants[0].rules.iter_mut().for_each(|rule| rule.line = 0);
    assert_eq!(read, permissions);
}

#[test]
fn documents_signed_by_others_are_refused() {
    let ca = issuer();
    let text = governance_xml(&governance());
    let foreign = sign_document(&issuer(), &text).expect("a signature");
    assert_eq!(verify(&foreign, &authority(&ca), NOW).expect_err("foreign").kind(), ErrorKind::Signature);
    // An identity issued by the same authority is no valid signer.
    let (pem, key) = ca.issue("Alice", KeyAlgorithm::EcP256, VALID).expect("an identity");
    let alice = Issuer::from_pem(&pem, &key, None).expect("certificate and key");
    let own = sign_document(&alice, &text).expect("a signature");
    assert_eq!(verify(&own, &authority(&ca), NOW).expect_err("not the authority").kind(), ErrorKind::Signature);
}

#[test]
fn signature_of_an_expired_authority_is_refused() {
    let ca = issuer();
    let signed = sign_document(&ca, &governance_xml(&governance())).expect("a signature");
    assert!(verify(&signed, &authority(&ca), VALID.not_after - 1).is_ok());
    for now in [VALID.not_before - 1, VALID.not_after] {
        assert_eq!(verify(&signed, &authority(&ca), now).expect_err("refused").kind(), ErrorKind::Certificate);
    }
}

#[test]
fn changed_or_unsigned_documents_are_refused() {
    let ca = issuer();
    let signed = sign_document(&ca, &governance_xml(&governance())).expect("a signature");
    let text = String::from_utf8(signed).expect("text");
    let changed = text.replace("<min>5</min>", "<min>4</min>");
    assert_ne!(changed, text);
    assert_eq!(verify(changed.as_bytes(), &authority(&ca), NOW).expect_err("changed").kind(), ErrorKind::Signature);
    for unsigned in [governance_xml(&governance()), String::new(), "\0".to_owned()] {
        assert_eq!(verify(unsigned.as_bytes(), &authority(&ca), NOW).expect_err("none").kind(), ErrorKind::Malformed);
    }
    let long = vec![b' '; DOCUMENT_LEN_MAX + 1];
    assert_eq!(verify(&long, &authority(&ca), NOW).expect_err("long").kind(), ErrorKind::Limit);
}

#[test]
fn signed_document_with_a_trailing_nul_is_accepted() {
    let ca = issuer();
    let mut signed = sign_document(&ca, &governance_xml(&governance())).expect("a signature");
    signed.push(0);
    assert!(verify(&signed, &authority(&ca), NOW).is_ok());
}

#[test]
fn schema_of_2016_and_all_boolean_notations_are_parsed() {
    let text = r#"<domain_access_rules xmlns="http://www.omg.org/spec/DDS-Security/20160303">
      <domain_rule><domains><id_range><max>3</max></id_range><id_range><min>230</min></id_range></domains>
      <allow_unauthenticated_participants>TRUE</allow_unauthenticated_participants>
      <enable_join_access_control>0</enable_join_access_control>
      <discovery_protection_kind>NONE</discovery_protection_kind>
      <liveliness_protection_kind> SIGN </liveliness_protection_kind>
      <rtps_protection_kind>SIGN_WITH_ORIGIN_AUTHENTICATION</rtps_protection_kind>
      <topic_access_rules><topic_rule><topic_expression>*</topic_expression>
        <enable_discovery_protection>1</enable_discovery_protection>
        <enable_read_access_control>False</enable_read_access_control>
        <enable_write_access_control>true</enable_write_access_control>
        <metadata_protection_kind>NONE</metadata_protection_kind>
        <data_protection_kind>SIGN</data_protection_kind>
      </topic_rule></topic_access_rules></domain_rule></domain_access_rules>"#;
    let governance = Governance::parse(text).expect("governance");
    let rule = governance.domain_rule(232).expect("a rule");
    assert_eq!(rule.domains, DomainSet(vec![(0, 3), (230, 232)]));
    assert!(rule.allow_unauthenticated_participants && !rule.enable_join_access_control);
    let topic = rule.topic_rule("any").expect("a rule");
    assert!(topic.enable_discovery_protection && !topic.enable_liveliness_protection);
    assert!(!topic.enable_read_access_control && topic.enable_write_access_control);
    assert!(governance.domain_rule(4).is_err());
}

#[test]
fn elements_outside_the_schema_are_refused_with_their_line() {
    let good = governance_xml(&governance());
    assert!(Governance::parse(&good).is_ok());
    for (from, to, expected) in [
        ("<id>0</id>", "<id>233</id>", "line 6: <id> is \"233\""),
        ("<id>0</id>", "<id>-1</id>", "line 6: <id> is \"-1\""),
        ("<min>5</min>", "<min>10</min>", "line 7: <id_range> is empty"),
        ("<id>0</id>", "<idd>0</idd>", "line 6: <idd> is unknown in <domains>"),
        ("<id>0</id>", "<id>0<!-- -->1</id>", "line 6: <id> has text in several pieces"),
        ("<id>0</id>", "<id><b/></id>", "line 6: <id> has elements"),
        ("<id>0</id>", "0", "line 5: <domains> has text"),
        (">SIGN<", ">SIGNED<", "is not a protection kind"),
        ("<enable_join_access_control>true</enable_join_access_control>", "", "has no <enable_join_access_control>"),
        ("enable_liveliness_protection", "enable_discovery_protection", "occurs twice"),
        (">ENCRYPT</data_", ">SIGN_WITH_ORIGIN_AUTHENTICATION</data_", "not allowed for payloads"),
        ("<enable_join_access_control>true", "<enable_join_access_control>yes", "expected true or false"),
        ("<dds ", "<!DOCTYPE dds [<!ENTITY a \"b\">]><dds ", "XML: "),
    ] {
        let changed = good.replace(from, to);
        assert_ne!(changed, good, "{from}");
        let error = Governance::parse(&changed).expect_err(to);
        assert!(error.reason().starts_with("governance: ") && error.reason().contains(expected), "{error}");
    }
    assert!(Permissions::parse(&good).is_err());
}

#[test]
fn malformed_permissions_are_refused() {
    let good = permissions_xml(&Permissions { grants: vec![grant(vec![rule(Effect::Allow, &["t"], &[], &[])])] });
    assert!(Permissions::parse(&good).is_ok());
    for (from, to, expected) in [
        ("<subject_name>CN=Alice</subject_name>", "", "has no <subject_name>"),
        ("CN=Alice", "Alice", "expected NAME=VALUE"),
        ("<topic>t</topic>", "", "has no <topic>"),
        (" name=\"alice &amp; co\"", "", "has no attribute name"),
        ("<default>DENY", "<default>deny", "expected ALLOW or DENY"),
        ("<default>DENY</default>", "<default>DENY</default><default>DENY</default>", "occurs twice"),
        ("<not_before>2", "<not_before>x", "expected a time"),
        (
            "<topic>t<",
            "<topic>ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt<",
            "at most 256",
        ),
    ] {
        let changed = good.replace(from, to);
        assert_ne!(changed, good, "{from}");
        let error = Permissions::parse(&changed).expect_err(to);
        assert!(error.reason().contains(expected), "{error}");
    }
}

#[test]
fn first_rule_that_applies_decides_and_is_named() {
    let mut deny = rule(Effect::Deny, &["rt/secret*"], &[], &[]);
    deny.line = 12;
    let mut allow = rule(Effect::Allow, &["rt/*"], &[], &[]);
    allow.line = 20;
    let grant = grant(vec![deny, allow]);
    let decision = grant.decide(&publish("rt/secrets", &[], &[]));
    let expected = "grant \"alice & co\" denies publish of topic \"rt/secrets\" in domain 0: the deny_rule in line 12 by topic \"rt/secret*\"";
    assert_eq!(decision, Decision { is_allowed: false, reason: expected.to_owned() });
    let decision = grant.decide(&publish("rt/open", &[], &[]));
    assert!(decision.is_allowed && decision.reason.contains("allow_rule in line 20"), "{decision:?}");
    let decision = grant.decide(&publish("other", &[], &[]));
    assert!(!decision.is_allowed && decision.reason.contains("its default"), "{decision:?}");
    let subscribe = Query { action: Action::Subscribe, ..publish("rt/open", &[], &[]) };
    assert!(!grant.decide(&subscribe).is_allowed, "the rule is about writers");
    let other_domain = Query { domain_id: 10, ..publish("rt/open", &[], &[]) };
    assert!(!grant.decide(&other_domain).is_allowed, "the rule is about domains 0 to 9");
}

#[test]
fn allow_rule_requires_all_partitions_and_deny_rule_one() {
    let allow = grant(vec![rule(Effect::Allow, &["t"], &["a", "b*"], &[])]);
    for (partitions, expected) in
        [(&["a", "bc"][..], true), (&["a", "c"], false), (&[], false), (&[""], false), (&["b*"], true)]
    {
        assert_eq!(allow.decide(&publish("t", partitions, &[])).is_allowed, expected, "{partitions:?}");
    }
    let default_only = grant(vec![rule(Effect::Allow, &["t"], &[], &[])]);
    assert!(default_only.decide(&publish("t", &[], &[])).is_allowed);
    assert!(default_only.decide(&publish("t", &[""], &[])).is_allowed);
    assert!(!default_only.decide(&publish("t", &["a"], &[])).is_allowed);
    let mut deny = grant(vec![rule(Effect::Deny, &["t"], &["a"], &[])]);
    deny.default = Effect::Allow;
    assert!(!deny.decide(&publish("t", &["x", "a"], &[])).is_allowed);
    assert!(deny.decide(&publish("t", &["x"], &[])).is_allowed);
    let mut deny_all = grant(vec![rule(Effect::Deny, &["t"], &[], &[])]);
    deny_all.default = Effect::Allow;
    assert!(!deny_all.decide(&publish("t", &["x"], &[])).is_allowed, "no <partitions> denies all of them");
}

#[test]
fn data_tags_of_an_endpoint_must_be_granted() {
    let allow = grant(vec![rule(Effect::Allow, &["t"], &[], &[("n", "v"), ("m", "w")])]);
    for (tags, expected) in
        [(&[("n", "v")][..], true), (&[], true), (&[("n", "w")], false), (&[("n", "v"), ("x", "")], false)]
    {
        assert_eq!(allow.decide(&publish("t", &[], tags)).is_allowed, expected, "{tags:?}");
    }
    let mut deny = grant(vec![rule(Effect::Deny, &["t"], &[], &[("n", "v")])]);
    deny.default = Effect::Allow;
    assert!(!deny.decide(&publish("t", &[], &[("x", "y"), ("n", "v")])).is_allowed);
    assert!(deny.decide(&publish("t", &[], &[("x", "y")])).is_allowed);
}

fn access(ca: &Issuer, domain_id: u32) -> crate::Result<AccessControl> {
    let signed = sign_document(ca, &governance_xml(&governance())).expect("a signature");
    AccessControl::new(authority(ca), &signed, domain_id, NOW)
}

#[test]
fn grants_of_other_subjects_or_outside_their_validity_are_refused() {
    let ca = issuer();
    let access = access(&ca, 5).expect("governance");
    let permissions = Permissions { grants: vec![grant(vec![rule(Effect::Allow, &["*"], &[], &[])])] };
    let alice = SubjectName::parse("CN=Alice").expect("a name");
    let bob = SubjectName::parse("CN=Bob").expect("a name");
    assert_eq!(access.check_participant(&permissions, &alice, NOW), Ok(()));
    let text = |subject, now| access.check_participant(&permissions, subject, now).expect_err("refused").to_string();
    assert_eq!(text(&bob, NOW), "permissions have no grant for \"CN=Bob\"");
    assert!(text(&alice, NOW + 11).contains("expired at 2027-01-15T08:00:10Z"), "{}", text(&alice, NOW + 11));
    assert!(text(&alice, NOW - 11).contains("is not valid before"));
    assert!(access.decide(&permissions, &alice, publish("rt/a", &[], &[]), NOW + 11).is_err());
    let (mut none, mut late) = (permissions.clone(), permissions.clone());
    none.grants[0].rules.clear();
    assert!(access.check_participant(&none, &alice, NOW).expect_err("refused").reason().contains("domain 5"));
    late.grants[0].not_before = NOW + 11;
    late.grants[0].not_after = NOW + 20;
    late.grants.insert(0, permissions.grants[0].clone());
    assert_eq!(access.check_participant(&late, &alice, NOW + 15), Ok(()), "a renewed grant follows");
}

#[test]
fn topic_without_access_control_needs_no_grant_and_topic_without_rule_is_refused() {
    let ca = issuer();
    let access = access(&ca, 0).expect("governance");
    let nothing = Permissions { grants: Vec::new() };
    let alice = SubjectName::parse("CN=Alice").expect("a name");
    let decision = access.decide(&nothing, &alice, publish("open/a", &["p"], &[]), NOW).expect("a decision");
    assert!(decision.is_allowed && decision.reason.contains("topic_rule \"open/*\""), "{decision:?}");
    let read = Query { action: Action::Subscribe, ..publish("open/a", &[], &[]) };
    assert!(access.decide(&nothing, &alice, read, NOW).is_err());
    let error = access.decide(&nothing, &alice, publish("unknown", &[], &[]), NOW).expect_err("no rule");
    assert_eq!(error.reason(), "governance has no topic_rule for topic \"unknown\" in domains 0, 5-9");
    assert!(super::AccessControl::new(authority(&ca), b"", 0, NOW).is_err());
}

#[test]
fn domain_without_a_rule_is_refused() {
    let error = access(&issuer(), 4).expect_err("no rule");
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Document, "governance has no domain_rule for domain 4"));
}

#[test]
fn permissions_token_has_no_properties() {
    assert_eq!(permissions_token(), crate::token::Token::new("DDS:Access:Permissions:1.0"));
}
