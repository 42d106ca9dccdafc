//! Compile errors of the derive and their messages.

#[test]
fn derive_errors_have_the_expected_messages() {
    trybuild::TestCases::new().compile_fail("tests/compile_errors/*.rs");
}
