//! What a call is, once more, with nothing in mind but to be right.

use super::super::host_frame::{BufferSpec, FrameSpec};
use super::functions::body;
use crate::Result;
use crate::dims::fuzz::model as eval;
use crate::signature::{Callable, Dim, DimOp, Kind, Param};

/// What a call site is made with.
pub(super) struct Site {
    pub(super) callable: &'static Callable,
    /// The static attributes, in the signature's order, as the body sees them.
    pub(super) statics: Vec<Vec<u8>>,
    /// Those that are integers, by the number of the parameter.
    pub(super) numbers: Vec<(usize, i128)>,
    /// For each operand its batch axes; none for all axes of a call that is no batch's.
    pub(super) batch: Option<Vec<Option<Vec<bool>>>>,
    pub(super) outputs_given: bool,
}

/// A buffer of a call that is right.
struct Buffer<'a> {
    start: usize,
    /// For the batch axes that the buffer has: whether elements differ there.
    axes: &'a [bool],
    leading: &'a [i64],
    own: &'a [i64],
    /// In bytes, of one batch element.
    size: usize,
}

impl Site {
    pub(super) fn batch_rank(&self) -> usize {
        let mut axes = self.batch.iter().flatten().flatten();
        axes.next().map_or(0, Vec::len)
    }

    /// The value of a dimension, given the own dimensions of operands.
    pub(super) fn eval(&self, dim: &Dim, operands: &[&[i64]]) -> Option<i128> {
        let params = || self.callable.operands().zip(operands);
        eval(dim, &|leaf| match *leaf {
            Dim::Name(name) => params().find_map(|((_, param), own)| {
                let axes = param.dims?.iter().zip(*own);
                let mut named = axes.filter(|(dim, _)| matches!(dim, Dim::Name(n) if *n == name));
                named.next().map(|(_, &size)| i128::from(size))
            }),
            Dim::Axis(param, axis) => params()
                .find(|((index, _), _)| *index == param)
                .map(|(_, own)| i128::from(own[axis])),
            Dim::Scalar(param) => {
                let number = self.numbers.iter().find(|(index, _)| *index == param);
                let number = number.map(|(_, value)| *value);
                number.filter(|&value| i64::try_from(value).is_ok())
            }
            Dim::Const(_) | Dim::Op(DimOp::Add, ..) | Dim::Op(..) => unreachable!("no leaf"),
        })
    }

    /// Whether a frame is one that the function may be called for, in memory that begins at `base`.
    pub(super) fn is_sound(&self, frame: &FrameSpec) -> bool {
        self.buffers(frame, 0).is_some_and(|(operands, results)| {
            self.shapes_are_right(frame, &operands, &results)
                && !self.overlaps(frame, &operands, &results)
        })
    }

