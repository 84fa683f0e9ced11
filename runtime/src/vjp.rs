//! What `vjp` asks at compile time: whether one callable computes the derivative of another.
//!
//! Parameters are matched by names. Beside those of the forward callable there are three kinds:
//!
//! | name | of | what it is |
//! |---|---|---|
//! | `out_<name>` | an in-out, or an output | its value after the call |
//! | `ct_<name>` | an in-out or output of a type that has derivatives | its cotangent |
//! | `d_<name>` | an input or in-out of such a type | an output: the cotangent that is asked for |
//!
//! A name that the forward callable has itself is that parameter, whatever it begins with.

use crate::check::{is_operand, is_output, is_result};
use crate::const_text::Text;
use crate::dtype::DataType;
use crate::signature::{Callable, Kind, Length, Param, ParamType, Platform, StaticType};

/// Fails the build unless `backward` fits `forward`, with all that is wrong.
#[track_caller]
pub const fn require_vjp(forward: &Callable, backward: &Callable, what: &str, help: &str) {
    // One that has mistakes of its own was replaced by `check::MISTAKEN`.
    if backward.name.is_empty() {
        return;
    }
    let problems = problems(forward, backward);
    if !problems.is_empty() {
        let mut text = Text::new();
        text.add(what).add(problems.as_str()).add("\n").add(help);
        panic!("{}", text.as_str());
    }
}

/// What a parameter of the backward callable stands for, by position in the forward one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The value of a parameter, before the call or after it.
    Value(usize),
    /// The cotangent of a result.
    Cotangent(usize),
    /// Nothing.
    Unknown,
}

/// All that is wrong, a line for each problem.
const fn problems(forward: &Callable, backward: &Callable) -> Text {
    let mut text = Text::new();
    if forward.platform() as u8 != backward.platform() as u8 {
        text.line(backward.name).add(" is on ");
        text.add(platform_words(backward.platform())).add(", ");
        text.name(forward.name).add(" on ");
        text.add(platform_words(forward.platform()));
    }
    let mut has_cotangent = false;
    let mut i = 0;
    while i < backward.params.len() {
        let param = &backward.params[i];
        if is_output(param) {
            returned(forward, param, &mut text);
        } else if is_result(param) {
            has_cotangent = true;
            replaced(forward, param, &mut text);
        } else if is_operand(param) || is_static(param) {
            let meaning = meaning(forward, param.name);
            has_cotangent |= matches!(meaning, Meaning::Cotangent(_));
            taken(forward, param, meaning, &mut text);
        }
        i += 1;
    }
    if !has_cotangent {
        text.line(backward.name);
        text.add(" takes no `ct_<output>` of an output with a derivative");
    }
    let mut i = 0;
    while i < forward.params.len() {
        let param = &forward.params[i];
        if is_operand(param) && has_derivative(param) && !returns(backward, param.name) {
            text.line(backward.name).add(" has no output ");
            text.quote("d_", param.name).add(", ").param(param);
        }
        i += 1;
    }
    text
}

const fn meaning(forward: &Callable, name: &str) -> Meaning {
    let mut i = 0;
    while i < forward.params.len() {
        let param = &forward.params[i];
        if is_visible(param) && is_prefixed("", param.name, name) {
            return Meaning::Value(i);
        }
        i += 1;
    }
    let mut i = 0;
    while i < forward.params.len() {
        let param = &forward.params[i];
        if is_result(param) && is_prefixed("out_", param.name, name) {
            return Meaning::Value(i);
        }
        if is_result(param) && is_prefixed("ct_", param.name, name) {
            return Meaning::Cotangent(i);
        }
        i += 1;
    }
    Meaning::Unknown
}

/// An input or a scalar of the backward callable.
const fn taken(forward: &Callable, param: &Param, meaning: Meaning, text: &mut Text) {
    match meaning {
        Meaning::Unknown => {
            text.line(param.name).add(" is neither a parameter of ");
            text.name(forward.name)
                .add(", nor `ct_<output>` or `out_<in-out>`");
        }
        Meaning::Cotangent(i) if !has_derivative(&forward.params[i]) => {
            without_derivative(param.name, &forward.params[i], text);
        }
        Meaning::Value(i) | Meaning::Cotangent(i) => same_type(forward, i, param, text),
    }
}

