//! Serialization of governance and permissions to XML, in the element order of the 2017 schemas.

use std::fmt::Write;

use crate::documents::{Criteria, DomainSet, Effect, Governance, Permissions, format_date_time};

const SCHEMAS: &str = "http://www.omg.org/spec/DDS-SECURITY/20170901";

/// Escapes a text for use in elements and attributes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// XML document under construction, indented.
struct Xml {
    text: String,
    depth: usize,
}

impl Xml {
    fn document(schema: &str, content: impl FnOnce(&mut Self)) -> String {
        let mut xml = Self { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(), depth: 0 };
        let attributes = format!(
            "dds xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:noNamespaceSchemaLocation=\"{SCHEMAS}/{schema}\""
        );
        xml.element(&attributes, content);
        xml.text
    }

    /// Writes an element. The part of `tag` after the first space holds the attributes.
    fn element(&mut self, tag: &str, content: impl FnOnce(&mut Self)) {
        self.line(&format!("<{tag}>"));
        self.depth += 1;
        content(self);
        self.depth -= 1;
        let name = tag.split(' ').next().unwrap_or(tag);
        self.line(&format!("</{name}>"));
    }

    fn value(&mut self, name: &str, value: &str) {
        self.line(&format!("<{name}>{}</{name}>", escape(value)));
    }

    fn line(&mut self, line: &str) {
        let width = 2 * self.depth;
        writeln!(self.text, "{:width$}{line}", "").expect("a string takes everything");
    }

    fn domains(&mut self, domains: &DomainSet) {
        self.element("domains", |xml| {
            for (low, high) in &domains.0 {
                if low == high {
                    xml.value("id", &low.to_string());
                } else {
                    xml.element("id_range", |xml| {
                        xml.value("min", &low.to_string());
                        xml.value("max", &high.to_string());
                    });
                }
            }
        });
    }

    fn criteria(&mut self, name: &str, all: &[Criteria]) {
        for criteria in all {
            self.element(name, |xml| {
                xml.list("topics", "topic", &criteria.topics);
                xml.list("partitions", "partition", &criteria.partitions);
                if !criteria.data_tags.is_empty() {
                    xml.element("data_tags", |xml| {
                        for (name, value) in &criteria.data_tags {
                            xml.element("tag", |xml| {
                                xml.value("name", name);
                                xml.value("value", value);
                            });
                        }
                    });
                }
            });
        }
    }

    fn list(&mut self, name: &str, element: &str, values: &[String]) {
        if !values.is_empty() {
            self.element(name, |xml| values.iter().for_each(|value| xml.value(element, value)));
        }
    }
}

/// Returns a governance document.
pub fn governance_xml(governance: &Governance) -> String {
    Xml::document("omg_shared_ca_governance.xsd", |xml| {
        xml.element("domain_access_rules", |xml| {
            for rule in &governance.domain_rules {
                xml.element("domain_rule", |xml| {
                    xml.domains(&rule.domains);
                    let unauthenticated = rule.allow_unauthenticated_participants;
                    xml.value("allow_unauthenticated_participants", &unauthenticated.to_string());
                    xml.value("enable_join_access_control", &rule.enable_join_access_control.to_string());
                    xml.value("discovery_protection_kind", rule.discovery_protection_kind.name());
                    xml.value("liveliness_protection_kind", rule.liveliness_protection_kind.name());
                    xml.value("rtps_protection_kind", rule.rtps_protection_kind.name());
                    xml.element("topic_access_rules", |xml| {
                        for topic in &rule.topic_rules {
                            xml.element("topic_rule", |xml| {
                                xml.value("topic_expression", &topic.topic_expression);
                                xml.value(
                                    "enable_discovery_protection",
                                    &topic.enable_discovery_protection.to_string(),
                                );
                                xml.value(
                                    "enable_liveliness_protection",
                                    &topic.enable_liveliness_protection.to_string(),
                                );
                                xml.value("enable_read_access_control", &topic.enable_read_access_control.to_string());
                                xml.value(
                                    "enable_write_access_control",
                                    &topic.enable_write_access_control.to_string(),
                                );
                                xml.value("metadata_protection_kind", topic.metadata_protection_kind.name());
                                xml.value("data_protection_kind", topic.data_protection_kind.name());
                            });
                        }
                    });
                });
            }
        });
    })
}

/// Returns a permissions document.
pub fn permissions_xml(permissions: &Permissions) -> String {
    Xml::document("omg_shared_ca_permissions.xsd", |xml| {
        xml.element("permissions", |xml| {
            for grant in &permissions.grants {
                xml.element(&format!("grant name=\"{}\"", escape(&grant.name)), |xml| {
                    xml.value("subject_name", &grant.subject.to_string());
                    xml.element("validity", |xml| {
                        xml.value("not_before", &format_date_time(grant.not_before));
                        xml.value("not_after", &format_date_time(grant.not_after));
                    });
                    for rule in &grant.rules {
                        let name = if rule.effect == Effect::Allow { "allow_rule" } else { "deny_rule" };
                        xml.element(name, |xml| {
                            xml.domains(&rule.domains);
                            xml.criteria("publish", &rule.publish);
                            xml.criteria("subscribe", &rule.subscribe);
                            xml.criteria("relay", &rule.relay);
                        });
                    }
                    xml.value("default", if grant.default == Effect::Allow { "ALLOW" } else { "DENY" });
                });
            }
        });
    })
}
