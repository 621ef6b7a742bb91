//! What the compiler says to code that holds the library wrong.

#[test]
fn wrong_use_has_a_readable_error() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
