//! What every call needs to know of a callable, worked out at compile time.

use crate::check::{is_operand, is_result, is_scratch};
use crate::dtype::DataType;
use crate::signature::{Callable, Kind, Length, Param, StaticType};

/// How many parameters a callable may have.
pub(crate) const MAX_PARAMS: usize = 64;
/// How many named dimensions a callable may have.
pub(crate) const MAX_DIM_NAMES: usize = 64;

/// Our own attribute for the batch axes of a call, if it has any.
pub(crate) const BATCH: &str = "jc.batch";
/// Our own attribute for outputs whose shapes were chosen for the call.
pub(crate) const OUTPUT_DIMS: &str = "jc.output_dims";

/// The positions of things in a call frame.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The parameters of the operands, in order.
    pub(crate) operands: Indices,
    /// The parameters of the results, in order, then those of the hidden ones: scratch.
    pub(crate) results: Indices,
    /// How many results are not hidden.
    pub(crate) num_results: usize,
    /// For each result, the operand that it is an in-out of.
    pub(crate) in_outs: [Option<u8>; MAX_PARAMS],
    /// The number of static attributes.
    pub(crate) num_statics: usize,
    /// Whether a parameter is kept at the call site, not read from the frame.
    pub(crate) has_kept: bool,
    /// Whether each call site has a state.
    pub(crate) has_state: bool,
    /// Whether each has one on each device.
    pub(crate) has_device_state: bool,
    /// Whether any shape was declared.
    pub(crate) has_dims: bool,
    /// Whether there are in-outs.
    pub(crate) has_in_outs: bool,
}

/// A list of parameter positions.
#[derive(Debug)]
pub(crate) struct Indices {
    len: usize,
    indices: [u8; MAX_PARAMS],
}

impl Indices {
    const fn new() -> Indices {
        Indices {
            len: 0,
            indices: [0; MAX_PARAMS],
        }
    }

    const fn push(&mut self, index: usize) {
        self.indices[self.len] = index as u8;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.indices[..self.len]
    }
}

impl Plan {
    pub(crate) const fn new(callable: &Callable) -> Plan {
        let params = callable.params;
        assert!(params.len() <= MAX_PARAMS, "too many parameters");
        assert!(
            callable.dim_names.len() <= MAX_DIM_NAMES,
            "too many named dimensions: a callable has at most 64"
        );
        let mut plan = Plan {
            operands: Indices::new(),
            results: Indices::new(),
            num_results: 0,
            in_outs: [None; MAX_PARAMS],
            num_statics: 0,
            has_kept: false,
            has_state: false,
            has_device_state: false,
            has_dims: false,
            has_in_outs: false,
        };
        let mut i = 0;
        while i < params.len() {
            let param = &params[i];
            if is_result(param) {
                if param.in_out {
                    plan.has_in_outs = true;
                    plan.in_outs[plan.results.len] = Some(plan.operands.len as u8);
                }
                plan.results.push(i);
            }
            if is_operand(param) {
                plan.operands.push(i);
            }
            if matches!(param.ty.kind, Kind::Static) {
                plan.num_statics += 1;
                plan.has_kept |= is_kept(param);
            }
            plan.has_state |= matches!(param.ty.kind, Kind::State);
            plan.has_device_state |= matches!(param.ty.kind, Kind::PerDevice);
            plan.has_kept |= plan.has_state || plan.has_device_state;
            plan.has_dims |= param.dims.is_some();
            i += 1;
        }
        plan.num_results = plan.results.len;
        let mut i = 0;
        while i < params.len() {
            if is_scratch(&params[i]) {
                plan.results.push(i);
            }
            i += 1;
        }
        plan
    }
}

/// The place of a parameter in what it plays: an input's among the operands, an output's
/// or in-out's among the results, which scratch follows, a number's among the static attributes by name, another
/// static attribute's among those that the call site keeps. Contexts and state need none.
pub const fn slot(params: &[Param], index: usize) -> usize {
    let param = &params[index];
    if matches!(param.ty.kind, Kind::Static) && !is_kept(param) {
        return number_slot(params, param.name);
    }
    let mut slot = 0;
    let mut i = 0;
    while i < params.len() {
        let is_before = i < index;
        let counts = match param.ty.kind {
            Kind::Array => is_before && is_operand(&params[i]),
            Kind::ArrayMut => is_before && is_result(&params[i]),
            Kind::Scratch => is_result(&params[i]) || is_before && is_scratch(&params[i]),
            Kind::Static => is_before && is_kept(&params[i]),
            Kind::Context | Kind::State | Kind::PerDevice => false,
        };
        slot += counts as usize;
        i += 1;
    }
    slot
}

/// Set in the slot of a number whose name comes after those of our own attributes.
const AFTER_OWN: usize = 1 << 16;

/// The position of a number among all attributes of a call, which XLA sorts by name, if
/// `num_own` of them are our own.
#[inline]
pub(crate) const fn attr_position(slot: usize, num_own: usize) -> usize {
    (slot & (AFTER_OWN - 1)) + if slot >= AFTER_OWN { num_own } else { 0 }
}

/// How many static attributes have a lesser name, by bytes. No Rust name has a dot, so
/// that none comes between our own attributes.
const fn number_slot(params: &[Param], name: &str) -> usize {
    let mut slot = if is_less(BATCH, name) { AFTER_OWN } else { 0 };
    let mut i = 0;
    while i < params.len() {
        if matches!(params[i].ty.kind, Kind::Static) {
            slot += is_less(params[i].name, name) as usize;
        }
        i += 1;
    }
    slot
}

/// Whether a static attribute must be decoded into memory of its own: all but numbers
/// that one int64 carries.
pub(crate) const fn is_kept(param: &Param) -> bool {
    match param.ty.value {
        Some(StaticType::Number(DataType::C128, Length::One)) => true,
        Some(StaticType::Number(_, Length::One)) | None => false,
        Some(_) => true,
    }
}

const fn is_less(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return a[i] < b[i];
        }
        i += 1;
    }
    a.len() < b.len()
}

#[cfg(test)]
mod tests {
    use super::is_less;

    #[test]
    fn names_are_ordered_by_bytes() {
        let names = [
            "", "A", "Z", "_x", "a", "a10", "a9", "jc.batch", "jd", "zz", "é",
        ];
        for (i, a) in names.iter().enumerate() {
            for (j, b) in names.iter().enumerate() {
                assert_eq!(is_less(a, b), i < j, "{a} {b}");
            }
        }
    }
}
