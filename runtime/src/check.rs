//! What the attribute asks at compile time where only the types of parameters know.

use crate::signature::{Callable, Dim, GraphMode, Kind, Length, Param, Platform, StaticType};

/// Stands in for the description of a function with mistakes, for others to refer to.
pub const MISTAKEN: Callable = Callable {
    vmap_method: None,
    graph_mode: GraphMode::None,
    preload: "",
    ..Callable::DEFAULT
};

/// Fails the build unless a rule holds.
#[track_caller]
pub const fn require(holds: bool, message: &str) {
    if !holds {
        panic!("{}", message);
    }
}

/// Whether the body reads the parameter as an array: an input or an in-out.
pub const fn is_operand(param: &Param) -> bool {
    match param.ty.kind {
        Kind::Array => true,
        Kind::ArrayMut => param.in_out,
        _ => false,
    }
}

/// Whether the body writes the parameter: an output or an in-out.
pub const fn is_result(param: &Param) -> bool {
    matches!(param.ty.kind, Kind::ArrayMut)
}

/// Whether the body only writes the parameter.
pub const fn is_output(param: &Param) -> bool {
    is_result(param) && !param.in_out
}

/// Whether only the body sees the parameter.
pub const fn is_scratch(param: &Param) -> bool {
    matches!(param.ty.kind, Kind::Scratch)
}

/// Whether the parameter is a single integer.
pub const fn is_integer(param: &Param) -> bool {
    match param.ty.value {
        Some(StaticType::Number(dtype, Length::One)) => dtype.is_integer(),
        _ => false,
    }
}

/// Whether the parameter is an array that has this axis.
pub const fn has_axis(param: &Param, axis: usize) -> bool {
    is_array(param) && axis < param.ty.rank
}

/// Whether the parameter has at most this many dimensions.
pub const fn rank_at_most(param: &Param, rank: usize) -> bool {
    param.ty.rank <= rank
}

/// Whether the parameter's dimensions, if declared, are one for each axis.
pub const fn dims_fit(param: &Param) -> bool {
    match param.dims {
        Some(dims) => is_array(param) && dims.len() == param.ty.rank,
        None => true,
    }
}

/// Whether the parameter's size is known, if it is scratch.
pub const fn has_size(param: &Param) -> bool {
    param.dims.is_some() || !is_scratch(param)
}

/// How many outputs and in-outs there are.
pub const fn results(callable: &Callable) -> u64 {
    let mut results = 0;
    let mut i = 0;
    while i < callable.params.len() {
        results += is_result(&callable.params[i]) as u64;
        i += 1;
    }
    results
}

/// Whether the parameter at `index` is no context, or the first parameter.
pub const fn is_context_first(callable: &Callable, index: usize) -> bool {
    index == 0 || !matches!(callable.params[index].ty.kind, Kind::Context)
}

/// Whether the parameter at `index` is no input, or has no output before it.
pub const fn is_in_order(callable: &Callable, index: usize) -> bool {
    let param = &callable.params[index];
    if !is_operand(param) && !matches!(param.ty.kind, Kind::Static) {
        return true;
    }
    let mut i = 0;
    while i < index {
        if is_output(&callable.params[i]) {
            return false;
        }
        i += 1;
    }
    true
}

/// Whether the parameter at `index` is on the callable's platform, or on none.
pub const fn is_same_platform(callable: &Callable, index: usize) -> bool {
    match callable.params[index].ty.platform {
        Some(platform) => platform as u8 == callable.platform() as u8,
        None => true,
    }
}

/// Whether there is a state.
pub const fn has_state(callable: &Callable) -> bool {
    state_before(callable, callable.params.len())
}

/// Whether the parameter at `index` is no state, or the only one, of a constructor.
pub const fn is_built_once(callable: &Callable, index: usize) -> bool {
    !is_state(&callable.params[index]) || callable.state.is_some() && !state_before(callable, index)
}

/// Whether the parameter at `index` is known when the state is built.
pub const fn is_known_to_state(callable: &Callable, index: usize) -> bool {
    match callable.params[index].ty.kind {
        Kind::Static => true,
        // A state on a device is built by a call there.
        Kind::Context => {
            let mut i = 0;
            while i < callable.params.len() {
                if matches!(callable.params[i].ty.kind, Kind::PerDevice) {
                    return true;
                }
                i += 1;
            }
            false
        }
        _ => false,
    }
}

const fn is_state(param: &Param) -> bool {
    matches!(param.ty.kind, Kind::State | Kind::PerDevice)
}

