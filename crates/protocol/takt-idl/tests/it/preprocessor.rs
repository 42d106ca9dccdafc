//! Preprocessor tests: directives, macros, and includes.

use std::fs;
use std::path::Path;

use takt_idl::{Idl, Options};
use takt_testkit::directory::Directory;

use crate::support::{read, refusal};

/// Temporary files of a test.
struct Sources(Directory);

impl Sources {
    fn with(name: &str, files: &[(&str, &str)]) -> Self {
        Self(Directory::with(&format!("idl-{name}"), files))
    }

    fn read(&self, file: &str, include: &[&str]) -> Result<Idl, String> {
        let include = include.iter().map(|directory| self.0.file(directory)).collect();
        let options = Options { include, ..Options::default() };
        Idl::read(&self.0.file(file), &options).map_err(|error| self.relative(&error.to_string()))
    }

    fn relative(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.path().display()), "")
    }
}

#[test]
fn includes_are_searched_next_to_the_file_and_in_directories() {
    let guarded = "#ifndef A_IDL\n#define A_IDL /* a guard */\nstruct A { long a; };\n#endif // A_IDL\n";
    let directory = Sources::with(
        "include",
        &[
            ("main.idl", "#include \"sub/b.idl\"\n#include <c.idl>\n#include \"a.idl\"\nstruct T { A a; B b; C c; };"),
            ("a.idl", guarded),
            ("sub/b.idl", "#pragma once\n#include \"../a.idl\"\nstruct B { A a; };"),
            ("lib/c.idl", "#include \"sub/b.idl\"\nstruct C { B b; };"),
        ],
    );
    let found = directory.read("main.idl", &["lib", "."]);
    // `#pragma once` treats the same file with two paths as two files.
    assert!(found.expect_err("b.idl by two paths").contains("'B' is defined twice"));
    fs::write(directory.0.file("lib/c.idl"), "struct C { A a; };").expect("it can be written");
    let idl = directory.read("main.idl", &["lib"]).expect("it is read");
    assert_eq!(idl.topic_type_names(), ["T"]);
    let error = directory.read("main.idl", &[]).expect_err("c.idl is in lib");
    assert!(error.starts_with("main.idl:2:1: include file c.idl not found in ") && error.ends_with("(-I)"), "{error}");
    fs::write(directory.0.file("lib/c.idl"), "struct C {\n  Missing m;\n};").expect("it can be written");
    let error = directory.read("main.idl", &["lib"]).expect_err("Missing is not there");
    assert_eq!(error, "lib/c.idl:2:3: 'Missing' is not defined before this");
    let error = Idl::read(Path::new("/nowhere/a.idl"), &Options::default()).expect_err("no such file").to_string();
    assert!(error.starts_with("/nowhere/a.idl:1:1: cannot read the file: "), "{error}");
}

#[test]
fn recursive_includes_are_refused() {
    let directory = Sources::with("endless", &[("a.idl", "#include \"a.idl\"\n#include \"a.idl\"\n")]);
    let error = directory.read("a.idl", &[]).expect_err("it includes itself");
    assert!(error.contains("more than 32 levels of included files"), "{error}");
}

#[test]
fn conditions_select_the_parsed_parts() {
    let text = "#define YES 1
        #if 1 && 0
        #endif";
    assert!(refusal(text).contains("a condition must be a number or defined(NAME)"));
    let text = "#define YES
#ifdef NO
  this is ' not IDL \"
  #ifdef YES
  nor this
  #else
  #endif
#elif defined(YES)
struct A { long a; };
#else
struct B { long a; };
#endif
#if !defined NO
struct C { long a; };
#endif
#if 0
struct D
#endif
#undef YES
#ifndef YES
struct E { long a; };
#else
#error it is defined
#endif
# 1 \"main.idl\"
";
    assert_eq!(read(text).type_names(), ["A", "C", "E"]);
}

