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

/// What a call frame of a callable has. In this order: what every call reads comes first, and what
/// the short cut reads fits into two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Plan {
    num_operands: u8,
    num_results: u8,
    num_scratch: u8,
    num_statics: u8,
    num_numbers: u8,
    /// Whether the short cut may let a call pass.
    pub(crate) can_be_plain: bool,
    /// Whether there are arrays of vectors or matrices.
    pub(crate) has_packed: bool,
    /// Whether it runs on a GPU.
    #[cfg(feature = "_cuda")]
    is_on_gpu: bool,
    /// What the short cut compares buffers with: operands, then results.
    pub(crate) plain: [PlainBuffer; MAX_PLAIN],
    /// The parameters that are read from the frame as numbers, sorted by name.
    numbers: [u8; MAX_PARAMS],
    /// The parameters of the operands, then of the results, then of scratch.
    buffers: [u8; 2 * MAX_PARAMS],
    /// The slot of each parameter, see [`slot`].
    slots: [u8; MAX_PARAMS],
    /// Whether a parameter is kept at the call site, not read from the frame.
    pub(crate) has_kept: bool,
    /// Whether each call site has a state.
    pub(crate) has_state: bool,
    /// Whether each has one on each device.
    pub(crate) has_device_state: bool,
    /// Whether there are in-outs.
    pub(crate) has_in_outs: bool,
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
    /// The operand whose own dimensions a result has: the first, or that of an in-out.
    pub(crate) twin: u8,
    /// Whether the result is an in-out, which lies where its twin does.
    pub(crate) is_in_out: bool,
}

impl PlainBuffer {
    const NONE: PlainBuffer = PlainBuffer {
        dtype: 0,
        size: 0,
        align_mask: 0,
        rank: 0,
        packed: 0,
        param: 0,
        twin: 0,
        is_in_out: false,
    };

    fn new(params: &[Param], param: u8) -> PlainBuffer {
        let ty = &params[usize::from(param)].ty.buffer;
        PlainBuffer {
            dtype: ty.dtype as u8,
            size: ty.size as u8,
            align_mask: ty.align_mask as u8,
            rank: ty.rank as u8,
            packed: ty.packed as u8,
            param,
            ..PlainBuffer::NONE
        }
    }

    /// Dimensions without the packed ones.
    #[inline]
    pub(crate) fn own_rank(&self) -> usize {
        usize::from(self.rank - self.packed)
    }
}

impl Plan {
    /// Where the list of numbers begins: what comes before it, every plain call reads.
    pub(crate) const NUMBERS: usize = std::mem::offset_of!(Plan, numbers);

    pub(crate) fn new(callable: &Callable) -> Plan {
        let params = callable.params;
        assert!(params.len() <= MAX_PARAMS, "too many parameters");
        assert!(
            callable.dim_names.len() <= MAX_DIM_NAMES,
            "too many named dimensions: a callable has at most 64"
        );
        let any = |is: fn(&Param) -> bool| params.iter().any(is);
        let count = |is: fn(&Param) -> bool| params.iter().filter(|param| is(param)).count() as u8;
        let has_state = any(|param| matches!(param.ty.kind, Kind::State));
        let has_device_state = any(|param| matches!(param.ty.kind, Kind::PerDevice));
        let mut plan = Plan {
            num_operands: count(is_operand),
            num_results: count(is_result),
            num_scratch: count(is_scratch),
            num_statics: count(is_static),
            num_numbers: count(is_number),
            can_be_plain: false,
            has_packed: any(|param| !param.ty.packed.is_empty()),
            #[cfg(feature = "_cuda")]
            is_on_gpu: is_cuda(callable),
            plain: [PlainBuffer::NONE; MAX_PLAIN],
            numbers: [0; MAX_PARAMS],
            buffers: [0; 2 * MAX_PARAMS],
            slots: [0; MAX_PARAMS],
            has_kept: any(is_kept) || has_state || has_device_state,
            has_state,
            has_device_state,
            has_in_outs: any(is_in_out),
        };
        let of = |is: fn(&Param) -> bool| (0..).zip(params).filter(move |(_, param)| is(param));
        let buffers = of(is_operand).chain(of(is_result)).chain(of(is_scratch));
        for (entry, (param, _)) in plan.buffers.iter_mut().zip(buffers) {
            *entry = param;
        }
        let mut numbers: Vec<_> = of(is_number).collect();
        numbers.sort_by_key(|(_, param)| param.name);
        for (entry, (param, _)) in plan.numbers.iter_mut().zip(numbers) {
            *entry = param;
        }
        for (index, entry) in plan.slots[..params.len()].iter_mut().enumerate() {
            *entry = slot(params, index);
        }
        plan.set_plain(params);
        plan
    }

