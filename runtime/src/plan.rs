//! What every call needs to know of a callable, worked out once.

#[cfg(feature = "_cuda")]
use crate::check::is_cuda;
use crate::check::{is_operand, is_output, is_result, is_scratch};
use crate::dtype::DataType;
use crate::signature::{Callable, Kind, Length, Param, StaticType};

/// How many parameters a callable may have.
pub(crate) const MAX_PARAMS: usize = 64;
/// How many named dimensions a callable may have.
pub(crate) const MAX_DIM_NAMES: usize = 64;

/// How many operands and results the short cut looks at.
pub(crate) const MAX_PLAIN: usize = 8;

/// Our own attribute for the batch axes of a call, if it has any.
pub(crate) const BATCH: &str = "jc.batch";
/// Our own attribute for outputs whose shapes were chosen for the call.
pub(crate) const OUTPUT_DIMS: &str = "jc.output_dims";

/// What a call frame of a callable has. In this order: what every call reads comes first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Plan {
    num_operands: u8,
    num_results: u8,
    num_scratch: u8,
    num_statics: u8,
    /// Whether a parameter is kept at the call site, not read from the frame.
    pub(crate) has_kept: bool,
    /// Whether each call site has a state.
    pub(crate) has_state: bool,
    /// Whether each has one on each device.
    pub(crate) has_device_state: bool,
    /// Whether there are in-outs.
    pub(crate) has_in_outs: bool,
    /// Whether it runs on a GPU.
    #[cfg(feature = "_cuda")]
    pub(crate) is_on_gpu: bool,
    /// Whether the short cut may let a call pass.
    pub(crate) can_be_plain: bool,
    /// What that compares buffers with: operands, then results.
    plain: [PlainBuffer; MAX_PLAIN],
    /// The slot of each parameter, see [`slot`].
    slots: [u8; MAX_PARAMS],
}

/// The type of a buffer in the fewest bytes, for it is read in every call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainBuffer {
    /// XLA's number of the element type.
    pub(crate) dtype: u8,
    /// Bytes of a scalar.
    pub(crate) size: u8,
    /// Bytes that the data must be aligned to, less one.
    pub(crate) align_mask: u8,
    /// Dimensions, the packed ones included.
    pub(crate) rank: u8,
    /// Packed dimensions.
    pub(crate) packed: u8,
    /// The parameter.
    pub(crate) param: u8,
    /// The operand that a result is an in-out of.
    pub(crate) source: u8,
}

impl PlainBuffer {
    /// The source of what is no in-out.
    pub(crate) const NO_SOURCE: u8 = u8::MAX;

    const NONE: PlainBuffer = PlainBuffer {
        dtype: 0,
        size: 0,
        align_mask: 0,
        rank: 0,
        packed: 0,
        param: 0,
        source: PlainBuffer::NO_SOURCE,
    };

    const fn new(params: &[Param], index: usize, source: u8) -> PlainBuffer {
        let ty = &params[index].ty.buffer;
        PlainBuffer {
            dtype: ty.dtype as u8,
            size: ty.size as u8,
            align_mask: ty.align_mask as u8,
            rank: ty.rank as u8,
            packed: ty.packed as u8,
            param: index as u8,
            source,
        }
    }

