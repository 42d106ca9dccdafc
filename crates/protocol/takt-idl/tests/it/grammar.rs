//! Grammar tests: the types that texts define.

use takt_idl::{Idl, Options};
use takt_xtypes::Extensibility;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::TypeRegistry;

use crate::support::{information, printed, read, refusal};

/// Checks that the type `T` is equal in both texts.
fn same(left: &str, right: &str) {
    assert_eq!(information(left, "T"), information(right, "T"), "{left}\n{right}");
}

fn differ(left: &str, right: &str) {
    assert_ne!(information(left, "T").complete.type_id, information(right, "T").complete.type_id, "{left}\n{right}");
}

#[test]
fn both_names_of_basic_types_are_equivalent() {
    same(
        "struct T { short a; unsigned short b; long c; unsigned long d; long long e; unsigned long long f; };",
        "struct T { int16 a; uint16 b; int32 c; uint32 d; int64 e; uint64 f; };",
    );
    differ("struct T { octet a; };", "struct T { uint8 a; };");
    differ("struct T { char a; };", "struct T { int8 a; };");
}

#[test]
fn type_is_appendable_unless_annotations_or_options_differ() {
    same("struct T { long a; };", "@appendable struct T { long a; };");
    same("@extensibility(MUTABLE) struct T { long a; };", "@mutable struct T { long a; };");
    differ("@final struct T { long a; };", "@mutable struct T { long a; };");
    let options = Options { default_extensibility: Extensibility::Final, ..Options::default() };
    let text = "enum E { A }; struct T { E e; };";
    let idl = Idl::parse("text.idl", text, &options).expect("it is read");
    let found = idl.type_information("T", &mut TypeRegistry::new()).expect("a type");
    assert_eq!(found, information("@final enum E { A }; @final struct T { E e; };", "T"));
}

#[test]
fn member_ids_are_explicit_hashed_or_sequential() {
    same(
        "@mutable struct T { @id(5) long a; long b; @id(2) long c, d[2]; };".replace("c, d[2]", "c").as_str(),
        "@mutable struct T { @id(0x5) long a; @id(6) long b; @id(1 + 1) long c; };",
    );
    same("@mutable struct T { @hashid(\"a\") long a; };", "@mutable struct T { @hashid(\"a\") int32 a; };");
    let text = printed("@autoid(HASH) struct T { long color; @id(3) long b; };", "T");
    assert!(text.contains("@autoid(HASH) struct T {\n  long color;\n  @id(3) long b;"), "{text}");
    same("@autoid(HASH) module M { }; struct T { long a; };", "struct T { long a; };");
    let inherited = printed("struct B { @id(7) long a; }; struct T : B { long b; };", "T");
    assert!(inherited.contains("  long b;"), "the id is that of the base and one: {inherited}");
    // The ids of a derived struct continue after those of the nearest base with members.
    let inherited = printed("struct A { @id(4) long a; }; struct B : A {}; struct T : B { @id(5) long b; };", "T");
    assert!(inherited.contains("struct T : B {\n  "), "{inherited}");
}

#[test]
fn several_declarators_share_a_type() {
    same("struct T { long a, b[2], c[2][3]; };", "struct T { long a; long b[2]; long c[2][3]; };");
    let text = printed("typedef long L, M[3]; struct T { L l; M m; };", "T");
    assert!(text.contains("typedef long L;\n") && text.contains("typedef long M[3];\n"), "{text}");
}

#[test]
fn constant_expressions_are_evaluated() {
    same(
        "module c { const long N = (1 << 4 | 3) - 2 * 8 / 4 % 3; const unsigned long M = 0x10 >> 2; const long O = 017; };
         struct T { string<c::N> s; sequence<long, c::M> q; long a[c::O][-(-2)][~(-4)]; };",
        "struct T { string<18> s; sequence<long, 4> q; long a[15][2][3]; };",
    );
    // Within the brackets of a type, `>>` closes two collections.
    same(
        "struct T { sequence<sequence<long, (8 >> 1)>> a; sequence<string<3>>b; };",
        "struct T { sequence<sequence<long, 4> > a; sequence<string<3> > b; };",
    );
    for (text, what) in [
        ("const octet A = 256;", "text.idl:1:17: 256 is not between 0 and 255"),
        ("const long A = 1 / 0;", "text.idl:1:18: a division by zero"),
        ("const long A = 1 << 64;", "the shift distance must be 0 to 63"),
        ("const long A = 1.5;", "1.5 is not a value of the type"),
        ("const long A = TRUE;", "TRUE is not a value of the type"),
        ("const unsigned long long A = 18446744073709551615 + 1;", "out of range"),
        ("const short A = B;", "text.idl:1:17: 'B' is not defined before this"),
        ("const string A = 'a';", "a character is not a value of the type"),
    ] {
        assert!(refusal(&format!("{text} struct T {{ long a; }};")).contains(what), "{text}");
    }
    let text = "const double D = 1 + .5e1; const float F = 2; const boolean B = TRUE; const char C = '\\n';
        const wchar W = L'\\u0041'; const string S = \"a\" \"b\\\"\"; const wstring V = L\"x\"; enum E { A, B2 };
        const E G = A; const E H = E::B2; struct T { long a; };";
    assert_eq!(read(text).type_names(), ["T"]);
}

