//! Tests of SQL parsing and patterns. Evaluation on bytes and on data is tested in
//! `tests/it/sql.rs`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use super::parser::Step;
use super::pattern::{like, matches};
use super::*;
use crate::dynamic::{Budget, Text};

fn position(text: &str) -> usize {
    Condition::parse(text).expect_err(text).position
}

#[test]
fn malformed_condition_is_refused_at_the_first_wrong_token() {
    for (text, at) in [
        ("x >", 3),
        ("x > 5 y", 6),
        ("x ! 5", 2),
        ("(x > 5", 6),
        ("x > 5)", 5),
        ("x = 'abc", 4),
        ("x = 'a\nb'", 4),
        ("x = %100", 4),
        ("x = %", 4),
        ("a..b = 1", 2),
        ("a.1 = 1", 2),
        ("a[] = 1", 2),
        ("a[1 = 1", 3),
        ("x = 5x", 5),
        ("x = 1.5.2", 7),
        ("x = 0x", 4),
        ("x = 99999999999999999999", 4),
        ("x BETWEEN 1", 11),
        ("x BETWEEN 1 OR 2", 12),
        ("5 BETWEEN 1 AND 2", 0),
        ("x NOT 5", 2),
        ("AND x = 1", 0),
        ("x = AND", 4),
        ("x = 1 AND", 9),
        ("é = 1", 0),
    ] {
        assert_eq!(position(text), at, "{text}");
    }
}

#[test]
fn exceeding_a_limit_is_an_error() {
    let nested = |levels| format!("{}x=1{}", "(".repeat(levels), ")".repeat(levels));
    assert!(Condition::parse(&nested(NESTING_MAX)).is_ok());
    assert!(Condition::parse(&nested(NESTING_MAX + 1)).is_err());
    let chain = |count| vec!["x=1"; count].join(" OR ");
    assert!(Condition::parse(&chain(PREDICATES_MAX)).is_ok());
    assert!(Condition::parse(&chain(PREDICATES_MAX + 1)).is_err());
    assert!(Condition::parse(&format!("{}=1", vec!["x"; PATH_PARTS_MAX].join("."))).is_ok());
    assert!(Condition::parse(&format!("{}=1", vec!["x"; PATH_PARTS_MAX + 1].join("."))).is_err());
    assert!(Condition::parse(&" ".repeat(EXPRESSION_LEN_MAX)).is_ok());
    assert!(Condition::parse(&" ".repeat(EXPRESSION_LEN_MAX + 1)).is_err());
    let order = |count| format!("ORDER BY {}", vec!["x"; count].join(","));
    assert!(QueryExpression::parse(&order(LIST_MAX)).is_ok());
    assert!(QueryExpression::parse(&order(LIST_MAX + 1)).is_err());
    let join = |count| format!("SELECT * FROM {}", vec!["a"; count].join(" NATURAL JOIN "));
    assert!(TopicExpression::parse(&join(LIST_MAX)).is_ok());
    assert!(TopicExpression::parse(&join(LIST_MAX + 1)).is_err());
}

/// Runs the program of a condition with these values of its predicates.
fn run(condition: &Condition, values: &[bool]) -> bool {
    let (mut value, mut at) = (true, 0);
    while let Some(step) = condition.program.get(at) {
        at += 1;
        match step {
            Step::Test(predicate, _) => value = values[*predicate],
            Step::Not => value = !value,
            Step::JumpIf(when, target) => at = if *when == value { *target } else { at },
        }
    }
    value
}

#[test]
fn not_precedes_and_and_and_precedes_or() {
    type Meaning = fn(bool, bool, bool) -> bool;
    let cases: [(&str, Meaning); 7] = [
        ("x=1 OR x=2 AND x=3", |a, b, c| a || b && c),
        ("x=1 AND x=2 OR x=3", |a, b, c| a && b || c),
        ("(x=1 OR x=2) AND x=3", |a, b, c| (a || b) && c),
        ("NOT x=1 AND x=2 OR x=3", |a, b, c| !a && b || c),
        ("not (x=1 and not (x=2 or x=3))", |a, b, c| !(a && !(b || c))),
        ("NOT NOT x=1 AND (NOT (x=2)) AND NOT NOT NOT x=3", |a, b, c| a && !b && !c),
        ("x=1 AND (x=2 OR x=3) OR NOT (x=1)", |a, b, c| b || c || !a),
    ];
    for (text, meaning) in cases {
        let condition = Condition::parse(text).expect(text);
        for bits in 0..8 {
            let (a, b, c) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
            assert_eq!(run(&condition, &[a, b, c, a]), meaning(a, b, c), "{text} {a} {b} {c}");
        }
    }
}

#[test]
fn like_supports_percent_and_underscore() {
    for (text, pattern, fits) in [
        ("", "", true),
        ("", "%", true),
        ("", "_", false),
        ("abc", "abc", true),
        ("abc", "a%", true),
        ("abc", "%c", true),
        ("abc", "%b%", true),
        ("abc", "a_c", true),
        ("abc", "a_", false),
        ("abc", "ab", false),
        ("abcabd", "%ab_", true),
        ("abcabd", "a%c%d", true),
        ("abcabd", "a%c%e", false),
        ("aé水🦀", "a__🦀", true),
        ("aaaa", "%a_a%", true),
        ("ABC", "abc", false),
        ("a*c", "a*c", true),
    ] {
        assert_eq!(like(Text::Utf8(text), Text::Utf8(pattern), &Budget::unlimited()), fits, "{text} LIKE {pattern}");
    }
}

