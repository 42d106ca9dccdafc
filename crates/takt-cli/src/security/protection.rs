//! Protection of a topic on the wire, in words.

use serde::Serialize;
use takt_security::documents::{DomainRule, ProtectionKind, TopicRule};

/// Protection of one layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// Name of the layer in the governance document.
    pub layer: &'static str,
    /// Name of the kind in the governance document.
    pub kind: &'static str,
    /// The octets that the layer is about.
    pub covers: &'static str,
    /// What the kind does for them.
    pub effect: &'static str,
}

/// Protection of samples against hosts that have no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Samples {
    /// Can they be read?
    pub readable: bool,
    /// Can they be forged or changed, without being noticed?
    pub forgeable: bool,
}

/// All layers, the outermost first.
pub fn layers(domain: &DomainRule, topic: &TopicRule) -> [Layer; 5] {
    // A topic that does not ask for it is announced as without security.
    let of_topic = |is_enabled: bool, kind| if is_enabled { kind } else { ProtectionKind::None };
    [
        layer("rtps", domain.rtps_protection_kind, "whole RTPS messages"),
        layer(
            "discovery",
            of_topic(topic.enable_discovery_protection, domain.discovery_protection_kind),
            "announcements of writers and readers, with topic name, type and QoS",
        ),
        layer(
            "liveliness",
            of_topic(topic.enable_liveliness_protection, domain.liveliness_protection_kind),
            "liveliness assertions",
        ),
        layer("metadata", topic.metadata_protection_kind, "submessages: samples, heartbeats, acknowledgements"),
        layer("data", topic.data_protection_kind.widened(), "payloads of samples alone"),
    ]
}

fn layer(layer: &'static str, kind: ProtectionKind, covers: &'static str) -> Layer {
    let effect = match kind {
        ProtectionKind::None => "neither authenticated nor encrypted",
        ProtectionKind::Sign => "authenticated, not encrypted",
        ProtectionKind::Encrypt => "authenticated and encrypted",
        ProtectionKind::SignWithOriginAuthentication => "authenticated, with a code for each receiver; not encrypted",
        ProtectionKind::EncryptWithOriginAuthentication => "authenticated and encrypted, with a code for each receiver",
    };
    Layer { layer, kind: kind.name(), covers, effect }
}

/// What all layers together do for samples.
pub fn samples(domain: &DomainRule, topic: &TopicRule) -> Samples {
    let kinds = [domain.rtps_protection_kind, topic.metadata_protection_kind, topic.data_protection_kind.widened()];
    Samples {
        readable: !kinds.iter().any(|kind| kind.is_encrypted()),
        forgeable: !kinds.iter().any(|kind| kind.is_protected()),
    }
}

impl Samples {
    /// The same in a sentence.
    pub const fn sentence(self) -> &'static str {
        match (self.readable, self.forgeable) {
            (false, _) => "A host without a key can neither read nor forge samples.",
            (true, false) => "A host without a key can read samples; it cannot forge them.",
            (true, true) => "Any host on the network can read and forge samples.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_security::documents::{BasicProtectionKind, DomainSet};

    fn rules(rtps: ProtectionKind, metadata: ProtectionKind, data: BasicProtectionKind) -> (DomainRule, TopicRule) {
        let topic = TopicRule {
            topic_expression: "*".to_owned(),
            enable_discovery_protection: false,
            enable_liveliness_protection: true,
            enable_read_access_control: true,
            enable_write_access_control: true,
            metadata_protection_kind: metadata,
            data_protection_kind: data,
        };
        let domain = DomainRule {
            domains: DomainSet(vec![(0, 0)]),
            allow_unauthenticated_participants: false,
            enable_join_access_control: true,
            discovery_protection_kind: ProtectionKind::Encrypt,
            liveliness_protection_kind: ProtectionKind::Sign,
            rtps_protection_kind: rtps,
            topic_rules: vec![topic.clone()],
        };
        (domain, topic)
    }

    #[test]
    fn topic_that_does_not_ask_for_protected_discovery_is_announced_in_clear() {
        let (domain, topic) = rules(ProtectionKind::Sign, ProtectionKind::Encrypt, BasicProtectionKind::None);
        let kinds = layers(&domain, &topic).map(|layer| (layer.layer, layer.kind));
        let expected = [
            ("rtps", "SIGN"),
            ("discovery", "NONE"),
            ("liveliness", "SIGN"),
            ("metadata", "ENCRYPT"),
            ("data", "NONE"),
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn samples_are_as_safe_as_their_strongest_layer() {
        use ProtectionKind::{Encrypt, None, Sign};
        for (rtps, metadata, data, readable, forgeable) in [
            (None, None, BasicProtectionKind::None, true, true),
            (Sign, None, BasicProtectionKind::None, true, false),
            (None, Sign, BasicProtectionKind::Encrypt, false, false),
            (Encrypt, None, BasicProtectionKind::None, false, false),
        ] {
            let (domain, topic) = rules(rtps, metadata, data);
            let found = samples(&domain, &topic);
            assert_eq!(found, Samples { readable, forgeable });
            assert_eq!(found.sentence().contains("Any host"), forgeable);
        }
    }
}