#[test]
fn names_are_looked_up_from_the_inner_module_outwards() {
    let text = "struct A { long outer; };
        module m { struct A { short inner; }; module n { struct T { A a; ::A b; m::A c; }; }; };
        module m { struct U { n::T t; }; };";
    let printed = printed(text, "m::U");
    assert!(
        printed.contains("m::A a;") && printed.contains("\n      ::A b;") && printed.contains("m::A c;"),
        "{printed}"
    );
    assert_eq!(read(text).topic_type_names(), ["m::U"]);
}

#[test]
fn union_labels_may_be_numbers_characters_booleans_or_literals() {
    same(
        "enum E { A, @value(7) B, C }; union T switch (E) { case A: case E::C: long a; default: short b; };",
        "enum E { A, @value(7) B, @value(8) C }; union T switch (E) { case ::A: case C: @id(1) long a; default: @id(2) short b; };",
    );
    same(
        "module m { enum E { A, B }; }; union T switch (m::E) { case m::B: long a; };",
        "module m { enum E { A, B }; }; union T switch (m::E) { case B: long a; };",
    );
    for text in [
        "union T switch (char) { case 'a': long a; case '\\x27': long b; };",
        "union T switch (wchar) { case L'\\u20ac': long a; };",
        "union T switch (boolean) { case TRUE: long a; case FALSE: string b; };",
        "union T switch (octet) { case 255: long a; };",
        "union T switch (long long) { case -1: long a; default: long b; };",
        "typedef uint16 D; union T switch (@key D) { case 65535: long a; };",
    ] {
        assert!(printed(text, "T").contains("union T switch"), "{text}");
    }
    for (text, what) in [
        ("union T switch (float) { case 1: long a; };", "a discriminator must be"),
        ("union T switch (octet) { case 256: long a; };", "256 is not between 0 and 255"),
        ("union T switch (long) { case 1: long a; case 1: long b; };", "two cases with the label 1"),
        ("union T switch (long) { default: long a; default: long b; };", "two default cases"),
        ("union T switch (unsigned long) { case 4294967295: long a; };", "exceeds the 32 bits"),
        ("enum E { A }; union T switch (E) { case D: long a; };", "'D' is not a literal of E"),
        ("union T switch (long) { long a; };", "expected case or default, found 'long'"),
    ] {
        assert!(refusal(text).contains(what), "{text}: {}", refusal(text));
    }
}

#[test]
fn enumerations_and_bitmasks_have_values_positions_and_bounds() {
    let text = printed(
        "@bit_bound(8) enum E { @value(-3) A, @default_literal B, };
         @bit_bound(12) bitmask M { X, @position(7) Y, Z, };
         struct T { E e; M m; };",
        "T",
    );
    for line in ["@bit_bound(8) enum E {", "@value(-3) A,", "@default_literal B", "@bit_bound(12) bitmask M {"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("X,\n  @position(7) Y,\n  Z\n"), "{text}");
    for (text, what) in [
        ("@bit_bound(8) enum E { @value(128) A };", "@value must be a number from -128 to 127, not 128"),
        ("@bit_bound(8) enum E { @value(127) A, B };", "'B' has the value 128, which does not fit 8 bits"),
        ("enum E { A, @value(0) B };", "'B' has the value 0 of another literal"),
        ("enum E { A, A };", "'A' is defined twice"),
        ("enum E { };", "expected a literal of the enumeration, found '}'"),
        ("@bit_bound(2) bitmask M { A, B, C };", "'C' has the position 2, but the bit bound is 2"),
        ("@bit_bound(65) bitmask M { A };", "a number from 1 to 64, not 65"),
    ] {
        assert!(refusal(&format!("{text} struct T {{ long a; }};")).contains(what), "{text}");
    }
}

