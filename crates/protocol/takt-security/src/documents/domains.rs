//! Sets of domain ids (`<domains>` with `<id>` and `<id_range>`).

use std::fmt;

use super::xml::{Element, Fields};
use crate::error::Result;

/// Largest domain id for which RTPS defines ports.
///
/// INTEROP(CycloneDDS 0.10): refuses documents with domain ids above 230.
pub const DOMAIN_ID_MAX: u32 = 232;

/// Ranges of domain ids, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainSet(pub Vec<(u32, u32)>);

impl DomainSet {
    /// Reports whether the domain is in one of the ranges.
    pub fn contains(&self, domain_id: u32) -> bool {
        self.0.iter().any(|(low, high)| (*low..=*high).contains(&domain_id))
    }

    pub(super) fn read(element: Element<'_>) -> Result<Self> {
        let mut ranges = Vec::new();
        for child in element.children(&["id", "id_range"])? {
            if child.name() == "id" {
                let id = domain_id(child)?;
                ranges.push((id, id));
                continue;
            }
            let fields = Fields::of(child, &["min", "max"])?;
            let low = fields.optional("min").map(domain_id).transpose()?;
            let high = fields.optional("max").map(domain_id).transpose()?;
            let range = (low.unwrap_or(0), high.unwrap_or(DOMAIN_ID_MAX));
            if (low, high) == (None, None) || range.0 > range.1 {
                return Err(child.error("is empty: it needs <min> or <max>, with <min> at most <max>"));
            }
            ranges.push(range);
        }
        if ranges.is_empty() {
            return Err(element.error("has no domain"));
        }
        Ok(Self(ranges))
    }
}

impl fmt::Display for DomainSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (low, high)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            match low == high {
                true => write!(f, "{comma}{low}")?,
                false => write!(f, "{comma}{low}-{high}")?,
            }
        }
        Ok(())
    }
}

fn domain_id(element: Element<'_>) -> Result<u32> {
    let text = element.text()?;
    let id = text.parse().ok().filter(|id| *id <= DOMAIN_ID_MAX);
    id.ok_or_else(|| element.error(&format!("is \"{text}\", expected a domain id from 0 to {DOMAIN_ID_MAX}")))
}
