//! What attributes of an older and of a newer version ask the runtime.

mod older {
    jax_callable::macros_version! { "0.0.1" }
}

mod newer {
    jax_callable::macros_version! { "99.0.0" }
}

fn main() {}
