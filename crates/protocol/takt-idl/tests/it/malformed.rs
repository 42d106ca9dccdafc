//! Tests of malformed texts: error positions, limits, and mutations of valid texts.

use takt_idl::{Idl, Options};
use takt_testkit::Random;
use takt_xtypes::type_object::TypeRegistry;

use crate::support::refusal;

const TEXT: &str = include_str!("../../../takt-xtypes/tests/vectors/objects.idl");

#[test]
fn errors_have_line_column_and_expected_input() {
    for (text, expected) in [
        ("struct T {\n  long a\n};", "text.idl:3:1: expected ';' after the member, found '}'"),
        ("struct T {\n  long a;\n}", "text.idl:3:1: expected ';' after the definition, found the end of the file"),
        ("struct {", "text.idl:1:8: expected the name of the struct, found '{'"),
        ("struct T { lang a; };", "text.idl:1:12: 'lang' is not defined before this"),
        ("struct T { long long; };", "text.idl:1:21: expected the name of the member, found ';'"),
        ("struct T { octet string; };", "the keyword 'string'; a name that is a keyword is written '_string'"),
        ("struct Lang { long a; }; struct T { lang a; };", "did you mean 'Lang'? names are case-sensitive"),
        ("struct T { sequence<long a; };", "text.idl:1:26: expected '>' after the type of the elements, found 'a'"),
        ("struct T { string<0> a; };", "expected a positive 32-bit number, not 0"),
        ("struct T { long a[1.5]; };", "expected a positive 32-bit number, not 1.5"),
        ("struct T { long a; long a; };", "text.idl:1:25: two members named 'a'"),
        ("struct T { @id(1) long a; @id(1) long b; };", "'b' has the id 1 of another member"),
        ("struct T { @id(1) @hashid long a; };", "@id and @hashid exclude each other"),
        ("struct T { @id(268435456) long a; };", "the parameter of @id must be a number from 0 to 268435455"),
        ("struct T { @id long a; };", "@id needs a parameter"),
        ("struct T { @key @optional long a; };", "a key member cannot be optional"),
        ("@final @mutable struct T { long a; };", "a type has one extensibility: it is stated twice"),
        ("@extensibility(FIXED) struct T { long a; };", "expected FINAL or APPENDABLE or MUTABLE"),
        ("struct T { long a; }; struct T { long b; };", "'T' is defined twice; first in line 1"),
        ("enum E { A }; struct T : E { long b; };", "text.idl:1:26: 'E' is not a struct"),
        ("module m { struct T { long a; };", "expected '}' at the end of the module, found the end of the file"),
        ("module m { }; struct T { m a; };", "'m' is a module, not a type"),
        ("struct T { long a; }; /* no end", "text.idl:1:23: unterminated comment: expected */"),
        ("struct T { long a; } $", "text.idl:1:22: unexpected character '$'"),
        ("const string S = \"abc;", "text.idl:1:18: unterminated string: expected \""),
        ("const string S = \"a\\x00\";", "text.idl:1:18: a string with a NUL character"),
        ("const string S = \"a\0\";", "text.idl:1:18: a string with a NUL character"),
        ("const char C = 'ab';", "unterminated character literal: expected '"),
        ("const long L = 08;", "'08': invalid digit"),
        ("const long L = 1e;", "'1e' is not a number"),
        ("struct T { long a[2147483647][2147483647]; };", "text.idl:1:8: T: "),
        ("long a;", "expected a definition: module, struct, union, enum, bitmask, typedef or const, found 'long'"),
    ] {
        assert!(refusal(text).contains(expected), "{text}\n{}", refusal(text));
    }
}

