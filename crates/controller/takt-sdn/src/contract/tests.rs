//! Tests of contracts by source, and of errors in a contract file.

use std::time::Duration;

use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::{Contract as Keys, Deadline, LatencyBudget, TransportPriority, UserData};

use super::*;

fn pair(of_writer: &str, of_reader: &str) -> (PublicationData, SubscriptionData) {
    let mut writer =
        PublicationData { topic_name: "Camera".into(), type_name: "Image".into(), ..PublicationData::default() };
    let mut reader =
        SubscriptionData { topic_name: "Camera".into(), type_name: "Image".into(), ..SubscriptionData::default() };
    writer.qos.user_data = UserData(of_writer.as_bytes().to_vec());
    reader.qos.user_data = UserData(of_reader.as_bytes().to_vec());
    (writer, reader)
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn keys_written_by_takt_form_a_contract() {
    let (mut writer, mut reader) = pair("", "");
    let nanos = |nanos| Some(takt_wire::Duration::from_nanos(nanos));
    Keys { minimum_separation: nanos(5_000_000), max_sample_bytes: Some(1400), ..Keys::default() }
        .put_into_writer(&mut writer.qos);
    Keys { e2e_latency: nanos(1_000_000), ..Keys::default() }.put_into_reader(&mut reader.qos);
    let contract = resolve(&writer, &reader, &ContractFile::default()).expect("all values are declared");
    assert_eq!(contract.separation, Sourced::new(millis(5), Source::WriterKey("rt.min_sep_ns")));
    assert_eq!(contract.size, Sourced::new(1400, Source::WriterKey("rt.max_bytes")));
    assert_eq!(contract.limit, Sourced::new(millis(1), Source::ReaderKey("rt.e2e_ns")));
    assert_eq!(contract.importance, Sourced::new(0, Source::Default));
}

#[test]
fn keys_with_units_form_a_contract() {
    let (writer, reader) = pair("a=b; rt.minsep = 5ms;rt.maxsize=1400;rt.importance=-3", "rt.e2e=250us\0");
    let contract = resolve(&writer, &reader, &ContractFile::default()).expect("all values are declared");
    assert_eq!((contract.separation.value, contract.size.value), (millis(5), 1400));
    assert_eq!((contract.limit.value, contract.importance.value), (Duration::from_micros(250), -3));
    assert_eq!(contract.limit.source.to_string(), "key rt.e2e of the reader");
}

#[test]
fn jitter_is_one_separation_unless_the_writer_or_the_file_declares_it() {
    let (writer, reader) = pair("rt.minsep=5ms;rt.maxsize=1400", "rt.e2e=1ms;rt.jitter=9ms");
    let contract = resolve(&writer, &reader, &ContractFile::default()).expect("all values are declared");
    assert_eq!(contract.jitter, Sourced::new(millis(5), Source::Default), "a reader has none");
    assert!(!contract.to_string().contains("late"), "{contract}");
    let (writer, reader) = pair("rt.minsep=5ms;rt.maxsize=1400;rt.jitter=40ms", "rt.e2e=1ms");
    let contract = resolve(&writer, &reader, &ContractFile::default()).expect("all values are declared");
    assert_eq!(contract.jitter, Sourced::new(millis(40), Source::WriterKey("rt.jitter")));
    assert!(contract.to_string().contains("up to 40ms late (key rt.jitter of the writer)"), "{contract}");
    let file = ContractFile::parse("[[contract]]\ntopic = '*'\njitter = '1s'\n").expect("the contract file is valid");
    let contract = resolve(&writer, &reader, &file).expect("all values are declared");
    assert_eq!(contract.jitter, Sourced::new(millis(1000), Source::File { line: 3 }));
}

#[test]
fn protection_is_requested_by_the_writer_or_the_file() {
    let (writer, reader) = pair("rt.minsep=5ms;rt.maxsize=1400", "rt.e2e=1ms;rt.protected=true");
    let contract = resolve(&writer, &reader, &ContractFile::default()).expect("all values are declared");
    assert_eq!(contract.is_protected, Sourced::new(false, Source::Default), "a reader asks for none");
    let (writer, reader) = pair("rt.minsep=5ms;rt.maxsize=1400;rt.protected=true", "rt.e2e=1ms");
    let contract = resolve(&writer, &reader, &ContractFile::default()).expect("all values are declared");
    assert_eq!(contract.is_protected, Sourced::new(true, Source::WriterKey("rt.protected")));
    assert!(contract.to_string().ends_with("protected (key rt.protected of the writer)"), "{contract}");
    let file = ContractFile::parse("[[contract]]\ntopic = '*'\nprotected = false\n").expect("a valid file");
    let contract = resolve(&writer, &reader, &file).expect("all values are declared");
    assert_eq!(contract.is_protected, Sourced::new(false, Source::File { line: 3 }));
}

#[test]
fn policies_apply_where_keys_are_missing() {
    let (mut writer, mut reader) = pair("", "");
    writer.max_sample_serialized = Some(900);
    writer.qos.deadline = Deadline { period: takt_wire::Duration::from_millis(20) };
    writer.qos.transport_priority = TransportPriority(9);
    reader.qos.deadline = Deadline { period: takt_wire::Duration::from_millis(30) };
    let by_deadline = resolve(&writer, &reader, &ContractFile::default()).expect("all values are declared");
    assert_eq!(by_deadline.separation, Sourced::new(millis(20), Source::WriterPolicy("DEADLINE")));
    assert_eq!(by_deadline.size, Sourced::new(900, Source::TypeMaxSize));
    assert_eq!(by_deadline.limit, Sourced::new(millis(30), Source::ReaderPolicy("DEADLINE")));
    assert_eq!(by_deadline.importance, Sourced::new(9, Source::WriterPolicy("TRANSPORT_PRIORITY")));
    reader.qos.latency_budget = LatencyBudget { duration: takt_wire::Duration::from_millis(4) };
    let by_budget = resolve(&writer, &reader, &ContractFile::default()).expect("all values are declared");
    assert_eq!(by_budget.limit, Sourced::new(millis(4), Source::ReaderPolicy("LATENCY_BUDGET")));
}

#[test]
fn contract_without_size_names_what_is_missing() {
    let (writer, reader) = pair("rt.minsep=5ms", "rt.e2e=1ms");
    let reason = resolve(&writer, &reader, &ContractFile::default()).expect_err("no size");
    assert_eq!(reason.missing, [Value::Size]);
    assert!(reason.is_partial() && reason.to_string().contains("rt.max_bytes"), "{reason}");
    let (writer, reader) = pair("rt.minsep=0ms;rt.maxsize=0", "rt.e2e=-1ms");
    let nothing = resolve(&writer, &reader, &ContractFile::default()).expect_err("nothing is declared");
    assert!(!nothing.is_partial());
}

#[test]
fn file_overrides_the_endpoints_value_by_value() {
    let text = "[[contract]]\ntopic = 'Cam*'\ntype = 'Im?ge'\nlimit = '2 ms'\nimportance = 4\n\n\
                [[contract]]\ntopic = '*'\nsize = 77\n";
    let file = ContractFile::parse(text).expect("the contract file is valid");
    let (writer, reader) = pair("rt.minsep=5ms;rt.maxsize=1400;rt.importance=1", "rt.e2e=1ms");
    let contract = resolve(&writer, &reader, &file).expect("all values are declared");
    assert_eq!(contract.limit, Sourced::new(millis(2), Source::File { line: 4 }));
    assert_eq!(contract.importance, Sourced::new(4, Source::File { line: 5 }));
    assert_eq!(contract.size, Sourced::new(1400, Source::WriterKey("rt.maxsize")), "the first table counts alone");
    assert_eq!((file.len(), file.is_empty()), (2, false));
}

#[test]
fn errors_of_a_file_name_line_and_key() {
    let error = |text: &str| ContractFile::parse(text).expect_err("the contract file is invalid").to_string();
    let cases = [
        ("[[contract]]\ntopic = 'a'\nseparation = '5'\n", "line 3: separation: is not a duration"),
        ("[[contract]]\ntopic = 'a'\njitter = 0\n", "line 3: jitter: is not a duration"),
        ("[[contract]]\ntopic = 'a'\nlimit = 5\n", "line 3: limit: is not a duration"),
        ("[[contract]]\ntopic = 'a'\n\nsize = 0\n", "line 4: size: is not a size"),
        ("[[contract]]\ntopic = 1\n", "line 2: topic: is not a string"),
        ("\n[[contract]]\nsize = 1\n", "line 2: topic: is missing"),
        ("[[contract]]\ntopic = 'a'\nimportance = 3000000000\n", "line 3: importance: is not a 32-bit integer"),
        ("[[contract]]\ntopic = 'a'\nprotected = 1\n", "line 3: protected: is neither true nor false"),
        ("[[contract]]\ntopic = 'a'\nlatency = '1ms'\n", "line 3: latency: unknown key"),
        ("contract = 1\n", "line 1: contract: is not a list"),
        ("[flow]\n", "line 1: flow: unknown key"),
        ("[[contract]]\ntopic = \n", "line 2: "),
    ];
    for (text, expected) in cases {
        let found = error(text);
        assert!(found.starts_with(expected), "{text:?}: {found}");
    }
    assert!(error(&"#".repeat(FILE_LEN_MAX + 1)).contains("1048577 octets"));
}

#[test]
fn spans_need_a_whole_number_and_a_unit() {
    assert_eq!(parse_span(" 5ms "), Some(millis(5)));
    assert_eq!(parse_span("7 ns"), Some(Duration::from_nanos(7)));
    assert_eq!(parse_span("2s"), Some(Duration::from_secs(2)));
    for wrong in ["", "5", "ms", "1.5ms", "-1ms", "0s", "5m", "99999999999999999999s", "9999999999999s", "5 ms x"] {
        assert_eq!(parse_span(wrong), None, "{wrong:?}");
    }
}

#[test]
fn default_of_the_file_applies_where_no_other_source_does() {
    let file = "[[contract]]\ntopic = 'Camera'\nsize = 900\n[default]\nseparation = '1s'\nsize = 100\nlimit = '7ms'\nimportance = -5\n";
    let file = ContractFile::parse(file).expect("the contract file is valid");
    let (writer, reader) = pair("rt.minsep=5ms", "");
    let contract = resolve(&writer, &reader, &file).expect("the default has what is missing");
    assert_eq!((contract.separation.value, contract.size.value), (millis(5), 900));
    assert_eq!(contract.limit, Sourced::new(millis(7), Source::File { line: 7 }));
    assert_eq!((contract.jitter.value, contract.importance.value), (millis(5), -5));
    for (text, key) in [("[default]\ntopic = 'a'", "topic"), ("default = 1", "contract")] {
        let error = ContractFile::parse(text).expect_err("a default with patterns or as a list is refused");
        assert_eq!(error.key, key, "{error}");
    }
}
