//! Description of a topic's protection on the wire.

use serde::Serialize;
use takt_security::documents::{DomainRule, ProtectionKind, TopicRule};

/// Protection by one layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// Name of the layer in the governance document.
    pub layer: &'static str,
    /// Name of the kind in the governance document.
    pub kind: &'static str,
    /// Messages that the layer covers.
    pub covers: &'static str,
    /// Effect of the kind on these messages.
    pub effect: &'static str,
}

/// Protection of samples against hosts without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Samples {
    /// Whether such hosts can read samples.
    pub readable: bool,
    /// Whether such hosts can forge or change samples without detection.
    pub forgeable: bool,
}

/// Returns all layers, the outermost first.
pub fn layers(domain: &DomainRule, topic: &TopicRule) -> [Layer; 5] {
    // A topic without this protection is announced as without security.
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
        layer("metadata", topic.metadata_protection_kind, "submessages: samples, heartbeats, acknowledgments"),
        layer("data", topic.data_protection_kind.widened(), "payloads of samples"),
    ]
}

fn layer(layer: &'static str, kind: ProtectionKind, covers: &'static str) -> Layer {
    let effect = match kind {
        ProtectionKind::None => "neither authenticated nor encrypted",
        ProtectionKind::Sign => "authenticated, not encrypted",
        ProtectionKind::Encrypt => "authenticated and encrypted",
        ProtectionKind::SignWithOriginAuthentication => "authenticated, with receiver-specific MACs; not encrypted",
        ProtectionKind::EncryptWithOriginAuthentication => "authenticated and encrypted, with receiver-specific MACs",
    };
    Layer { layer, kind: kind.name(), covers, effect }
}

/// Returns the combined effect of all layers on samples.
pub fn samples(domain: &DomainRule, topic: &TopicRule) -> Samples {
    let kinds = [domain.rtps_protection_kind, topic.metadata_protection_kind, topic.data_protection_kind.widened()];
    Samples {
        readable: !kinds.iter().any(|kind| kind.is_encrypted()),
        forgeable: !kinds.iter().any(|kind| kind.is_protected()),
    }
}

impl Samples {
    /// Returns the protection as a sentence.
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
    fn topic_without_discovery_protection_is_announced_in_clear() {
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
    fn samples_are_as_protected_as_their_strongest_layer() {
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
