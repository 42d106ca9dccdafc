//! What the derive refuses, and how it says so.

#[test]
fn messages() {
    trybuild::TestCases::new().compile_fail("tests/compile_errors/*.rs");
}