#[test]
fn annotations_of_members_and_elements_are_kept() {
    let text = "@final @nested struct P { long x; };
        @mutable struct T {
          @key @id(4) string<32> key; @optional P p; @external P far; @must_understand long m;
          @try_construct(TRIM) string<3> t; @key(FALSE) @optional(TRUE) long n; @Key long older;
          map<string<8>, P, 4> by_name; wstring<5> w;
        };";
    let printed = printed(text, "T");
    for line in [
        "@final @nested struct P {",
        "@id(4) @key string<32> key;",
        "@optional P p;",
        "@external P far;",
        "@must_understand long m;",
        "@try_construct(TRIM) string<3> t;",
        "@optional long n;",
        "@key long older;",
        "map<string<8>, P, 4> by_name;",
        "wstring<5> w;",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    differ(
        "struct P { long x; }; struct T { sequence<@external P> p; };",
        "struct P { long x; }; struct T { sequence<P> p; };",
    );
}

#[test]
fn default_nested_of_a_module_applies_to_its_types() {
    let text = "@default_nested module m { struct A { long a; }; @topic struct B { long b; }; @nested(FALSE) struct C { long c; }; };";
    assert_eq!(read(text).topic_type_names(), ["m::B", "m::C"]);
    assert_eq!(read(text).type_names(), ["m::A", "m::B", "m::C"]);
}

#[test]
fn types_may_be_declared_before_they_are_defined() {
    let text = "module m { struct Tree; union Odd; struct Tree; };
        module m { struct Tree { sequence<Tree> children; @optional @external Odd odd; };
          union Odd switch (long) { case 1: @external Tree tree; default: long leaf; }; };";
    let printed = printed(text, "m::Tree");
    assert_eq!(information(&printed, "m::Tree"), information(text, "m::Tree"), "{printed}");
    assert!(refusal("struct T; struct U { long a; };").contains("text.idl:1:8: the type is declared but not defined"));
    assert!(refusal("struct T { T t; };").contains("T: "), "a type contains itself infinitely");
}

#[test]
fn names_that_are_keywords_are_escaped() {
    let text = printed("module _module { struct _struct { long _long; string _string; }; };", "module::struct");
    assert!(text.contains("struct _struct {\n    long _long;\n    string _string;"), "{text}");
}

#[test]
fn parts_without_effect_yield_warnings() {
    let text = "@annotation note { string value default \"\"; };
        #pragma keylist T a
        struct T { @note(\"x\") @default(3) long a; //@key
          @unit(\"m\") @min(0) long b; };";
    let idl = Idl::parse("text.idl", text, &Options::default()).expect("it is read");
    let warnings: Vec<String> = idl.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "text.idl:2:9: #pragma keylist T a has no effect",
            "text.idl:3:51: the comment '//@key' is not an annotation; write @key",
            "text.idl:3:20: @note of a member has no effect",
            "text.idl:3:31: @default of a member has no effect",
        ]
    );
}

#[test]
fn unsupported_types_are_refused_where_they_are_used() {
    let text = "bitset B { bitfield<3> a; }; exception X { long a; }; native N; struct T { long a; };";
    assert_eq!(read(text).type_names(), ["T"]);
    for (text, what) in [
        ("bitset B { bitfield<3> a; }; struct T { B b; };", "1:41: 'B' is a bitset, which is not supported"),
        ("interface I { void f(); };", "'interface' is not supported: only data types are supported"),
        ("struct T { long double d; };", "the type 'long double' is not supported"),
        ("struct T { any a; };", "the type 'any' is not supported"),
        ("struct T { fixed<3, 1> a; };", "the type 'fixed' is not supported"),
        ("struct T { struct U { long a; } u; };", "a struct must be defined on its own"),
    ] {
        assert!(refusal(text).contains(what), "{text}: {}", refusal(text));
    }
}

#[test]
fn unknown_type_name_is_reported_with_the_existing_ones() {
    let idl = read("module m { struct A { long a; }; typedef A B; };");
    let error = idl.type_information("A", &mut TypeRegistry::new()).expect_err("its name is m::A").to_string();
    assert_eq!(error, "text.idl:1:1: no type A; defined types: m::A");
    let mut registry = TypeRegistry::new();
    let information = idl.type_information("::m::B", &mut registry).expect("an alias of a struct is a type of topics");
    let ty = DynamicType::new(&information.complete.type_id, &registry).expect("a type");
    assert_eq!(ty.name(), "m::B");
}

#[test]
fn topic_types_are_not_parts_of_other_structs_and_unions() {
    for (text, names) in [
        ("struct State { long a; }; typedef sequence<State> StateSeq;", &["State"][..]),
        ("struct Node { sequence<Node> c; };", &["Node"]),
        ("struct N; typedef sequence<N> Ns; typedef Ns Same; struct N { Same c; };", &["N"]),
        ("struct A { long a; }; typedef A B; typedef sequence<B> C; struct D { C c; };", &["D"]),
        ("struct A { long a; }; struct B : A { }; union C switch (long) { case 1: B b; };", &["C"]),
        ("struct A { sequence<A> a; }; typedef sequence<A> As; struct B { As a; }; struct C { As a; };", &["B", "C"]),
    ] {
        assert_eq!(read(text).topic_type_names(), names, "{text}");
    }
}

#[test]
fn complement_of_an_unsigned_constant_inverts_its_bits() {
    same(
        "const unsigned long M = ~4294967290; const unsigned long long L = ~18446744073709551613;
         typedef unsigned long U; const U N = ~0 >> 30; const unsigned long long O = (~0) >> 60;
         const unsigned long P = ~(-4); const long Q = -(~0); const unsigned short R = ~0 & 6;
         struct T { long a[M][L][N][O][P][Q][R]; };",
        "struct T { long a[5][2][3][15][3][1][6]; };",
    );
    for (text, what) in [
        ("const unsigned long A = -1;", "-1 is not between 0 and 4294967295"),
        ("const unsigned long A = ~4294967296;", "'~' of 4294967296 does not fit 32 bits"),
        ("const unsigned short A = ~0;", "4294967295 is not between 0 and 65535"),
    ] {
        assert!(refusal(&format!("{text} struct T {{ long a; }};")).contains(what), "{text}");
    }
}

#[test]
fn annotations_of_other_scopes_are_ignored_with_a_warning() {
    let text = "struct T { @vendor::key long a; @::vendor::optional long b; @::key long c; @vendor::unit(1) long d; };";
    let idl = Idl::parse("text.idl", text, &Options::default()).expect("it is read");
    let found = idl.type_information("T", &mut TypeRegistry::new()).expect("a type");
    assert_eq!(found, information("struct T { long a; long b; @key long c; long d; };", "T"));
    let warnings: Vec<String> = idl.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "text.idl:1:12: @vendor::key of a member has no effect",
            "text.idl:1:33: @vendor::optional of a member has no effect",
            "text.idl:1:76: @vendor::unit of a member has no effect",
        ]
    );
}

