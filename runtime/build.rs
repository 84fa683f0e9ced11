//! Refuses combinations of features that cannot be built.
//!
//! Also exists for the `links` key of Cargo.toml: it makes Cargo refuse two versions of
//! this crate in one library, whose registries and exported symbols would clash.

use std::env::var_os;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let cuda = [
        ("cuda", "CARGO_FEATURE_CUDA"),
        ("cuda-13000", "CARGO_FEATURE_CUDA_13000"),
    ];
    let on: Vec<_> = cuda
        .iter()
        .filter(|(_, variable)| var_os(variable).is_some())
        .map(|(feature, _)| *feature)
        .collect();
    match on[..] {
        [first, second] => println!(
            "cargo::error=the features `{first}` and `{second}` of jax-callable exclude each \
             other: each chooses the CUDA version that cudarc is built for. Turn one off in all \
             crates of this build (`cargo tree -e features -i jax-callable` shows who turns them on)"
        ),
        [] if var_os("CARGO_FEATURE__CUDA").is_some() => println!(
            "cargo::error=the feature `_cuda` of jax-callable is internal: turn on `cuda` or \
             `cuda-13000` instead"
        ),
        _ => {}
    }
}