/// An in-out of the backward callable: the cotangent of an in-out, and then its derivative.
const fn replaced(forward: &Callable, param: &Param, text: &mut Text) {
    match derivative_of(forward, param.name) {
        Some(i) if forward.params[i].in_out => of_derivative(forward, i, param, text),
        _ => {
            text.line(param.name)
                .add(" is an in-out, which only `d_<in-out>` can be");
        }
    }
}

/// An output of the backward callable.
const fn returned(forward: &Callable, param: &Param, text: &mut Text) {
    match derivative_of(forward, param.name) {
        Some(i) => of_derivative(forward, i, param, text),
        None => {
            text.line(param.name)
                .add(" is an output, but no `d_<input>` of ");
            text.name(forward.name);
        }
    }
}

const fn of_derivative(forward: &Callable, i: usize, param: &Param, text: &mut Text) {
    if has_derivative(&forward.params[i]) {
        same_type(forward, i, param, text);
    } else {
        without_derivative(param.name, &forward.params[i], text);
    }
}

const fn without_derivative(name: &str, of: &Param, text: &mut Text) {
    text.line(name).add(" does not exist, for ").name(of.name);
    text.add(" has no derivative: it is ").param(of);
}

const fn same_type(forward: &Callable, i: usize, param: &Param, text: &mut Text) {
    let wanted = &forward.params[i];
    if !is_same_type(&param.ty, &wanted.ty) {
        text.line(param.name).add(" is ").param(param);
        text.add(", but ").name(wanted.name).add(" of ");
        text.name(forward.name).add(" is ").param(wanted);
    }
}

/// The operand whose derivative has this name.
const fn derivative_of(forward: &Callable, name: &str) -> Option<usize> {
    let mut i = 0;
    while i < forward.params.len() {
        let param = &forward.params[i];
        if is_operand(param) && is_prefixed("d_", param.name, name) {
            return Some(i);
        }
        i += 1;
    }
    None
}

/// Whether an output or in-out is the derivative of the operand of this name.
const fn returns(backward: &Callable, operand: &str) -> bool {
    let mut i = 0;
    while i < backward.params.len() {
        let param = &backward.params[i];
        if is_result(param) && is_prefixed("d_", operand, param.name) {
            return true;
        }
        i += 1;
    }
    false
}

const fn is_static(param: &Param) -> bool {
    matches!(param.ty.kind, Kind::Static)
}

const fn is_visible(param: &Param) -> bool {
    is_operand(param) || is_result(param) || is_static(param)
}

/// Whether an array's elements are such that JAX differentiates by them.
const fn has_derivative(param: &Param) -> bool {
    match param.ty.dtype {
        None => false,
        Some(dtype) => !(matches!(dtype, DataType::Pred) || dtype.is_integer()),
    }
}

const fn is_same_type(a: &ParamType, b: &ParamType) -> bool {
    if let (Some(a), Some(b)) = (a.value, b.value) {
        return match (a, b) {
            (StaticType::Str, StaticType::Str) => true,
            (StaticType::Number(a, len), StaticType::Number(b, other)) => {
                a as i32 == b as i32
                    && match (len, other) {
                        (Length::One, Length::One) | (Length::Slice, Length::Slice) => true,
                        (Length::Fixed(a), Length::Fixed(b)) => a == b,
                        _ => false,
                    }
            }
            _ => false,
        };
    }
    if let (Some(dtype), Some(other)) = (a.dtype, b.dtype) {
        let mut same =
            dtype as i32 == other as i32 && a.rank == b.rank && a.packed.len() == b.packed.len();
        let mut i = 0;
        while same && i < a.packed.len() {
            same = a.packed[i] == b.packed[i];
            i += 1;
        }
        return same;
    }
    false
}

/// Whether `text` is `prefix` and then `name`.
const fn is_prefixed(prefix: &str, name: &str, text: &str) -> bool {
    let (prefix, name, text) = (prefix.as_bytes(), name.as_bytes(), text.as_bytes());
    if text.len() != prefix.len() + name.len() {
        return false;
    }
    let mut i = 0;
    while i < text.len() {
        let wanted = if i < prefix.len() {
            prefix[i]
        } else {
            name[i - prefix.len()]
        };
        if text[i] != wanted {
            return false;
        }
        i += 1;
    }
    true
}

