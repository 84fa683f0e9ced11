//! Exists for the `links` key of Cargo.toml: it makes Cargo refuse two versions of
//! this crate in one library, whose registries and exported symbols would clash.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
