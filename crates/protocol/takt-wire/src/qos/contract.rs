//! Timing contract of an endpoint, which the QoS policies of DDS lack: minimum separation and
//! maximum size of the samples of a writer, end-to-end latency of a reader.
//!
//! The contract is sent as `key=value;` in USER_DATA (DDS 1.4 §2.2.3.1), next to other keys, and as
//! properties (RTPS 2.5 §9.6.3). An endpoint of any vendor can therefore declare it. A property
//! overrides USER_DATA. The parser ignores unknown keys and values that are not numbers. The first
//! of two equal keys counts.
//!
//! | key | unit | endpoint |
//! |---|---|---|
//! | `rt.min_sep_ns` | minimum ns between two samples | writer |
//! | `rt.early` | `wait` or `refuse`: treatment of a sample that is written earlier | writer |
//! | `rt.e2e_ns` | maximum ns from write to delivery | reader |
//! | `rt.max_bytes` | maximum octets of a serialized sample, its encapsulation header included | writer, reader |

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{DataReaderQos, DataWriterQos, Property, PropertyEntry, UserData};
use crate::time::Duration;

const MIN_SEP: &str = "rt.min_sep_ns";
const EARLY: &str = "rt.early";
const E2E: &str = "rt.e2e_ns";
const MAX_BYTES: &str = "rt.max_bytes";

/// Property of a writer or reader: priority on the executor, -64 to 63.
pub const PRIORITY: &str = "rt.priority";
/// Property of a writer or reader: maximum nanoseconds of one listener call.
pub const BUDGET: &str = "rt.budget_ns";
/// Property of a writer or reader: reaction to a longer listener call; `count`, the default, or
/// `suspend`.
pub const OVERRUN: &str = "rt.overrun";
/// Property of a writer or reader: transports of its data, in order of preference. See
/// `docs/guide/transports.md`.
pub const TRANSPORT: &str = "takt.transport";

/// Treatment of a sample that is written before the minimum separation has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EarlyWrite {
    /// The write call waits.
    #[default]
    Wait,
    /// The write call fails.
    Refuse,
}

/// Timing contract of an endpoint; empty by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contract {
    /// MINIMUM_SEPARATION: the minimum time between two samples of a writer, regardless of their
    /// instances.
    pub minimum_separation: Option<Duration>,
    /// Treatment of a sample that is written earlier.
    pub early_write: EarlyWrite,
    /// E2E_LATENCY: the maximum time from write to delivery that a reader requests.
    pub e2e_latency: Option<Duration>,
    /// Maximum length of a serialized sample in octets, its encapsulation header included.
    pub max_sample_bytes: Option<u32>,
}

impl Contract {
    /// Parses the contract from USER_DATA and properties.
    pub fn of(user_data: &UserData, property: &Property) -> Self {
        let mut contract = Self::default();
        let pairs = property.entries.iter().map(|entry| (entry.name.as_bytes(), entry.value.as_bytes()));
        let fields = user_data.0.split(|octet| *octet == b';').filter_map(|field| {
            let at = field.iter().position(|octet| *octet == b'=')?;
            Some((&field[..at], &field[at + 1..]))
        });
        let mut early = None;
        for (key, value) in pairs.chain(fields) {
            let (Ok(key), Ok(value)) = (core::str::from_utf8(key), core::str::from_utf8(value)) else { continue };
            let value = value.trim_matches(|c: char| c.is_whitespace() || c == '\0');
            let span = || value.parse().ok().map(Duration::from_nanos);
            match key.trim() {
                MIN_SEP => contract.minimum_separation = contract.minimum_separation.or_else(span),
                E2E => contract.e2e_latency = contract.e2e_latency.or_else(span),
                MAX_BYTES => contract.max_sample_bytes = contract.max_sample_bytes.or_else(|| value.parse().ok()),
                EARLY if value == "wait" => _ = early.get_or_insert(EarlyWrite::Wait),
                EARLY if value == "refuse" => _ = early.get_or_insert(EarlyWrite::Refuse),
                _ => {}
            }
        }
        contract.early_write = early.unwrap_or_default();
        contract
    }