    /// The operands, and the results with scratch; none if one is not as declared by itself.
    fn buffers<'a>(
        &'a self,
        frame: &'a FrameSpec,
        base: usize,
    ) -> Option<(Vec<Buffer<'a>>, Vec<Buffer<'a>>)> {
        const ALL: [bool; 32] = [true; 32];
        let rank = self.batch_rank();
        let operands = self.callable.operands().enumerate().map(|(i, (_, param))| {
            let axes = self.batch.as_ref().and_then(|axes| axes[i].as_deref());
            (param, axes.unwrap_or(&[]))
        });
        let results = self.callable.results().map(|(_, p)| (p, &ALL[..rank]));
        let scratch = self.callable.scratch().map(|(_, p)| (p, &ALL[..0]));
        let (operands, results): (Vec<_>, Vec<_>) =
            (operands.collect(), results.chain(scratch).collect());
        if operands.len() != frame.args.len() || results.len() != frame.rets.len() {
            return None;
        }
        let all = |params: Vec<(&Param, &'a [bool])>, specs: &'a [BufferSpec]| {
            let pairs = params.into_iter().zip(specs);
            pairs
                .map(|((param, axes), spec)| buffer(param, axes, spec, base))
                .collect::<Option<Vec<_>>>()
        };
        Some((all(operands, &frame.args)?, all(results, &frame.rets)?))
    }

    fn shapes_are_right(&self, frame: &FrameSpec, operands: &[Buffer], results: &[Buffer]) -> bool {
        let own: Vec<_> = operands.iter().map(|operand| operand.own).collect();
        let sizes = results[0].leading;
        let fits = |param: &Param, buffer: &Buffer| {
            let dims = param.dims.into_iter().flatten().zip(buffer.own);
            dims.into_iter()
                .all(|(dim, &size)| self.eval(dim, &own) == Some(i128::from(size)))
        };
        for ((_, param), operand) in self.callable.operands().zip(operands) {
            let leading = operand.leading.iter().zip(operand.axes).zip(sizes);
            let mut leading =
                leading.map(|((dim, is_own), size)| dim == if *is_own { size } else { &1 });
            let is_whole =
                operand.axes.len() == self.batch_rank() && operand.axes.iter().all(|axis| *axis);
            if !leading.all(|is_right| is_right)
                || !fits(param, operand)
                || (param.in_out && !is_whole)
            {
                return false;
            }
        }
        let params = self.callable.results().chain(self.callable.scratch());
        params
            .zip(results)
            .zip(&frame.rets)
            .all(|(((index, param), result), spec)| {
                let is_scratch = param.ty.kind == Kind::Scratch;
                if !is_scratch && result.leading != sizes {
                    return false;
                }
                if param.in_out {
                    let source = self
                        .callable
                        .operands()
                        .position(|(i, _)| i == index)
                        .unwrap();
                    return frame.args[source].dims == spec.dims;
                }
                if self.outputs_given && !is_scratch {
                    return true;
                }
                match param.dims {
                    Some(_) => fits(param, result),
                    None => own.first() == Some(&result.own),
                }
            })
    }

    /// Whether what is written is also something else.
    fn overlaps(&self, frame: &FrameSpec, operands: &[Buffer], results: &[Buffer]) -> bool {
        let end = |buffer: &Buffer, spec: &BufferSpec| buffer.start + whole(buffer, spec);
        let operands = || operands.iter().zip(&frame.args);
        let results = || results.iter().zip(&frame.rets);
        let params = self.callable.results().chain(self.callable.scratch());
        params
            .zip(results())
            .enumerate()
            .any(|(r, ((index, _), (result, spec)))| {
                let source = self.callable.operands().position(|(i, _)| i == index);
                let others = operands().enumerate().filter(|(i, _)| Some(*i) != source);
                let others = others.map(|(_, other)| other).chain(results().take(r));
                let mut others = others.filter(|(other, spec)| whole(other, spec) > 0);
                whole(result, spec) > 0
                    && others.any(|(other, other_spec)| {
                        result.start < end(other, other_spec) && other.start < end(result, spec)
                    })
            })
    }

    /// Makes a call that is right on a copy of the memory, which begins at `base`. None if a buffer
    /// is not in there, and it may not be made at all.
    pub(super) fn run(
        &self,
        frame: &FrameSpec,
        base: usize,
        memory: &mut [u8],
    ) -> Option<Result<()>> {
        let (operands, results) = self.buffers(frame, base)?;
        let all = || {
            operands
                .iter()
                .chain(&results)
                .zip(frame.args.iter().chain(&frame.rets))
        };
        let is_outside = |(buffer, spec): (&Buffer, &BufferSpec)| {
            let end = buffer.start.checked_add(whole(buffer, spec));
            whole(buffer, spec) > 0 && end.is_none_or(|end| end > memory.len())
        };
        if all().any(is_outside) {
            return None;
        }
        let params = self.callable.results().chain(self.callable.scratch());
        for ((index, param), (to, spec)) in params.zip(results.iter().zip(&frame.rets)) {
            let source = self.callable.operands().position(|(i, _)| i == index);
            let size = whole(to, spec);
            if let (true, Some(source)) = (param.in_out && size > 0, source) {
                let from = operands[source].start;
                memory.copy_within(from..from + size, to.start);
            }
        }
        let sizes: Vec<usize> = results[0]
            .leading
            .iter()
            .map(|&size| size as usize)
            .collect();
        Some(
            (0..sizes.iter().product()).try_for_each(|element| {
                self.run_element(element, &sizes, &operands, &results, memory)
            }),
        )
    }

    fn run_element(
        &self,
        element: usize,
        sizes: &[usize],
        operands: &[Buffer],
        results: &[Buffer],
        memory: &mut [u8],
    ) -> Result<()> {
        let place = |buffer: &Buffer| {
            // The batch's indices, the innermost first.
            let (mut rest, mut position, mut stride) = (element, 0, 1);
            for (axis, size) in sizes.iter().enumerate().rev() {
                let index = rest % size;
                rest /= size;
                if let (Some(true), Some(&dim)) = (buffer.axes.get(axis), buffer.leading.get(axis))
                {
                    position += index * stride;
                    stride *= dim as usize;
                }
            }
            if buffer.size == 0 {
                0..0
            } else {
                buffer.start + position * buffer.size..buffer.start + (position + 1) * buffer.size
            }
        };
        let reads: Vec<Vec<u8>> = self
            .callable
            .operands()
            .zip(operands)
            .map(|((index, param), operand)| {
                let result = self.callable.results().position(|(i, _)| i == index);
                let seen = result
                    .filter(|_| param.in_out)
                    .map_or(operand, |result| &results[result]);
                memory[place(seen)].to_vec()
            })
            .collect();
        let mut writes: Vec<Vec<u8>> = results
            .iter()
            .map(|result| memory[place(result)].to_vec())
            .collect();
        let statics: Vec<&[u8]> = self.statics.iter().map(Vec::as_slice).collect();
        let reads: Vec<&[u8]> = reads.iter().map(Vec::as_slice).collect();
        let mut outs: Vec<&mut [u8]> = writes.iter_mut().map(Vec::as_mut_slice).collect();
        body(&statics, &reads, &mut outs)?;
        for (result, bytes) in results.iter().zip(&writes) {
            memory[place(result)].copy_from_slice(bytes);
        }
        Ok(())
    }
}

