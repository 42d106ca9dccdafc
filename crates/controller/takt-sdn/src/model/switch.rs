//! Models of switches: data files in TOML.
//!
//! A model describes the properties of one type of switch that the analysis and the rules need.
//! [`SwitchModel::built_in`] returns the models that are part of Takt.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use takt_calculus::network::{CLASSES_MAX, Depth};
use toml::Spanned;

/// Maximum length of a model file in octets.
pub const FILE_MAX: usize = 64 * 1024;

/// Selection of the queue of a class. At least one of the two is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSelection {
    /// Queue number of the OpenFlow action SET_QUEUE.
    pub set_queue: Option<u32>,
    /// DSCP by which the switch selects the queue.
    pub dscp: Option<u8>,
}

/// One queue of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Selection of the queue.
    pub selection: QueueSelection,
    /// Capacity of the queue.
    pub depth: Depth,
}

/// Table capacities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// Capacity for flow entries.
    pub flow_entries: u32,
    /// Capacity for groups.
    pub groups: u32,
    /// Capacity for meters.
    pub meters: u32,
}

/// A type of switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchModel {
    /// Name of the type.
    pub name: String,
    /// Queues of flows with contracts, the most urgent first, served by strict priority without
    /// preemption before all other traffic.
    pub queues: Vec<Queue>,
    /// Queue of control traffic, served after those with contracts and before all other traffic.
    pub control: Option<Queue>,
    /// Minimum time in ns from the end of a frame on the incoming link until it is in the queue of
    /// a port.
    pub forwarding_ns_min: u64,
    /// Maximum time in ns from the end of a frame on the incoming link until it is in the queue of
    /// a port.
    pub forwarding_ns: u64,
    /// Length in octets of the longest frame without a contract, without FCS.
    pub foreign_frame_len: u64,
    /// Maximum excess of a meter over its rate in ppm.
    pub rate_limiter_ppm: u32,
    /// Step in ns in which a meter refills.
    pub rate_limiter_step_ns: u64,
    /// Table capacities.
    pub tables: Tables,
}

/// Error of a model file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    /// Name of the file or of the built-in model.
    pub source: String,
    /// Line, starting at 1.
    pub line: usize,
    /// Key of the error.
    pub key: String,
    /// Error and expected content.
    pub what: String,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, line, key, what } = self;
        write!(f, "{source}:{line}: {key}: {what}")
    }
}

impl std::error::Error for ModelError {}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scheduling {
    StrictPriority,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Times {
    min: u64,
    max: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueEntry {
    set_queue: Option<u32>,
    dscp: Option<Spanned<u8>>,
    octets: Option<Spanned<u64>>,
    frames: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    #[serde(rename = "scheduling")]
    _scheduling: Scheduling,
    forwarding_ns: Spanned<Times>,
    foreign_frame_len: Spanned<u64>,
    rate_limiter_ppm: Spanned<u32>,
    #[serde(default)]
    rate_limiter_step_ns: u32,
    tables: Tables,
    queue: Vec<Spanned<QueueEntry>>,
    control: Option<Spanned<QueueEntry>>,
}

/// A text with its name for errors.
pub(super) struct Text<'a> {
    pub(super) source: &'a str,
    pub(super) text: &'a str,
}

impl Text<'_> {
    pub(super) fn error(&self, span: Option<Range<usize>>, key: &str, what: impl Into<String>) -> ModelError {
        let at = span.map_or(0, |span| span.start).min(self.text.len());
        let line = self.text.as_bytes()[..at].iter().filter(|octet| **octet == b'\n').count() + 1;
        ModelError { source: self.source.to_owned(), line, key: key.to_owned(), what: what.into() }
    }

    /// Returns the key of the line in which a span begins.
    pub(super) fn key(&self, span: Option<Range<usize>>) -> &str {
        let at = span.map_or(0, |span| span.start).min(self.text.len());
        let line = self.text.lines().nth(self.text.as_bytes()[..at].iter().filter(|octet| **octet == b'\n').count());
        line.and_then(|line| line.split('=').next()).unwrap_or_default().trim()
    }
}

