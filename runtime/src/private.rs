//! What the attribute's expansion refers to. Not public API.

pub use crate::check;
pub use crate::ffi::frame::Call;
pub use crate::ffi::slot::Slot;
pub use crate::packed::{PackedType, pack};
pub use crate::param::{Body, BuildState, Definition, FfiArg, IntoResult};
pub use crate::registry::Declaration;
#[cfg(feature = "_cuda")]
pub use crate::registry::ModuleRegistration;
pub use crate::signature::{
    BufferType, Callable, Dim, DimOp, GraphCacheMax, GraphMode, Kind, Length, ModuleUse, Param,
    ParamType, Platform, StaticType,
};
pub use crate::state::{Built, Holder, NoState};
pub use crate::vjp::require_vjp;
pub use inventory;

/// Refuses what the attribute of another version has made. Cargo.toml asks for the same one,
/// which a `[patch]` or a path may undo.
#[doc(hidden)]
#[macro_export]
macro_rules! macros_version {
    ("0.1.0") => {};
    ($version:literal) => {
        ::core::compile_error!(::core::concat!(
            "version ",
            $version,
            " of jax-callable-macros does not belong to version 0.1.0 of jax-callable\n\
             help: depend on jax-callable alone, which brings its macros, and remove what \
             replaces one of them (`cargo tree -i jax-callable-macros` shows who asks for it)"
        ));
    };
}

/// What the attribute has made of a function on a GPU.
#[doc(hidden)]
#[macro_export]
#[cfg(feature = "_cuda")]
macro_rules! needs_cuda {
    ({ $($definition:tt)* } $def:path) => { $($definition)* };
}

/// Asks for the feature that the function needs, and stands in for its definition.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "_cuda"))]
macro_rules! needs_cuda {
    ({ $($definition:tt)* } $def:path) => {
        ::core::compile_error!(
            "the parameter types of `cuda` need the cargo feature `cuda`\n\
             help: turn it on in Cargo.toml: `jax-callable = { version = \"...\", features = \
             [\"cuda\"] }`, or `cuda-13000` instead; the parameter types on the CPU are those of \
             `cpu`"
        );
        $crate::mistaken! { $def, [] }
    };
}

/// Stands in for the definition of a function with mistakes, with the types that it asks for.
#[doc(hidden)]
#[macro_export]
macro_rules! mistaken {
    ($def:path, [$($ty:expr),*]) => {
        #[automatically_derived]
        unsafe impl $crate::__private::Definition for $def {
            const CALLABLE: &'static $crate::__private::Callable =
                &$crate::__private::check::MISTAKEN;
            const TEXT: &'static ::core::primitive::str = "";
            const TYPES: &'static [$crate::__private::ParamType] = &[$($ty),*];
            const PACKED: &'static [$crate::__private::PackedType] = &[];
            const SLOT: *const $crate::__private::Slot = ::core::ptr::null();
            const CALL: $crate::__private::Body = |_| ::core::panic!();
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_version_makes_the_expansions() {
        let version = env!("CARGO_PKG_VERSION");
        let text = include_str!("private.rs");
        assert!(text.contains(&format!("(\"{version}\") => {{}};")));
        assert!(text.contains(&format!("version {version} of jax-callable\\n")));
    }
}
