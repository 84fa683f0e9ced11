//! Compiles the files of `fail`, as `ui-tests` does, with no feature of the runtime.

#[test]
fn ui() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}