    fn pairs(&self) -> Vec<(&'static str, String)> {
        let nanos = |span: Option<Duration>| span.and_then(Duration::as_nanos).map(|nanos| nanos.to_string());
        let early = (self.early_write == EarlyWrite::Refuse).then(|| "refuse".to_string());
        [
            (MIN_SEP, nanos(self.minimum_separation)),
            (EARLY, early),
            (E2E, nanos(self.e2e_latency)),
            (MAX_BYTES, self.max_sample_bytes.map(|bytes| bytes.to_string())),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
    }

    fn put(&self, user_data: &mut UserData, property: &mut Property) {
        if user_data.0.last().is_some_and(|last| *last != b';') && !self.pairs().is_empty() {
            user_data.0.push(b';');
        }
        for (key, value) in self.pairs() {
            user_data.0.extend_from_slice(format!("{key}={value};").as_bytes());
            property.entries.push(PropertyEntry::propagated(key, value));
        }
    }

    /// Replaces the contract that USER_DATA and properties declare.
    pub(super) fn replace(&self, user_data: &mut UserData, property: &mut Property) {
        let is_own = |key: &str| [MIN_SEP, EARLY, E2E, MAX_BYTES].contains(&key.trim());
        property.entries.retain(|entry| !is_own(&entry.name));
        let key = |field: &[u8]| field.split(|octet| *octet == b'=').next().map(<[u8]>::to_vec).unwrap_or_default();
        let others = user_data.0.split(|octet| *octet == b';').filter(|field| !field.is_empty());
        let others = others.filter(|field| core::str::from_utf8(&key(field)).map_or(true, |key| !is_own(key)));
        user_data.0 = others.collect::<Vec<_>>().join(&b';');
        self.put(user_data, property);
    }

    /// Adds the contract to the policies of a writer without a contract.
    pub fn put_into_writer(&self, qos: &mut DataWriterQos) {
        self.put(&mut qos.user_data, &mut qos.property);
    }

    /// Adds the contract to the policies of a reader without a contract.
    pub fn put_into_reader(&self, qos: &mut DataReaderQos) {
        self.put(&mut qos.user_data, &mut qos.property);
    }
}

/// Describes contradictions between the contract of a writer and that of a reader. Such a pair
/// matches nevertheless, since other vendors do not know contracts.
pub fn contradictions(writer: &DataWriterQos, reader: &DataReaderQos) -> Vec<String> {
    let offered = Contract::of(&writer.user_data, &writer.property);
    let wanted = Contract::of(&reader.user_data, &reader.property);
    let mut all = Vec::new();
    if let Some(e2e) = wanted.e2e_latency.filter(|e2e| writer.latency_budget.duration > *e2e) {
        all.push(format!("the writer may hold samples for {}, the reader requests rt.e2e_ns {e2e}", {
            writer.latency_budget.duration
        }));
    }
    if let Some(separation) = offered.minimum_separation.filter(|separation| *separation > reader.deadline.period) {
        let period = reader.deadline.period;
        all.push(format!("the writer writes at most every {separation}, the reader requests a DEADLINE of {period}"));
    }
    if let (Some(offered), Some(wanted)) = (offered.max_sample_bytes, wanted.max_sample_bytes)
        && offered > wanted
    {
        all.push(format!("the writer's samples have up to {offered} octets, the reader accepts {wanted}"));
    }
    if let Some(e2e) = wanted.e2e_latency.filter(|e2e| writer.lifespan.duration < *e2e) {
        let lifespan = writer.lifespan.duration;
        all.push(format!("samples expire after {lifespan}, the reader allows rt.e2e_ns {e2e}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_data(text: &[u8]) -> UserData {
        UserData(text.to_vec())
    }

    #[test]
    fn contract_round_trips_and_keeps_other_user_data() {
        let contract = Contract {
            minimum_separation: Some(Duration::from_millis(5)),
            early_write: EarlyWrite::Refuse,
            e2e_latency: Some(Duration::from_millis(1)),
            max_sample_bytes: Some(1_400),
        };
        let mut qos = DataWriterQos { user_data: user_data(b"typehash=RIHS01_00"), ..DataWriterQos::default() };
        contract.put_into_writer(&mut qos);
        let text: &[u8] =
            b"typehash=RIHS01_00;rt.min_sep_ns=5000000;rt.early=refuse;rt.e2e_ns=1000000;rt.max_bytes=1400;";
        assert_eq!(qos.user_data.0, text);
        assert_eq!(Contract::of(&qos.user_data, &Property::default()), contract);
        assert_eq!(Contract::of(&UserData::default(), &qos.property), contract);
        let mut alone = DataReaderQos::default();
        Contract { max_sample_bytes: Some(7), ..Contract::default() }.put_into_reader(&mut alone);
        assert_eq!(alone.user_data.0, b"rt.max_bytes=7;");
        let mut none = DataReaderQos::default();
        Contract::default().put_into_reader(&mut none);
        assert_eq!(none, DataReaderQos::default());
    }

    #[test]
    fn parser_ignores_malformed_values_and_properties_override_user_data() {
        let read = |text: &[u8]| Contract::of(&user_data(text), &Property::default());
        let contract = read(b";;x;rt.max_bytes=;rt.max_bytes = 20 ;rt.max_bytes=30;rt.e2e_ns=-1;\xff=1;rt.early=no\0");
        assert_eq!(contract, Contract { max_sample_bytes: Some(20), ..Contract::default() });
        assert_eq!(read(b"rt.e2e_ns=99999999999999999999999"), Contract::default());
        assert_eq!(read(b"rt.early=wait;rt.early=refuse").early_write, EarlyWrite::Wait, "the first one counts");
        assert_eq!(read(b"rt.early=refuse;rt.early=wait").early_write, EarlyWrite::Refuse);
        let property = Property::from_iter([PropertyEntry::propagated(MAX_BYTES, "7")]);
        assert_eq!(Contract::of(&user_data(b"rt.max_bytes=20"), &property).max_sample_bytes, Some(7));
    }

    #[test]
    fn contradicting_numbers_are_reported() {
        let quick = Contract { e2e_latency: Some(Duration::from_millis(5)), ..Contract::default() };
        let small = Contract { max_sample_bytes: Some(100), ..Contract::default() };
        let (mut writer, mut reader) = (DataWriterQos::default(), DataReaderQos::default());
        assert_eq!(contradictions(&writer, &reader).len(), 0);
        quick.put_into_reader(&mut reader);
        small.put_into_reader(&mut reader);
        reader.deadline.period = Duration::from_millis(10);
        assert_eq!(contradictions(&writer, &reader).len(), 0);
        Contract {
            minimum_separation: Some(Duration::from_millis(11)),
            max_sample_bytes: Some(101),
            ..Contract::default()
        }
        .put_into_writer(&mut writer);
        assert_eq!(contradictions(&writer, &reader).len(), 2);
        writer.latency_budget.duration = Duration::from_millis(6);
        writer.lifespan.duration = Duration::from_millis(4);
        assert_eq!(contradictions(&writer, &reader).len(), 4);
    }

    #[test]
    fn numbers_at_the_bound_do_not_contradict() {
        let span = Duration::from_millis(5);
        let contract = Contract { max_sample_bytes: Some(100), e2e_latency: Some(span), ..Contract::default() };
        let (mut writer, mut reader) = (DataWriterQos::default(), DataReaderQos::default());
        Contract { minimum_separation: Some(span), ..contract }.put_into_writer(&mut writer);
        contract.put_into_reader(&mut reader);
        writer.latency_budget.duration = span;
        writer.lifespan.duration = span;
        reader.deadline.period = span;
        assert_eq!(contradictions(&writer, &reader), [""; 0]);
    }
}
