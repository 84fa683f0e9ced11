#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jax_callable::fuzzing::frames(bytes));