const fn state_before(callable: &Callable, index: usize) -> bool {
    let mut i = 0;
    while i < index {
        if is_state(&callable.params[i]) {
            return true;
        }
        i += 1;
    }
    false
}

/// Whether the callable is on CUDA.
pub const fn is_cuda(callable: &Callable) -> bool {
    matches!(callable.platform(), Platform::Cuda)
}

/// Whether an input or in-out has a named dimension alone on one of its axes.
pub const fn binds(callable: &Callable, name: usize) -> bool {
    let mut i = 0;
    while i < callable.params.len() {
        let param = &callable.params[i];
        if let (true, Some(dims)) = (is_operand(param), param.dims) {
            let mut axis = 0;
            while axis < dims.len() {
                if matches!(&dims[axis], Dim::Name(other) if *other == name) {
                    return true;
                }
                axis += 1;
            }
        }
        i += 1;
    }
    false
}

const fn is_array(param: &Param) -> bool {
    matches!(param.ty.kind, Kind::Array | Kind::ArrayMut | Kind::Scratch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{Array, ArrayMut, Context};
    use crate::param::FfiArg;
    use crate::signature::ParamType;

    const fn param(ty: ParamType, in_out: bool, dims: Option<&'static [Dim]>) -> Param {
        Param {
            name: "",
            ty,
            in_out,
            dims,
        }
    }

    const ARRAY: ParamType = <Array<'static, f32, 1> as FfiArg<'static>>::TYPE;
    const ARRAY_MUT: ParamType = <ArrayMut<'static, f32, 1> as FfiArg<'static>>::TYPE;

    const IN: Param = param(ARRAY, false, Some(&[Dim::Name(0)]));
    const IN_OUT: Param = param(ARRAY_MUT, true, None);
    const OUT: Param = param(ARRAY_MUT, false, Some(&[Dim::Name(1), Dim::Const(2)]));
    const COUNT: Param = param(<u16 as FfiArg<'static>>::TYPE, false, None);
    const REAL: Param = param(<f64 as FfiArg<'static>>::TYPE, false, None);
    const COUNTS: Param = param(<&[u16] as FfiArg<'static>>::TYPE, false, None);
    const CONTEXT: Param = {
        let mut ty = <&Context as FfiArg<'static>>::TYPE;
        ty.platform = Some(Platform::Cuda);
        param(ty, false, None)
    };

    #[test]
    fn roles() {
        let roles = |param: &Param| (is_operand(param), is_result(param), is_output(param));
        assert_eq!(roles(&IN), (true, false, false));
        assert_eq!(roles(&IN_OUT), (true, true, false));
        assert_eq!(roles(&OUT), (false, true, true));
        assert_eq!(roles(&COUNT), (false, false, false));
        assert!(is_integer(&COUNT));
        assert!(!is_integer(&REAL) && !is_integer(&COUNTS) && !is_integer(&IN));
    }

    #[test]
    fn dimensions() {
        assert!(has_axis(&IN, 0) && !has_axis(&IN, 1) && !has_axis(&COUNT, 0));
        assert!(rank_at_most(&IN, 1) && !rank_at_most(&IN, 0));
        assert!(dims_fit(&IN) && dims_fit(&IN_OUT) && !dims_fit(&OUT));
        const CALLABLE: Callable = Callable {
            params: &[IN, OUT],
            ..MISTAKEN
        };
        assert!(binds(&CALLABLE, 0));
        // An output binds nothing.
        assert!(!binds(&CALLABLE, 1));
    }

    #[test]
    fn signatures() {
        const RIGHT: Callable = Callable {
            params: &[IN, COUNT, IN_OUT, OUT],
            ..MISTAKEN
        };
        const WRONG: Callable = Callable {
            params: &[OUT, IN, CONTEXT],
            ..MISTAKEN
        };
        assert_eq!((results(&RIGHT), results(&WRONG)), (2, 1));
        assert!((0..4).all(|i| is_in_order(&RIGHT, i) && is_context_first(&RIGHT, i)));
        assert!(is_in_order(&WRONG, 0) && !is_in_order(&WRONG, 1));
        assert!(!is_context_first(&WRONG, 2));
        assert!((0..4).all(|i| is_same_platform(&RIGHT, i)));
        assert!(is_same_platform(&WRONG, 1) && !is_same_platform(&WRONG, 2));
        assert!(!is_cuda(&RIGHT));
    }

    #[test]
    #[should_panic = "text"]
    fn what_does_not_hold_panics() {
        require(true, "none");
        require(false, "text");
    }
}