const fn platform_words(platform: Platform) -> &'static str {
    match platform {
        Platform::Cpu => "the CPU",
        Platform::Cuda => "CUDA",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::MISTAKEN;
    use crate::cpu::{Array, ArrayMut};
    use crate::param::FfiArg;

    const fn param(name: &'static str, ty: ParamType, in_out: bool) -> Param {
        Param {
            name,
            ty,
            in_out,
            dims: None,
        }
    }

    const IN: ParamType = <Array<'static, f32, 1> as FfiArg<'static>>::TYPE;
    const OUT: ParamType = <ArrayMut<'static, f32, 1> as FfiArg<'static>>::TYPE;
    const COUNT: ParamType = <Array<'static, i32, 1> as FfiArg<'static>>::TYPE;
    const SCALAR: ParamType = <f32 as FfiArg<'static>>::TYPE;

    const fn callable(name: &'static str, params: &'static [Param]) -> Callable {
        Callable {
            name,
            module: "tests",
            params,
            ..MISTAKEN
        }
    }

    /// `f(a, x, n, y in-out) -> y, z`.
    const FORWARD: Callable = callable(
        "f",
        &[
            param("a", SCALAR, false),
            param("x", IN, false),
            param("n", COUNT, false),
            param("y", OUT, true),
            param("z", OUT, false),
        ],
    );

    fn lines(params: &'static [Param]) -> Vec<String> {
        let text = problems(&FORWARD, &callable("b", params));
        text.as_str().lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn names_have_meanings() {
        let meaning = |name| meaning(&FORWARD, name);
        for (i, param) in FORWARD.params.iter().enumerate() {
            assert_eq!(meaning(param.name), Meaning::Value(i));
        }
        assert_eq!(meaning("out_y"), Meaning::Value(3));
        assert_eq!(meaning("out_z"), Meaning::Value(4));
        assert_eq!(meaning("ct_y"), Meaning::Cotangent(3));
        assert_eq!(meaning("ct_z"), Meaning::Cotangent(4));
        for name in ["out_x", "ct_x", "ct_a", "d_x", "ct_", "", "yy", "ct_ct_y"] {
            assert_eq!(meaning(name), Meaning::Unknown, "{name}");
        }
        // A name of its own comes first.
        const OWN: Callable = callable("f", &[param("y", OUT, true), param("ct_y", IN, false)]);
        assert_eq!(super::meaning(&OWN, "ct_y"), Meaning::Value(1));
    }

    #[test]
    fn one_that_fits() {
        const RIGHT: &[Param] = &[
            param("ct_z", IN, false),
            param("out_y", IN, false),
            param("y", IN, false),
            param("a", SCALAR, false),
            param("d_y", OUT, true),
            param("d_x", OUT, false),
        ];
        assert_eq!(lines(RIGHT), [""; 0]);
        const FITS: Callable = callable("b", RIGHT);
        const { require_vjp(&FORWARD, &FITS, "what", "help") }
        const { require_vjp(&FORWARD, &MISTAKEN, "what", "help") }
    }

    #[test]
    fn all_that_is_wrong_is_said() {
        const WRONG: &[Param] = &[
            param("a", IN, false),
            param("x", COUNT, false),
            param("w", IN, false),
            param("d_x", OUT, true),
            param("d_n", OUT, false),
            param("d_a", OUT, false),
        ];
        assert_eq!(
            lines(WRONG),
            [
                "- `a` is an array of float32 of rank 1, but `a` of `f` is a static float32",
                "- `x` is an array of int32 of rank 1, but `x` of `f` is an array of float32 of rank 1",
                "- `w` is neither a parameter of `f`, nor `ct_<output>` or `out_<in-out>`",
                "- `d_x` is an in-out, which only `d_<in-out>` can be",
                "- `d_n` does not exist, for `n` has no derivative: it is an array of int32 of rank 1",
                "- `d_a` is an output, but no `d_<input>` of `f`",
                "- `b` has no output `d_y`, an array of float32 of rank 1",
            ]
        );
        const LAZY: &[Param] = &[param("d_x", OUT, false), param("d_y", OUT, false)];
        assert_eq!(
            lines(LAZY),
            ["- `b` takes no `ct_<output>` of an output with a derivative"]
        );
    }

    #[test]
    #[should_panic = "what\n- `b` has no output `d_y`, an array of float32 of rank 1\nhelp"]
    fn what_does_not_fit_panics() {
        const WRONG: &[Param] = &[param("ct_z", IN, false), param("d_x", OUT, false)];
        require_vjp(&FORWARD, &callable("b", WRONG), "what", "help");
    }
}