    fn set_plain(&mut self, params: &[Param]) {
        let num_buffers = self.num_operands() + self.num_results();
        let has_room = 0 < self.num_operands && num_buffers <= MAX_PLAIN;
        let has_more = self.has_kept
            || self.num_scratch > 0
            || params
                .iter()
                .any(|param| param.dims.is_some() || param.ty.buffer.rank > u16::from(u8::MAX));
        if !has_room || has_more {
            return;
        }
        for (entry, &param) in self.plain.iter_mut().zip(&self.buffers[..num_buffers]) {
            *entry = PlainBuffer::new(params, param);
        }
        let (operands, results) = self.plain.split_at_mut(usize::from(self.num_operands));
        self.can_be_plain = true;
        for result in &mut results[..usize::from(self.num_results)] {
            let source = operands.iter().position(|o| o.param == result.param);
            result.is_in_out = source.is_some();
            result.twin = source.unwrap_or(0) as u8;
            // An output of another rank than the first array's never has its shape.
            let twin = &operands[usize::from(result.twin)];
            self.can_be_plain &= twin.own_rank() == result.own_rank();
        }
    }

    /// Whether it runs on a GPU.
    #[inline]
    pub(crate) fn is_on_gpu(&self) -> bool {
        #[cfg(feature = "_cuda")]
        return self.is_on_gpu;
        #[cfg(not(feature = "_cuda"))]
        false
    }

    /// The slot of a parameter.
    #[inline]
    pub(crate) fn slot(&self, index: usize) -> u8 {
        self.slots[index]
    }

    /// The parameters that are read from the frame as numbers, sorted by name.
    #[inline]
    pub(crate) fn numbers(&self) -> &[u8] {
        &self.numbers[..usize::from(self.num_numbers)]
    }

    /// The parameters of the operands.
    pub(crate) fn operand_params(&self) -> &[u8] {
        &self.buffers[..self.num_operands()]
    }

    /// The parameters of the results, the hidden ones included.
    pub(crate) fn result_params(&self) -> &[u8] {
        &self.buffers[self.num_operands()..][..self.num_all_results()]
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
fn slot(params: &[Param], index: usize) -> u8 {
    let param = &params[index];
    let count = |params: &[Param], is: fn(&Param) -> bool| {
        params.iter().filter(|param| is(param)).count() as u8
    };
    let before = &params[..index];
    match param.ty.kind {
        Kind::Array => count(before, is_operand),
        Kind::ArrayMut => count(before, is_result),
        Kind::Scratch => count(params, is_result) + count(before, is_scratch),
        Kind::Static if is_kept(param) => count(before, is_kept),
        Kind::Static => number_slot(params, param.name),
        Kind::Context | Kind::State | Kind::PerDevice => 0,
    }
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
fn number_slot(params: &[Param], name: &str) -> u8 {
    let is_before = |param: &&Param| is_static(param) && param.name < name;
    let before = params.iter().filter(is_before).count() as u8;
    if BATCH < name {
        before | AFTER_OWN
    } else {
        before
    }
}

fn is_in_out(param: &Param) -> bool {
    is_result(param) && !is_output(param)
}

fn is_static(param: &Param) -> bool {
    matches!(param.ty.kind, Kind::Static)
}

/// Whether a static attribute is read from the frame.
fn is_number(param: &Param) -> bool {
    is_static(param) && !is_kept(param)
}

/// Whether a static attribute must be decoded into memory of its own: all but numbers
/// that one int64 carries.
pub(crate) fn is_kept(param: &Param) -> bool {
    match param.ty.value {
        Some(StaticType::Number(DataType::C128, Length::One)) => true,
        Some(StaticType::Number(_, Length::One)) | None => false,
        Some(_) => true,
    }
}
