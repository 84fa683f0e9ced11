//! What the spelling of a parameter's type says. Types under other names (aliases) say
//! nothing here: the runtime's traits know them, and the rules that hang on them are
//! asked in const context.

use crate::diag::{self, At, Errors};
use syn::visit_mut::{self, VisitMut};
use syn::{
    BoundLifetimes, Expr, ExprLit, GenericArgument, GenericParam, Ident, Lifetime, Lit, Path,
    PathArguments, PathSegment, Type, TypeArray,
};

/// What a type makes of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Context,
    Array,
    ArrayMut,
    Scratch,
    State,
    PerDevice,
    /// A single integer, which dimensions can use.
    Integer,
    /// Another static attribute.
    Static,
    /// For the traits to decide.
    Unknown,
}

impl Role {
    /// Whether parameters are references to it.
    fn is_referred_to(self) -> bool {
        matches!(self, Role::Context | Role::State | Role::PerDevice)
    }

    /// Whether `state = ...` builds it.
    pub(crate) fn is_state(self) -> bool {
        matches!(self, Role::State | Role::PerDevice)
    }
}

/// What is known of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guess {
    pub(crate) role: Role,
    pub(crate) platform: Option<Platform>,
    pub(crate) rank: Option<usize>,
}

/// Where a type belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    Cpu,
    Cuda,
}

impl Platform {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Platform::Cpu => "the CPU",
            Platform::Cuda => "CUDA",
        }
    }
}

/// What the spelling of a type says.
pub(crate) fn guess(ty: &Type) -> Guess {
    let role = |role| Guess {
        role,
        platform: None,
        rank: None,
    };
    match ty {
        Type::Group(group) => guess(&group.elem),
        Type::Paren(paren) => guess(&paren.elem),
        Type::Array(_) => role(Role::Static),
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(_) => role(Role::Static),
            Type::Path(path) => match named(path) {
                Some(found) if found.role.is_referred_to() => found,
                _ if path.path.is_ident("str") => role(Role::Static),
                _ => role(Role::Unknown),
            },
            _ => role(Role::Unknown),
        },
        Type::Path(path) => match named(path) {
            Some(found) if !found.role.is_referred_to() => found,
            _ => role(Role::Unknown),
        },
        _ => role(Role::Unknown),
    }
}

fn named(path: &syn::TypePath) -> Option<Guess> {
    let mut segments = path.path.segments.iter().rev();
    let last = segments.next()?;
    let platform = segments
        .next()
        .and_then(|module| match &*module.ident.to_string() {
            "cpu" => Some(Platform::Cpu),
            "cuda" => Some(Platform::Cuda),
            _ => None,
        });
    let generic = !last.arguments.is_none();
    let role = match &*last.ident.to_string() {
        "Context" => Role::Context,
        "Array" if generic => Role::Array,
        "ArrayMut" if generic => Role::ArrayMut,
        "Scratch" if generic => Role::Scratch,
        "State" if generic => Role::State,
        "PerDevice" if generic => Role::PerDevice,
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" => Role::Integer,
        "bool" | "f16" | "bf16" | "f32" | "f64" => Role::Static,
        "Complex" | "Complex32" | "Complex64" => Role::Static,
        _ => return None,
    };
    Some(Guess {
        role,
        platform,
        rank: rank(last),
    })
}

/// `N` of `Array<T, N>`, if it is a literal.
fn rank(array: &PathSegment) -> Option<usize> {
    let PathArguments::AngleBracketed(arguments) = &array.arguments else {
        return None;
    };
    let mut arguments = arguments
        .args
        .iter()
        .filter(|argument| !matches!(argument, GenericArgument::Lifetime(_)));
    let (Some(GenericArgument::Type(_)), Some(GenericArgument::Const(rank)), None) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return None;
    };
    match rank {
        Expr::Lit(ExprLit {
            lit: Lit::Int(int), ..
        }) => int.base10_parse().ok(),
        _ => None,
    }
}