#[test]
fn macros_without_parameters_are_replaced() {
    let text =
        "#define SIZE (2 + \\\n 1)\n#define NAME T\n#define LOOP LOOP\nstruct NAME { long a[SIZE]; string LOOP; };";
    assert_eq!(read(text).type_names(), ["T"]);
    let many: String = (0..40).map(|n| format!("#define M{n} M{} M{}\n", n + 1, n + 1)).collect();
    for (text, what) in [
        ("#define MAX(a, b) a", "text.idl:1:1: #define MAX(...): macros with parameters are not supported"),
        ("#define 3 4", "expected the name of a macro, found '3'"),
        ("#endif", "#endif without #if"),
        ("#else", "#else without #if"),
        ("#ifdef A", "text.idl:1:1: unterminated condition: expected #endif"),
        ("#ifdef A\n#else\n#else\n#endif", "#else after #else"),
        ("#import \"a\"", "#import is not supported"),
        ("#include a.idl", "expected #include \"FILE\" or #include <FILE>"),
        ("#include \"a.idl\"", "cannot include a.idl: this IDL text is not from a file"),
        ("#error no compiler\n", "#error no compiler"),
        (&format!("{many}\nM0"), "levels of macros, or 1048576 uses of them"),
        (&format!("#define M40 x\n{many}\nM0"), "more than"),
    ] {
        assert!(refusal(text).contains(what), "{what}: {}", refusal(text));
    }
}

#[test]
fn comments_after_directives_start_outside_strings_and_must_end() {
    let files =
        [("a.idl", "struct A { long a; };"), ("main.idl", "#include \"a.idl\" // see msgs/*.idl\nstruct T { A a; };")];
    let idl = Sources::with("comments", &files).read("main.idl", &[]).expect("it is read");
    assert_eq!(idl.type_names(), ["A", "T"]);
    for text in [
        "#define S \"/*\" // a \" /* b\nstruct T { long a; };",
        "#define S \"a\\\"/*\" /* and\n more */ \"b\"\nstruct T { long a; };",
        "#define N 1 // goes on \\\n /* here */ +\nstruct T { long a[N]; };",
        "#define Q '\"' /* \" \n */\nstruct T { long a; };",
    ] {
        assert_eq!(read(text).type_names(), ["T"], "{text}");
    }
    let error = refusal("#define A 1 /* no end\nstruct T { long a; };");
    assert_eq!(error, "text.idl:1:13: unterminated comment: expected */");
}

#[test]
fn directives_in_comments_of_skipped_parts_have_no_effect() {
    let text = "#if 0\n/* #endif\n#else\n */ // #endif /*\n\"/*\" '\"' /* '\n#endif */ don't \"\n  /* here */ #else
struct T { long a; };\n#endif\n";
    assert_eq!(read(text).type_names(), ["T"]);
    let error = refusal("#if 0\n/* no end\n#endif\nstruct T { long a; };");
    assert_eq!(error, "text.idl:2:1: unterminated comment: expected */");
}

#[test]
fn conditions_end_in_the_file_in_which_they_begin() {
    for directive in ["#endif", "#else", "#elif 1"] {
        let main = "#if 1\n#include \"inner.idl\"\n#endif\nstruct T { long a; };\n";
        let directory = Sources::with("conditions", &[("main.idl", main), ("inner.idl", directive)]);
        let error = directory.read("main.idl", &[]).expect_err("the condition is that of main.idl");
        let (word, _) = directive.split_once(' ').unwrap_or((directive, ""));
        assert_eq!(error, format!("inner.idl:1:1: {word} without #if"));
    }
}

#[test]
fn warnings_beyond_the_limit_are_counted() {
    let pragmas = "#pragma unknown\n".repeat(2000);
    let text = format!("{pragmas}struct T {{ {} long a; }};", "@note ".repeat(500));
    let idl = Idl::parse("text.idl", &text, &Options::default()).expect("it is read");
    let warnings: Vec<String> = idl.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1001);
    assert_eq!(warnings[999], "text.idl:1000:1: #pragma unknown has no effect");
    assert_eq!(warnings[1000], "text.idl:1001:1: 1500 more warnings from here on");
}

#[test]
fn errors_in_macros_and_at_the_end_have_the_right_file() {
    assert_eq!(refusal("\n  #define A (1 $\n"), "text.idl:2:3: unexpected character '$'");
    let octets = refusal(&" ".repeat(8 * 1024 * 1024 + 1));
    assert_eq!(octets, "text.idl:1:1: more than 8388608 octets of IDL");
    let directory =
        Sources::with("end", &[("main.idl", "struct T {\n#include \"a.idl\"\n"), ("a.idl", "\n\n\n\n  long a;\n")]);
    let error = directory.read("main.idl", &[]).expect_err("the struct does not end");
    assert!(error.starts_with("main.idl:3:1: ") && error.contains("the end of the file"), "{error}");
}