#[test]
fn labels_may_be_constants_of_the_enumeration() {
    same(
        "enum E { A, B }; const E D = B; union T switch (E) { case A: long a; case D: long b; };",
        "enum E { A, B }; union T switch (E) { case A: long a; case B: long b; };",
    );
    let other = "enum E { A, B }; enum F { X }; const F D = X; union T switch (E) { case D: long a; };";
    assert!(refusal(other).contains("1:73: a literal of an enumeration is not a value"), "{}", refusal(other));
}

#[test]
fn forward_declaration_requires_a_definition_of_its_kind() {
    for (text, what) in [
        (
            "struct T; union T switch (long) { case 1: long a; };",
            "text.idl:1:17: 'T' is declared as a struct in line 1",
        ),
        ("union T; struct T { long a; };", "text.idl:1:17: 'T' is declared as a union in line 1"),
        ("struct T; union T;", "text.idl:1:17: 'T' is declared as a struct in line 1"),
        ("struct T;\ntypedef long T;", "text.idl:2:14: 'T' is declared as a struct in line 1"),
        ("union T; enum T { A };", "text.idl:1:15: 'T' is declared as a union in line 1"),
        ("struct T; bitmask T { A };", "text.idl:1:19: 'T' is declared as a struct in line 1"),
    ] {
        assert!(refusal(text).contains(what), "{text}: {}", refusal(text));
    }
}