impl SwitchModel {
    /// Built-in models: name and text of the file.
    pub const BUILT_IN: [(&str, &str); 2] = [
        ("ovs-netdev", include_str!("../../models/ovs-netdev.toml")),
        ("generic-hardware", include_str!("../../models/generic-hardware.toml")),
    ];

    /// Returns a built-in model.
    ///
    /// # Errors
    /// There is no such model.
    pub fn built_in(name: &str) -> Result<Self, ModelError> {
        let Some((_, text)) = Self::BUILT_IN.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = Self::BUILT_IN.iter().map(|(known, _)| *known).collect();
            let what = format!("no built-in model has this name; expected one of {}", known.join(", "));
            return Err(ModelError { source: name.to_owned(), line: 1, key: "name".to_owned(), what });
        };
        Self::parse(name, text)
    }

    /// Parses a model file. `source` is its name in errors.
    ///
    /// # Errors
    /// Line and key of an invalid value.
    pub fn parse(source: &str, text: &str) -> Result<Self, ModelError> {
        let text = Text { source, text };
        if text.text.len() > FILE_MAX {
            return Err(text.error(None, "", format!("the file has more than {FILE_MAX} octets")));
        }
        let file: File = toml::from_str(text.text)
            .map_err(|error| text.error(error.span(), text.key(error.span()), error.message()))?;
        let forwarding = file.forwarding_ns.get_ref();
        if forwarding.min > forwarding.max {
            return Err(text.error(Some(file.forwarding_ns.span()), "forwarding_ns", "min is above max"));
        }
        if file.name.get_ref().is_empty() {
            return Err(text.error(Some(file.name.span()), "name", "is empty"));
        }
        if !(60..=65_535).contains(file.foreign_frame_len.get_ref()) {
            let what = "expected the octets of a frame, 60 to 65535";
            return Err(text.error(Some(file.foreign_frame_len.span()), "foreign_frame_len", what));
        }
        if *file.rate_limiter_ppm.get_ref() > 1_000_000 {
            let what = "expected 0 to 1000000 parts of a million";
            return Err(text.error(Some(file.rate_limiter_ppm.span()), "rate_limiter_ppm", what));
        }
        let most = CLASSES_MAX - usize::from(file.control.is_some());
        if file.queue.is_empty() || file.queue.len() > most {
            let what = format!("expected 1 to {most} queues, found {}", file.queue.len());
            return Err(text.error(file.queue.last().map(Spanned::span), "queue", what));
        }
        let queues = file.queue.iter().map(|queue| text.queue(queue)).collect::<Result<Vec<_>, _>>()?;
        for (n, queue) in queues.iter().enumerate() {
            if queues[..n].iter().any(|other| other.selection == queue.selection) {
                return Err(text.error(Some(file.queue[n].span()), "queue", "is reached as a queue before it"));
            }
        }
        let control = file.control.as_ref().map(|control| text.queue(control)).transpose()?;
        if let (Some(control), Some(entry)) = (&control, &file.control)
            && queues.iter().any(|queue| queue.selection == control.selection)
        {
            return Err(text.error(Some(entry.span()), "control", "is reached as a queue with contracts"));
        }
        Ok(Self {
            name: file.name.into_inner(),
            queues,
            control,
            forwarding_ns_min: forwarding.min,
            forwarding_ns: forwarding.max,
            foreign_frame_len: file.foreign_frame_len.into_inner(),
            rate_limiter_ppm: file.rate_limiter_ppm.into_inner(),
            rate_limiter_step_ns: file.rate_limiter_step_ns.into(),
            tables: file.tables,
        })
    }
}