#[test]
fn match_supports_shell_patterns() {
    for (text, pattern, fits) in [
        ("BLUE", "BLUE", true),
        ("BLUE", "RED,BLUE", true),
        ("BLUE", "RED,BL*,GREEN", true),
        ("BLUE", "RED,GREEN", false),
        ("BLUE", "RED,", false),
        ("BLUE", "B?U?", true),
        ("BLUE", "[A-C]LUE", true),
        ("BLUE", "[!A-C]LUE", false),
        ("BLUE", "[^D-F]LU[E]", true),
        ("]", "[]]", true),
        ("a-b", "a[-]b", true),
        ("[x", "[x", true),
        ("a*", "a\\*", true),
        ("ab", "a\\*", false),
        ("a,b", "a\\,b", true),
        ("", "", true),
    ] {
        assert_eq!(
            matches(Text::Utf8(text), Text::Utf8(pattern), &Budget::unlimited()),
            fits,
            "{text} MATCH {pattern}"
        );
    }
}

#[test]
fn query_may_have_a_condition_an_order_or_both() {
    let paths = |text: &str| -> Vec<String> {
        let query = QueryExpression::parse(text).expect(text);
        query.order_by.iter().map(|(_, path)| format!("{path:?}")).collect()
    };
    assert_eq!(paths("x > 1").len(), 0);
    assert_eq!(paths("ORDER BY x").len(), 1);
    assert_eq!(paths("x > 1 order by a.b, c[2]").len(), 2);
    assert!(QueryExpression::parse("x > 1 ORDER BY").is_err());
    assert!(QueryExpression::parse("x > 1 ORDER BY a,").is_err());
    assert!(QueryExpression::parse("x > 1 ORDER x").is_err());
    // A field may have the name of a keyword.
    assert!(QueryExpression::parse("order = 1 AND select = 2 ORDER BY order").is_ok());
}

#[test]
fn all_spellings_of_natural_join_are_equivalent() {
    let text = "SELECT flight_name, x, z AS height, p.q depth FROM 'a' NATURAL JOIN b";
    assert!(TopicExpression::parse(text).is_err());
    let text = "select flight_name, x, z AS height, p.q depth FROM Location NATURAL JOIN FlightPlan \
                INNER JOIN (c INNER NATURAL JOIN d) NATURAL INNER JOIN e WHERE height < 1000 AND x < 23;";
    let topic = TopicExpression::parse(text).expect(text);
    let names: Vec<&str> = topic.selected.iter().map(|selected| &*selected.name).collect();
    assert_eq!(names, ["flight_name", "x", "height", "depth"]);
    assert_eq!(topic.topics, ["Location", "FlightPlan", "c", "d", "e"]);
    assert_eq!(topic.condition.predicates.len(), 2);
    let all = TopicExpression::parse("SELECT * FROM a").expect("all");
    assert!(all.selected.is_empty() && all.topics == ["a"] && all.condition == Condition::default());
    for text in ["SELECT FROM a", "SELECT * FROM", "SELECT * FROM a JOIN b", "SELECT * FROM a NATURAL JOIN (b", "x > 1"]
    {
        assert!(TopicExpression::parse(text).is_err(), "{text}");
    }
}

#[test]
fn random_texts_are_parsed_or_refused_without_panic() {
    const PIECES: [&str; 34] = [
        "(",
        ")",
        "((((((((",
        "NOT ",
        "NOT NOT NOT ",
        " AND ",
        " OR ",
        " BETWEEN ",
        " NOT BETWEEN ",
        " LIKE ",
        " MATCH ",
        "x",
        "a.b",
        "a[3].c",
        "=",
        "<>",
        ">=",
        "<",
        "5",
        "-0x1F",
        "1.5e3",
        "'text'",
        "`text'",
        "'",
        "%0",
        "%99",
        "%100",
        "TRUE",
        " ORDER BY ",
        ",",
        "SELECT * FROM ",
        " NATURAL JOIN ",
        "é",
        ";",
    ];
    let mut random = takt_testkit::Random(7);
    let mut read = 0;
    for _ in 0..20_000 {
        let count = random.below(24);
        let text: String = (0..count).map(|_| PIECES[random.below(PIECES.len())]).collect();
        for result in [
            Condition::parse(&text).map(drop),
            QueryExpression::parse(&text).map(drop),
            TopicExpression::parse(&text).map(drop),
        ] {
            match result {
                Ok(()) => read += 1,
                Err(wrong) => assert!(wrong.position <= text.len() && !wrong.to_string().is_empty(), "{text}"),
            }
        }
    }
    assert!(read > 100, "{read}");
    // Unlimited repetition of every nesting or repeating construct.
    for piece in ["(", "NOT ", "NOT(", "x=1 AND (", "a.", "SELECT * FROM a NATURAL JOIN ("] {
        let text = piece.repeat(EXPRESSION_LEN_MAX / piece.len());
        assert!(Condition::parse(&text).is_err() && TopicExpression::parse(&text).is_err(), "{piece}");
    }
}
