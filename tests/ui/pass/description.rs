//! What the runtime is told.
use jax_callable::__private::{Definition, Dim};
use jax_callable::prelude::*;

mod inner {
    use super::*;

    /// First line.
    ///
    /// Second paragraph.
    #[jax_callable(
        name = "other",
        in_out = y,
    )]
    #[inline]
    pub(crate) fn described(
        cx: &cpu::Context,
        #[dims(n, m)] x: cpu::Array<[f32; 3], 2>,
        k: i32,
        #[dims(m + k)] y: cpu::ArrayMut<f64, 1>,
    ) {
        let _ = (cx, x, k, y);
    }
}

fn main() {
    let callable = <inner::described::Def as Definition>::callable();
    assert_eq!(callable.name, "other");
    assert!(callable.module.ends_with("::inner"), "{}", callable.module);
    assert!(callable.file.ends_with("description.rs"), "{}", callable.file);
    // Of the function, not of its attribute.
    assert_eq!(callable.line, 16);
    assert_eq!(callable.doc, "First line.\n\nSecond paragraph.");
    let names: Vec<_> = callable.params.iter().map(|param| param.name).collect();
    assert_eq!(names, ["cx", "x", "k", "y"]);
    assert_eq!(callable.dim_names, ["n", "m"]);
    assert!(callable.params[3].in_out && !callable.params[1].in_out);
    let dims = callable.params[1].dims.expect("dims");
    assert!(matches!(dims, [Dim::Name(0), Dim::Name(1)]));
    let dims = callable.params[3].dims.expect("dims");
    assert!(matches!(dims, [Dim::Op(_, Dim::Name(1), Dim::Scalar(2))]));
    assert_eq!(callable.params[1].ty.packed, [3]);
    assert_eq!(callable.vmap_method, Some("broadcast_all"));
}