#[test]
fn extensibility_of_a_bitmask_yields_a_warning_unless_final() {
    let text = "@appendable bitmask A { X }; @final bitmask B { X }; @extensibility(MUTABLE) bitmask C { X };
        @extensibility(FINAL) bitmask D { X }; bitmask E { X }; struct T { A a; };";
    let idl = Idl::parse("text.idl", text, &Options::default()).expect("it is read");
    let warnings: Vec<String> = idl.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "text.idl:1:1: @appendable of a bitmask has no effect: a bitmask is final",
            "text.idl:1:54: @extensibility of a bitmask has no effect: a bitmask is final",
        ]
    );
}

#[test]
fn second_default_literal_is_refused() {
    let error = refusal("enum E { @default_literal A, @default_literal B }; struct T { E e; };");
    assert_eq!(error, "text.idl:1:30: two default literals of an enumeration");
}

#[test]
fn documentation_comments_yield_no_warning() {
    let text = "/// @brief a type\n//! @brief a type\n/** @brief a type */\nstruct T { long a; //!< @unit m\n};";
    assert_eq!(read(text).type_names(), ["T"]);
}

#[test]
fn printed_names_are_unambiguous_if_modules_repeat_a_name() {
    for text in [
        "module a { module a { struct T { long x; }; }; struct T { octet y; }; };
         module b { struct U { ::a::T t; ::a::a::T u; }; };",
        "struct T { long x; }; module b { struct T { octet y; }; struct U { ::T t; T u; }; };",
        "enum E { A, B }; module b { enum F { B, A }; union U switch (::E) { case ::A: long x; case ::B: octet y; }; };",
    ] {
        assert_eq!(information(&printed(text, "b::U"), "b::U"), information(text, "b::U"), "{text}");
    }
}

#[test]
fn type_of_the_global_scope_may_follow_an_annotation() {
    let text = "module m { struct A { long x; }; };
        struct T { @external ::m::A a; @optional(TRUE) ::m::A b; @vendor::flag ::m::A c; };";
    let read = takt_idl::Idl::parse("text.idl", text, &takt_idl::Options::default()).expect("it is read");
    assert_eq!(read.warnings().len(), 1, "of the annotation of a vendor");
    assert!(printed(&text.replace("@vendor::flag ", ""), "T").contains("@external m::A a;"));
}

#[test]
fn limits_and_units_are_part_of_the_complete_type_only() {
    let plain = information("struct T { long a; double b; };", "T");
    let text =
        "struct T { @unit(\"m \\\"s\\\"\\n\\x85b\\\\\") @min(-3) long a; @range(min = 0, max = 2.5) double b; };";
    let found = information(text, "T");
    assert_eq!(found.minimal.type_id, plain.minimal.type_id);
    assert_ne!(found.complete.type_id, plain.complete.type_id);
    assert_eq!(information(&printed(text, "T"), "T"), found, "{}", printed(text, "T"));
    for (member, what) in [
        ("@min(3) string a", "apply to numeric members only"),
        ("@min(256) octet a", "the limit is not a value of the member's type"),
        ("@min(3) @max(2) long a", "the minimum exceeds the maximum"),
        ("@min(TRUE) long a", "expected a 64-bit number, not TRUE"),
        ("@range(low = 3) long a", "expected min = NUMBER or max = NUMBER"),
        ("@unit(3) long a", "the parameter of @unit must be a string"),
    ] {
        assert!(refusal(&format!("struct T {{ {member}; }};")).contains(what), "{member}");
    }
}

#[test]
fn struct_may_be_a_sequence_element_of_its_base() {
    let text = "struct Derived; typedef sequence<Derived> List;\n\
                @final struct Base { long a; List list; };\n\
                @final struct Derived : Base { @key short b; };\n\
                @final struct User { Base base; Derived derived; };";
    for name in ["Base", "Derived", "User"] {
        let first = information(text, name);
        let printed = printed(text, name);
        assert_eq!(information(&printed, name).minimal.type_id, first.minimal.type_id, "{printed}");
        assert!(printed.contains("struct Derived : Base {"), "{printed}");
    }
}

#[test]
fn largest_bound_is_read_as_unbounded() {
    let text = |bound: &str| format!("struct T {{ string{bound} a; wstring{bound} b; }};");
    let (greatest, none) = (text("<4294967295>"), text(""));
    assert_eq!(information(&greatest, "T"), information(&none, "T"));
    let text = |bound: &str| format!("struct T {{ sequence<long{bound}> a; map<long, short{bound}> b; }};");
    assert_eq!(information(&text(", 4294967295"), "T"), information(&text(""), "T"));
}
