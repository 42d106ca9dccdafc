//! Reason why the OpenFlow controller refuses an endpoint: a parameter in the announcement that
//! the controller made incompatible.
//!
//! Vendor-specific parameter (RTPS 2.5 §9.6.3.1): four magic octets and a CDR string. A value
//! without the magic octets belongs to another vendor and is ignored. A value with a malformed
//! string is ignored, too. The text comes from the network: it is truncated, and control characters
//! of a terminal are removed.
//!
//! The changed announcement reaches one participant only. That participant reports the refusal to
//! others in a property of its own announcement ([`ReportedRefusal`]).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::parameter::{Parameter, ParameterListBuilder};
use crate::qos::Property;
use crate::{EntityId, Guid};

/// Parameter id.
pub const PID_TAKT_REFUSAL: u16 = 0x8f01;

/// Magic octets at the start of the value, since other vendors may use the same id.
pub const REFUSAL_MAGIC: [u8; 4] = *b"takt";

/// Maximum length of a reason, in octets. A longer one is truncated.
pub const REFUSAL_LEN_MAX: usize = 200;

/// Name of the property that lists the refused endpoints of a participant.
pub const REFUSALS_PROPERTY: &str = "rt.refused";

/// Maximum number of refusals that a participant reports; the latest ones are kept.
pub const REPORTED_REFUSALS_MAX: usize = 4;

/// Pair of endpoints that the OpenFlow controller refuses, as reported by one of the two
/// participants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReportedRefusal {
    /// Endpoint of the reporting participant.
    pub local: EntityId,
    /// Endpoint of the other participant.
    pub remote: Guid,
    /// Reason that the controller gives.
    pub reason: String,
}

impl ReportedRefusal {
    /// Returns the refusals that a participant reports. Malformed lines are ignored.
    pub fn all_of(properties: &Property) -> impl Iterator<Item = Self> {
        let text = properties.get(REFUSALS_PROPERTY).unwrap_or_default();
        text.split('\n').take(REPORTED_REFUSALS_MAX).filter_map(|line| {
            let mut fields = line.splitn(3, ' ');
            let local = u32::from_str_radix(fields.next()?, 16).ok()?; // tidy-allow(dropped-cause): a malformed line is ignored.
            let remote = u128::from_str_radix(fields.next()?, 16).ok()?; // tidy-allow(dropped-cause): the same.
            let reason = truncate_reason(fields.next()?).chars().filter(|c| !disrupts_text(*c)).collect();
            Some(Self { local: EntityId(local.to_be_bytes()), remote: Guid::from_bytes(remote.to_be_bytes()), reason })
        })
    }

    /// Sets the property to these refusals, replacing an older report.
    pub fn put(reports: &[Self], properties: &mut Property) {
        let line = |Self { local, remote, reason }: &Self| {
            let (local, remote) = (u32::from_be_bytes(local.0), u128::from_be_bytes(remote.to_bytes()));
            format!("{local:08x} {remote:032x} {reason}")
        };
        let lines: Vec<String> = reports.iter().take(REPORTED_REFUSALS_MAX).map(line).collect();
        properties.entries.retain(|entry| entry.name != REFUSALS_PROPERTY);
        if !lines.is_empty() {
            properties.set(REFUSALS_PROPERTY, lines.join("\n"), true);
        }
    }
}

fn truncate_reason(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(REFUSAL_LEN_MAX)]
}

/// Reports whether the character moves, hides or reorders adjacent characters.
pub(super) fn disrupts_text(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Adds the reason to an announcement.
pub fn put_refusal(list: &mut ParameterListBuilder, reason: &str) {
    list.put(PID_TAKT_REFUSAL, |value| {
        value.bytes(&REFUSAL_MAGIC);
        value.string(truncate_reason(reason));
    });
}

/// Returns the reason in a parameter with this id.
pub(super) fn parse(parameter: &Parameter<'_>) -> Option<String> {
    let mut value = parameter.cursor();
    let magic: [u8; 4] = value.array().ok()?; // tidy-allow(dropped-cause): the value belongs to another vendor.
    let text = value.string().ok().filter(|_| magic == REFUSAL_MAGIC)?; // tidy-allow(dropped-cause): the policies show the refusal, too.
    Some(truncate_reason(text).chars().filter(|c| !disrupts_text(*c)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::PublicationData;
    use crate::{EntityId, Guid, GuidPrefix};

    /// Returns an announcement with this value of the parameter.
    fn announced(value: &[u8]) -> PublicationData {
        let guid = Guid { prefix: GuidPrefix([7; 12]), entity_id: EntityId([0, 0, 1, 3]) };
        let data = PublicationData { guid, topic_name: "T".into(), type_name: "Type".into(), ..Default::default() };
        let mut octets = data.to_bytes();
        octets.truncate(octets.len() - 4);
        octets.extend_from_slice(&PID_TAKT_REFUSAL.to_le_bytes());
        octets.extend_from_slice(&u16::try_from(value.len()).expect("short").to_le_bytes());
        octets.extend_from_slice(value);
        octets.extend_from_slice(&[1, 0, 0, 0]);
        PublicationData::parse(&octets).expect("the announcement is valid")
    }

    fn text(reason: &[u8]) -> alloc::vec::Vec<u8> {
        let mut value = REFUSAL_MAGIC.to_vec();
        value.extend_from_slice(&(reason.len() as u32 + 1).to_le_bytes());
        value.extend_from_slice(reason);
        value.push(0);
        value.resize(value.len().next_multiple_of(4), 0);
        value
    }

    #[test]
    fn reason_round_trips() {
        let data = PublicationData { refusal: Some("port 1 is full".into()), ..announced(&text(b"other")) };
        assert_eq!(PublicationData::parse(&data.to_bytes()), Ok(data));
    }

    #[test]
    fn reason_is_truncated_and_control_characters_are_removed() {
        let long = "ä".repeat(150);
        assert_eq!(announced(&text(long.as_bytes())).refusal, Some("ä".repeat(100)));
        let hostile = "full\x1b[2J\n\u{202e}drawkcab\u{200b}";
        assert_eq!(announced(&text(hostile.as_bytes())).refusal.as_deref(), Some("full[2Jdrawkcab"));
    }

    #[test]
    fn reported_refusals_round_trip_and_malformed_ones_are_ignored() {
        let report = |n: u8| ReportedRefusal {
            local: EntityId([0, 0, n, 3]),
            remote: Guid { prefix: GuidPrefix([n; 12]), entity_id: EntityId([0, 0, 1, 4]) },
            reason: "port 1 is full".into(),
        };
        let mut properties = Property::default();
        ReportedRefusal::put(&[report(1), report(2)], &mut properties);
        assert_eq!(ReportedRefusal::all_of(&properties).collect::<Vec<_>>(), [report(1), report(2)]);
        ReportedRefusal::put(&[], &mut properties);
        assert_eq!(properties, Property::default());
        let text = "x y z\n1 2\n1 2 full\x1b[2J\n";
        properties.set(REFUSALS_PROPERTY, text, true);
        let reasons: Vec<String> = ReportedRefusal::all_of(&properties).map(|report| report.reason).collect();
        assert_eq!(reasons, ["full[2J"]);
    }

    #[test]
    fn value_that_is_malformed_or_of_another_vendor_is_ignored() {
        let mut damaged = text(b"full");
        damaged[4] = 200;
        let not_utf8 = text(b"\xff\xfe");
        for value in [&b"takt"[..], b"", b"fastfast", &damaged, &not_utf8] {
            assert_eq!(announced(value).refusal, None, "{value:?}");
        }
    }
}