    /// Dimensions without the packed ones.
    #[inline]
    pub(crate) fn own_rank(&self) -> usize {
        usize::from(self.rank - self.packed)
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
            num_operands: 0,
            num_results: 0,
            num_scratch: 0,
            num_statics: 0,
            slots: [0; MAX_PARAMS],
            has_kept: false,
            has_state: false,
            has_device_state: false,
            has_in_outs: false,
            #[cfg(feature = "_cuda")]
            is_on_gpu: is_cuda(callable),
            can_be_plain: false,
            plain: [PlainBuffer::NONE; MAX_PLAIN],
        };
        let mut has_dims = false;
        let mut i = 0;
        while i < params.len() {
            let param = &params[i];
            plan.slots[i] = slot(params, i);
            plan.num_operands += is_operand(param) as u8;
            plan.num_results += is_result(param) as u8;
            plan.num_scratch += is_scratch(param) as u8;
            plan.has_in_outs |= is_operand(param) && is_result(param);
            if matches!(param.ty.kind, Kind::Static) {
                plan.num_statics += 1;
                plan.has_kept |= is_kept(param);
            }
            plan.has_state |= matches!(param.ty.kind, Kind::State);
            plan.has_device_state |= matches!(param.ty.kind, Kind::PerDevice);
            has_dims |= param.dims.is_some();
            i += 1;
        }
        plan.has_kept |= plan.has_state || plan.has_device_state;
        let num_buffers = plan.num_operands as usize + plan.num_results as usize;
        let has_room = 0 < plan.num_operands && num_buffers <= MAX_PLAIN;
        if has_room && !plan.has_kept && !has_dims && plan.num_scratch == 0 {
            plan.set_plain(params);
        }
        plan
    }

    const fn set_plain(&mut self, params: &[Param]) {
        let (mut operand, mut result) = (0, self.num_operands as usize);
        let (mut i, mut is_wide) = (0, false);
        while i < params.len() {
            let (param, mut source) = (&params[i], PlainBuffer::NO_SOURCE);
            is_wide |= param.ty.buffer.rank > u8::MAX as u16;
            if is_operand(param) {
                self.plain[operand] = PlainBuffer::new(params, i, source);
                source = operand as u8;
                operand += 1;
            }
            if is_result(param) {
                if is_output(param) {
                    source = PlainBuffer::NO_SOURCE;
                }
                self.plain[result] = PlainBuffer::new(params, i, source);
                result += 1;
            }
            i += 1;
        }
        self.can_be_plain = !is_wide;
    }

    /// The slot of a parameter.
    #[inline]
    pub(crate) fn slot(&self, index: usize) -> u8 {
        self.slots[index]
    }

    /// The types of the operands, if a call can be plain.
    #[inline]
    pub(crate) fn plain_operands(&self) -> &[PlainBuffer] {
        &self.plain[..self.num_operands()]
    }

    /// The types of the results, if a call can be plain.
    #[inline]
    pub(crate) fn plain_results(&self) -> &[PlainBuffer] {
        &self.plain[self.num_operands()..self.num_operands() + self.num_results()]
    }

    /// The number of operands.
    #[inline]
    pub(crate) fn num_operands(&self) -> usize {
        usize::from(self.num_operands)
    }

    /// The number of results that are not hidden.
    #[inline]
    pub(crate) fn num_results(&self) -> usize {
        usize::from(self.num_results)
    }

    /// The number of results, the hidden ones included: scratch, which comes last.
    #[inline]
    pub(crate) fn num_all_results(&self) -> usize {
        self.num_results() + usize::from(self.num_scratch)
    }

    /// The number of static attributes.
    #[inline]
    pub(crate) fn num_statics(&self) -> usize {
        usize::from(self.num_statics)
    }
}

/// The place of a parameter in what it plays: an input's among the operands, an output's
/// or in-out's among the results, which scratch follows, a number's among the static attributes by name, another
/// static attribute's among those that the call site keeps. Contexts and state need none.
const fn slot(params: &[Param], index: usize) -> u8 {
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
        slot += counts as u8;
        i += 1;
    }
    slot
}

/// Set in the slot of a number whose name comes after those of our own attributes.
const AFTER_OWN: u8 = 1 << 7;

/// The position of a number among all attributes of a call, which XLA sorts by name, if
/// `num_own` of them are our own.
#[inline]
pub(crate) fn attr_position(slot: u8, num_own: usize) -> usize {
    usize::from(slot & (AFTER_OWN - 1)) + if slot >= AFTER_OWN { num_own } else { 0 }
}

/// How many static attributes have a lesser name, by bytes. No Rust name has a dot, so
/// that none comes between our own attributes.
const fn number_slot(params: &[Param], name: &str) -> u8 {
    let mut slot = if is_less(BATCH, name) { AFTER_OWN } else { 0 };
    let mut i = 0;
    while i < params.len() {
        if matches!(params[i].ty.kind, Kind::Static) {
            slot += is_less(params[i].name, name) as u8;
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
