//! Names the cdylib as the driver's library is named: `dlopen("libcuda.so")` then finds it where it
//! is loaded already.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so");
}