/// The type as the expansion quotes it, where the function's lifetimes do not exist.
pub(crate) fn quotable(ty: &Type, errors: &mut Errors) -> Type {
    struct Quote<'a> {
        errors: &'a mut Errors,
        /// What `for<...>` in the type declares.
        bound: Vec<Ident>,
    }

    impl VisitMut for Quote<'_> {
        fn visit_bound_lifetimes_mut(&mut self, bound: &mut BoundLifetimes) {
            let lifetimes = bound.lifetimes.iter().filter_map(|param| match param {
                GenericParam::Lifetime(param) => Some(param.lifetime.ident.clone()),
                _ => None,
            });
            self.bound.extend(lifetimes);
        }

        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            if lifetime.ident != "static" && !self.bound.contains(&lifetime.ident) {
                *lifetime = Lifetime::new("'_", lifetime.span());
            }
        }

        fn visit_type_mut(&mut self, ty: &mut Type) {
            match ty {
                Type::ImplTrait(_) => self.errors.push(At::of(ty), diag::inexact_type()),
                Type::Infer(_) => self.errors.leave_to_compiler(),
                _ => visit_mut::visit_type_mut(self, ty),
            }
        }

        // Expressions have no lifetimes of the function, and may have any type in them.
        fn visit_expr_mut(&mut self, _: &mut Expr) {}
    }

    let mut ty = ty.clone();
    let bound = Vec::new();
    Quote { errors, bound }.visit_type_mut(&mut ty);
    ty
}

/// Reports what no parameter's type may have inside: a `'static`, but in what a state holds, which
/// outlives calls, and vectors of nothing as elements.
pub(crate) fn refuse_inside(ty: &Type, errors: &mut Errors) {
    struct Refuse<'a> {
        errors: &'a mut Errors,
        is_element: bool,
    }

    // There is no need to change anything, but it is the visitor that `syn` is built with.
    impl VisitMut for Refuse<'_> {
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            if lifetime.ident == "static" {
                self.errors.push(At::of(lifetime), diag::static_lifetime());
            }
        }

        fn visit_path_segment_mut(&mut self, segment: &mut PathSegment) {
            match &*segment.ident.to_string() {
                "State" | "PerDevice" => return,
                "Array" | "ArrayMut" | "Scratch" => self.is_element = true,
                _ => {}
            }
            visit_mut::visit_path_segment_mut(self, segment);
        }

        fn visit_type_array_mut(&mut self, array: &mut TypeArray) {
            let is_empty = matches!(&array.len, Expr::Lit(ExprLit { lit: Lit::Int(len), .. })
                if len.base10_parse::<usize>().is_ok_and(|len| len == 0));
            if is_empty && self.is_element {
                self.errors.push(At::of(array), diag::empty_element());
            } else {
                visit_mut::visit_type_array_mut(self, array);
            }
        }

        fn visit_expr_mut(&mut self, _: &mut Expr) {}
    }

    let mut refuse = Refuse {
        errors,
        is_element: false,
    };
    refuse.visit_type_mut(&mut ty.clone());
}

/// Whether a type is a state, where a parameter is a reference to one.
pub(crate) fn is_state_by_value(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => is_state_by_value(&group.elem),
        Type::Paren(paren) => is_state_by_value(&paren.elem),
        Type::Path(path) => named(path).is_some_and(|found| found.role.is_state()),
        _ => false,
    }
}

/// Whether the compiler refuses a parameter of this type, for it has no size.
pub(crate) fn is_unsized(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => is_unsized(&group.elem),
        Type::Paren(paren) => is_unsized(&paren.elem),
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Path(path) => path.path.is_ident("str"),
        _ => false,
    }
}

/// Whether a function that returns this returns neither `()` nor a `Result<(), E>`, as
/// far as the spelling says.
pub(crate) fn is_wrong_return(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => is_wrong_return(&group.elem),
        Type::Paren(paren) => is_wrong_return(&paren.elem),
        Type::Tuple(tuple) => !tuple.elems.is_empty(),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else {
                return false;
            };
            let PathArguments::AngleBracketed(arguments) = &last.arguments else {
                return guess(ty).role != Role::Unknown;
            };
            if last.ident != "Result" {
                return guess(ty).role != Role::Unknown;
            }
            let ok = arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            ok.is_some_and(|ok| match ok {
                Type::Tuple(tuple) => !tuple.elems.is_empty(),
                other => guess(other).role != Role::Unknown,
            })
        }
        Type::Infer(_) | Type::Macro(_) => false,
        _ => true,
    }
}