#[test]
fn text_that_exceeds_a_limit_is_refused_with_the_limit() {
    let deep = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let name = "n".repeat(257);
    let many = (0..25_000).map(|n| format!("m{n}")).collect::<Vec<String>>().join(", ");
    for (text, what) in [
        (format!("struct T {{ {} a; }};", deep("sequence<", "long", ">", 100_000)), "more than 64 levels"),
        (format!("const long A = {};", deep("(", "1", ")", 100_000)), "more than 64 levels"),
        (format!("const long A = {}1;", "-".repeat(100_000)), "more than 64 levels"),
        (deep("module m { ", "struct T { long a; };", "};", 100_000), "more than 64 levels"),
        (format!("@a({}) struct T {{ long a; }};", deep("(", "1", ")", 100_000)), "more than 64 levels of brackets"),
        (format!("struct {name} {{ long a; }};"), "an identifier of more than 256 octets"),
        ("a".repeat(8 * 1024 * 1024 + 1), "more than 8388608 octets of IDL"),
        ("; ".repeat(1 << 20) + ";", "more than 1048576 tokens"),
        ("#ifdef A\n#ifndef A\n".repeat(40), "more than 64 levels of #if"),
        ("#define A ; ; ;\n".repeat(400_000), "more than 1048576 tokens of macros"),
        (format!("struct T {{ long a{}; }};", "[1]".repeat(65)), "more than 64 dimensions"),
        (
            format!("struct T {{ {} {}; }};", deep("sequence<", "long", ">", 50), many),
            "more than 1048576 types of members",
        ),
    ] {
        assert!(refusal(&text).contains(what), "{what}: {}", refusal(&text));
    }
    let chain: String = (1..300).map(|n| format!("struct S{n} {{ S{} a; }};\n", n - 1)).collect();
    assert!(refusal(&format!("struct S0 {{ long a; }};\n{chain}")).contains("more than 128 levels of types"));
    let members: String = (0..10_000).map(|n| format!("long m{n};")).collect();
    let chain: String = (1..30).map(|n| format!("struct S{n} : S{} {{ }};\n", n - 1)).collect();
    let refusal = refusal(&format!("struct S0 {{ {members} }};\n{chain}"));
    assert!(refusal.contains("more than 262144 members"), "{refusal}");
}

/// An algorithm that visits all previous types for each type would take minutes here.
#[test]
fn parse_time_of_many_definitions_is_linear() {
    let options = Options::default();
    let bases: String = (1..40_000).map(|n| format!("struct S{n} : S{} {{ }};\n", n - 1)).collect();
    let literals: Vec<String> = (0..20_000).map(|n| format!("L{n}")).collect();
    let cases: String = literals.iter().map(|literal| format!("case {literal}: long m{literal};\n")).collect();
    for text in [
        format!("struct S0 {{ }};\n{bases}"),
        format!("enum E {{ {} }}; union U switch (E) {{ {cases} }};", literals.join(", ")),
        format!("#define A 1 /* {} */ + 1\nconst long B = A; struct S {{ long a[B]; }};", "x\n".repeat(400_000)),
    ] {
        let read = Idl::parse("text.idl", &text, &options).unwrap_or_else(|error| panic!("{error}"));
        assert!(!read.type_names().is_empty());
    }
}

#[test]
fn comment_of_a_directive_may_continue_on_the_next_line() {
    let text = "#define N 2 /* of\n two lines */ + 1 /* and\n more */\nstruct T { long a[N]; };";
    assert!(crate::support::printed(text, "T").contains("long a[3];"));
}

/// Parses a text and computes the type information of all its types.
fn try_all(text: &str) {
    if let Ok(idl) = Idl::parse("text.idl", text, &Options::default()) {
        for name in idl.type_names() {
            // Both results are acceptable; the call must terminate without panic.
            let _ = idl.type_information(name, &mut TypeRegistry::new());
        }
    }
}

#[test]
fn truncated_texts_never_panic() {
    for end in (0..TEXT.len()).step_by(3).filter(|end| TEXT.is_char_boundary(*end)) {
        try_all(&TEXT[..end]);
    }
}

#[test]
fn mutated_texts_never_panic() {
    let mut random = Random(1);
    let pieces: Vec<&str> = TEXT.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
    let spice =
        ["<", ">", "::", "@", "(", ")", "0", "'", "\"", "#if 0\n", "#define X Y\n", "\\", "-", "é", "//@key\n", "/*"];
    for _ in 0..500 {
        let mut changed: Vec<&str> = pieces.clone();
        for _ in 0..1 + random.below(4) {
            let (at, from) = (random.below(changed.len()), random.below(changed.len()));
            match random.below(4) {
                0 => drop(changed.remove(at)),
                1 => changed.insert(at, changed[from]),
                2 => changed.swap(at, from),
                _ => changed.insert(at, spice[random.below(spice.len())]),
            }
        }
        try_all(&changed.concat());
    }
}
