//! What the compiler says to code that holds the library wrong.

#[test]
fn wrong_use_gives_a_sentence() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