/// Whether a path in a type begins with `name`.
pub(crate) fn begins_with(ty: &Type, name: &Ident) -> bool {
    struct Find<'a>(&'a Ident, bool);

    // There is no need to change anything, but it is the visitor that `syn` is built with.
    impl VisitMut for Find<'_> {
        fn visit_path_mut(&mut self, path: &mut Path) {
            self.1 |= path.leading_colon.is_none() && path.segments[0].ident == *self.0;
            visit_mut::visit_path_mut(self, path);
        }
    }

    let mut find = Find(name, false);
    find.visit_type_mut(&mut ty.clone());
    find.1
}

/// Whether a name is that of a type of the language, which has no path.
pub(crate) fn is_primitive(name: &Ident) -> bool {
    #[rustfmt::skip]
    const PRIMITIVES: &[&str] = &[
        "bool", "char", "str", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
        "u64", "u128", "usize", "f16", "f32", "f64", "f128",
    ];
    PRIMITIVES.iter().any(|primitive| name == primitive)
}

/// Whether a type is a `&mut T`.
pub(crate) fn is_mutable_reference(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => is_mutable_reference(&group.elem),
        Type::Paren(paren) => is_mutable_reference(&paren.elem),
        Type::Reference(reference) => reference.mutability.is_some(),
        _ => false,
    }
}

/// Whether a type is a reference to an array.
pub(crate) fn is_reference_to_an_array(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => is_reference_to_an_array(&group.elem),
        Type::Paren(paren) => is_reference_to_an_array(&paren.elem),
        Type::Reference(reference) => matches!(
            guess(&reference.elem).role,
            Role::Array | Role::ArrayMut | Role::Scratch
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote as ty;

    #[track_caller]
    fn says(ty: Type, role: Role, platform: Option<Platform>, rank: Option<usize>) {
        assert_eq!(
            guess(&ty),
            Guess {
                role,
                platform,
                rank
            }
        );
    }

    #[test]
    fn spellings() {
        let cpu = Some(Platform::Cpu);
        says(ty!(cpu::Array<f32, 2>), Role::Array, cpu, Some(2));
        says(
            ty!(jax_callable::cpu::ArrayMut<'a, [f32; 3], 0>),
            Role::ArrayMut,
            cpu,
            Some(0),
        );
        says(
            ty!(cuda::Scratch<f32, N>),
            Role::Scratch,
            Some(Platform::Cuda),
            None,
        );
        says(ty!(Array<f32>), Role::Array, None, None);
        says(ty!(&cpu::Context), Role::Context, cpu, None);
        says(ty!(cpu::Context), Role::Unknown, None, None);
        says(ty!(&State<Plan>), Role::State, None, None);
        let per_device = Role::PerDevice;
        says(ty!(&PerDevice<Plan>), per_device, None, None);
        says(
            ty!(&cuda::PerDevice<S>),
            per_device,
            Some(Platform::Cuda),
            None,
        );
        says(ty!(u32), Role::Integer, None, None);
        says(ty!(::core::primitive::bool), Role::Static, None, None);
        says(ty!(&[f32]), Role::Static, None, None);
        says(ty!([f32; 3]), Role::Static, None, None);
        says(ty!(&str), Role::Static, None, None);
        says(ty!(Vector), Role::Unknown, None, None);
    }

    #[test]
    fn returns() {
        for right in [
            "()",
            "Result<()>",
            "io::Result<()>",
            "Result<(), E>",
            "Outcome",
            "Result",
        ] {
            assert!(!is_wrong_return(&syn::parse_str(right).unwrap()), "{right}");
        }
        for wrong in [
            "f32",
            "(f32, f32)",
            "Result<f32>",
            "cpu::Array<f32, 1>",
            "&str",
            "impl T",
            "!",
        ] {
            assert!(is_wrong_return(&syn::parse_str(wrong).unwrap()), "{wrong}");
        }
    }
}