/// A buffer by itself, if it is one that the parameter may have.
fn buffer<'a>(
    param: &Param,
    axes: &'a [bool],
    spec: &'a BufferSpec,
    base: usize,
) -> Option<Buffer<'a>> {
    let ty = &param.ty;
    let scalar = ty.dtype.unwrap().size();
    let packed: Vec<_> = ty.packed.iter().map(|&dim| dim as i64).collect();
    let rank = axes.len() + ty.rank + packed.len();
    if spec.dtype != ty.dtype.unwrap() as i32
        || spec.dims.len() != rank
        || !spec.dims.ends_with(&packed)
    {
        return None;
    }
    let mut size = scalar as u128;
    for &dim in &spec.dims {
        size = size.checked_mul(u128::try_from(dim).ok()?)?;
        // What came so far must fit too, or a zero at the end would hide it.
        u64::try_from(size).ok()?;
    }
    let address = spec.data.addr();
    if size > isize::MAX as u128 || (size > 0 && (address == 0 || !address.is_multiple_of(scalar)))
    {
        return None;
    }
    let (leading, own) = spec.dims.split_at(axes.len());
    let inner = own.iter().map(|&dim| dim as usize);
    Some(Buffer {
        start: address.wrapping_sub(base),
        axes,
        leading,
        own: &own[..ty.rank],
        size: if size == 0 {
            0
        } else {
            inner.product::<usize>() * scalar
        },
    })
}

/// The size of a whole buffer.
fn whole(buffer: &Buffer, spec: &BufferSpec) -> usize {
    let batch = spec.dims[..buffer.leading.len()]
        .iter()
        .map(|&dim| dim as usize);
    if buffer.size == 0 {
        0
    } else {
        batch.product::<usize>() * buffer.size
    }
}