impl Text<'_> {
    fn queue(&self, entry: &Spanned<QueueEntry>) -> Result<Queue, ModelError> {
        let QueueEntry { set_queue, dscp, octets, frames } = entry.get_ref();
        if let Some(dscp) = dscp.as_ref().filter(|dscp| *dscp.get_ref() > 63) {
            return Err(self.error(Some(dscp.span()), "dscp", "expected 0 to 63"));
        }
        let empty = [("octets", octets), ("frames", frames)];
        for (key, depth) in empty.into_iter().filter_map(|(key, depth)| Some((key, depth.as_ref()?))) {
            if *depth.get_ref() == 0 {
                return Err(self.error(Some(depth.span()), key, "expected a depth above 0"));
            }
        }
        let selection = QueueSelection { set_queue: *set_queue, dscp: dscp.as_ref().map(|dscp| *dscp.get_ref()) };
        if selection.set_queue.is_none() && selection.dscp.is_none() {
            return Err(self.error(Some(entry.span()), "queue", "expected set_queue, dscp or both"));
        }
        if octets.is_none() && frames.is_none() {
            return Err(self.error(Some(entry.span()), "queue", "expected its depth: octets, frames or both"));
        }
        let limit = |depth: &Option<Spanned<u64>>| depth.as_ref().map_or(u64::MAX, |depth| *depth.get_ref());
        Ok(Queue { selection, depth: Depth { octets: limit(octets), frames: limit(frames) } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_models_parse() {
        for (name, _) in SwitchModel::BUILT_IN {
            let model = SwitchModel::built_in(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(model.name, name);
        }
        let ovs = SwitchModel::built_in("ovs-netdev").expect("the model is built in");
        assert!(ovs.queues.iter().all(|queue| queue.selection.set_queue.is_none()), "set_queue has no effect there");
        assert_eq!(ovs.forwarding_ns, 256_000);
        let error = SwitchModel::built_in("abacus").expect_err("the model does not exist");
        assert!(error.what.contains("ovs-netdev"), "{error}");
    }

    #[test]
    fn errors_name_line_and_key() {
        let good = SwitchModel::BUILT_IN[0].1;
        let line_of = |text: &str, part: &str| text.lines().position(|line| line.contains(part)).expect("there") + 1;
        for (old, new, key) in [
            ("max = 256_000", "max = -1", "forwarding_ns"),
            ("min = 0", "min = 999_000", "forwarding_ns"),
            ("foreign_frame_len = 1518", "foreign_frame_len = 5", "foreign_frame_len"),
            ("rate_limiter_ppm = 50_000", "rate_limiter_ppm = 5_000_000", "rate_limiter_ppm"),
            ("rate_limiter_step_ns = 1_000_000", "rate_limiter_step_ns = -1", "rate_limiter_step_ns"),
            ("meters = 262_144", "meterz = 1", "meterz"),
            ("scheduling = \"strict-priority\"", "scheduling = \"lottery\"", "scheduling"),
            ("dscp = 34", "dscp = 64", "dscp"),
            ("name = \"ovs-netdev\"", "name = \"\"", "name"),
        ] {
            let bad = good.replacen(old, new, 1);
            let error = SwitchModel::parse("bad.toml", &bad).expect_err(new);
            assert_eq!((error.key.as_str(), error.line), (key, line_of(&bad, new)), "{error}");
        }
    }

    #[test]
    fn queues_that_cannot_be_reached_or_hold_nothing_are_refused() {
        let good = SwitchModel::BUILT_IN[0].1;
        for (old, new) in [
            ("dscp = 46\n", ""),
            ("frames = 100\n", ""),
            ("frames = 100\n", "frames = 0\n"),
            ("dscp = 34", "dscp = 46"),
            ("dscp = 34", "dscp = true"),
            ("dscp = 48", "dscp = 18"),
        ] {
            SwitchModel::parse("bad.toml", &good.replacen(old, new, 1)).expect_err(new);
        }
        SwitchModel::parse("long.toml", &" ".repeat(FILE_MAX + 1)).expect_err("the text is too long");
    }
}
