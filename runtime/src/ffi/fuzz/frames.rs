//! Call frames: a handler makes exactly the call that the model makes, or refuses it and leaves
//! all memory as it was.

use super::super::host::{self, Context};
use super::super::host_frame::{AttrSpec, BufferSpec, FrameSpec};
use super::super::sys;
use super::functions::{FUNCTIONS, Function};
use super::model::Site;
use crate::dtype::DataType;
use crate::fuzzing::choices::Choices;
use crate::signature::{Kind, Length, Param, StaticType};
use std::ptr;

const WORDS: usize = 1024;

/// Memory for all buffers of a frame, so that they can meet; on the heap, reached by one pointer.
struct Arena(*mut u64);

impl Arena {
    fn new() -> Arena {
        let words = (0..WORDS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Arena(Box::into_raw(words.collect::<Box<[u64]>>()).cast())
    }

    fn base(&self) -> *mut u8 {
        self.0.cast()
    }

    fn copy(&self) -> Vec<u8> {
        // SAFETY: the memory is there, and nobody writes to it.
        unsafe { std::slice::from_raw_parts(self.base(), 8 * WORDS) }.to_vec()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: it was a box of so many words.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(self.0, WORDS)) });
    }
}

/// A call site and a few calls of it.
pub fn frames(bytes: &[u8]) {
    check_one(&mut Choices::new(bytes), &mut [0; 5]);
}

pub(crate) fn check_one(choices: &mut Choices<'_>, seen: &mut [u64; 5]) {
    for outcome in check(choices) {
        seen[outcome as usize] += 1;
    }
}

#[derive(Clone, Copy)]
enum Seen {
    NoSite,
    Refused,
    Ran,
    Failed,
    Outside,
}

fn check(choices: &mut Choices) -> Vec<Seen> {
    let function = choices.pick(&FUNCTIONS);
    let table = host::table(choices.pick(&host::MINOR_VERSIONS));
    let context = Context::new();
    let (site, attrs) = site(function, choices);
    let mut frame = FrameSpec::new(sys::stage::INSTANTIATE);
    frame.attrs = attrs.clone();
    // SAFETY: there are no buffers.
    let made = unsafe { frame.call(function.instantiate, table, &context) };
    // Some operand must have the axes of a batch.
    let is_right = site.batch.is_none() || site.batch_rank() > 0;
    assert_eq!(made.is_ok(), is_right, "{attrs:?}: {made:?}");
    if !is_right {
        return vec![Seen::NoSite];
    }
    let arena = Arena::new();
    let mut last = None;
    let mut seen = Vec::new();
    for _ in 0..1 + choices.below(4) {
        let mut frame = match last.take() {
            Some(last) if choices.below(2) == 0 => elsewhere(last, &arena, choices),
            _ => self::frame(&site, &arena, choices),
        };
        frame.stage = sys::stage::EXECUTE;
        frame.attrs = attrs.clone();
        last = Some(frame.clone());
        seen.push(execute(
            function, &site, table, &context, frame, &arena, choices,
        ));
    }
    seen
}

fn execute(
    function: Function,
    site: &Site,
    table: &sys::Api,
    context: &Context,
    mut frame: FrameSpec,
    arena: &Arena,
    choices: &mut Choices,
) -> Seen {
    let mut memory = arena.copy();
    let is_sound = site.is_sound(&frame);
    let damage = if is_sound && choices.one_in(30) {
        1 + choices.below(6)
    } else {
        0
    };
    let mut expected = None;
    if is_sound && damage == 0 {
        let Some(outcome) = site.run(&frame, arena.base().addr(), &mut memory) else {
            // XLA would have told the truth.
            return Seen::Outside;
        };
        expected = Some(outcome);
    }
    let spec = frame.clone();
    let error = frame.with_frame(table, context, |frame| {
        let is_damaged = damage > 0 && spoil(frame, damage);
        // SAFETY: the frame is right, with buffers in the arena, or wrong in a way that the handler
        // must notice before it looks at them.
        (damage == 0 || is_damaged).then(|| unsafe { (function.execute)(frame) })
    });
    let Some(error) = error else {
        return Seen::Outside;
    };
    // SAFETY: the handler ran with a table of `host`.
    let got = unsafe { host::take_error(error) };
    let name = site.callable.name;
    if let Some(failure) = &got {
        let start = format!("jax_callable.{name}: ");
        assert!(failure.message.starts_with(&start), "{failure:?}");
    }
    let text = || format!("{name}: {got:?} but {expected:?} for {spec:?}, damage {damage}");
    assert_eq!(
        got.is_none(),
        matches!(expected, Some(Ok(()))),
        "{}",
        text()
    );
    if let (Some(failure), Some(Err(_))) = (&got, &expected) {
        assert!(failure.message.ends_with("as it happens"), "{}", text());
    }
    assert!(arena.copy() == memory, "other memory: {}", text());
    match (got, expected) {
        (None, _) => Seen::Ran,
        (_, Some(_)) => Seen::Failed,
        _ => Seen::Refused,
    }
}

/// A call site: its attributes in both forms.
fn site(function: Function, choices: &mut Choices) -> (Site, Vec<(String, AttrSpec)>) {
    let callable = function.callable;
    let mut site = Site {
        callable,
        statics: Vec::new(),
        numbers: Vec::new(),
        batch: None,
        outputs_given: choices.one_in(8),
    };
    let mut attrs = Vec::new();
    for (index, param) in callable.statics() {
        let (spec, bytes) = match param.ty.value.unwrap() {
            StaticType::Str => {
                let text = String::from_utf8_lossy(choices.bytes(9)).into_owned();
                (AttrSpec::Str(text.clone()), text.into_bytes())
            }
            StaticType::Number(dtype, Length::One) => {
                let size = dtype.size();
                let number = match choices.below(8) {
                    0..6 => choices.below(4) as i64,
                    6 => choices.number(),
                    _ => choices.pick(&[-1, 255, 1 << 31, i64::MAX, i64::MIN]),
                };
                let bytes = number.to_le_bytes()[..size].to_vec();
                let mut word = [0; 8];
                word[..size].copy_from_slice(&bytes);
                // As the type has it, by value.
                let (number, value) = match dtype {
                    DataType::S32 => (i64::from(number as i32), i128::from(number as i32)),
                    _ => (
                        i64::from_le_bytes(word),
                        i128::from(u64::from_le_bytes(word)),
                    ),
                };
                site.numbers.push((index, value));
                (AttrSpec::I64(number), bytes)
            }
            StaticType::Number(..) => {
                let list: Vec<i16> = choices
                    .bytes(9)
                    .iter()
                    .map(|&b| i16::from(b) - 100)
                    .collect();
                let words = list.iter().map(|&value| i64::from(value)).collect();
                (
                    AttrSpec::I64Array(words),
                    list.iter().flat_map(|v| v.to_le_bytes()).collect(),
                )
            }
        };
        attrs.push((param.name.to_owned(), spec));
        site.statics.push(bytes);
    }
    let num_operands = callable.operands().count();
    if num_operands > 0 && choices.below(3) == 1 {
        let rank = 1 + choices.below(2);
        let batch: Vec<Option<Vec<bool>>> = callable
            .operands()
            .map(|(_, param)| match choices.below(8) {
                0 => None,
                dice => Some(
                    (0..rank)
                        .map(|_| param.in_out || dice > 3 || choices.below(2) == 0)
                        .collect(),
                ),
            })
            .collect();
        let text: Vec<String> = batch
            .iter()
            .map(|axes| {
                let digits = |axes: &Vec<bool>| {
                    axes.iter()
                        .map(|&own| if own { '1' } else { '0' })
                        .collect()
                };
                axes.as_ref().map_or("-".to_owned(), digits)
            })
            .collect();
        attrs.push(("jc.batch".to_owned(), AttrSpec::Str(text.join(","))));
        site.batch = Some(batch);
    }
    if site.outputs_given {
        attrs.push((
            "jc.output_dims".to_owned(),
            AttrSpec::Str("call".to_owned()),
        ));
    }
    (site, attrs)
}

/// A frame that is right more often than not.
fn frame(site: &Site, arena: &Arena, choices: &mut Choices) -> FrameSpec {
    let callable = site.callable;
    let rank = site.batch_rank();
    let mut frame = FrameSpec::new(sys::stage::EXECUTE);
    let names: Vec<i64> = callable
        .dim_names
        .iter()
        .map(|_| choices.pick(&[2, 1, 3, 2, 0]))
        .collect();
    let free: [i64; 2] = std::array::from_fn(|_| choices.pick(&[2, 1, 3, 2, 0]));
    let sizes: Vec<i64> = (0..rank).map(|_| choices.pick(&[2, 1, 3, 2, 0])).collect();
    let mut place = 0;
    let mut owns: Vec<Vec<i64>> = Vec::new();
    let mut buffer = |param: &Param, leading: Vec<i64>, own: Vec<i64>, choices: &mut Choices| {
        let packed = param.ty.packed.iter().map(|&dim| dim as i64);
        let mut dims: Vec<i64> = leading.into_iter().chain(own).chain(packed).collect();
        let dtype = param.ty.dtype.unwrap();
        let size = dims
            .iter()
            .try_fold(dtype.size() as i64, |size, &dim| size.checked_mul(dim));
        let mut dtype = dtype as i32;
        if choices.one_in(16) {
            match choices.below(6) {
                0 => dtype = choices.pick(&[0, 1, 2, 4, 6, 9, 11, 12, 16, 23, 99, -1]),
                1 => dims.push(1),
                2 => drop(dims.pop()),
                _ => {
                    let axis = choices.below(dims.len().max(1));
                    let other = choices.pick(&[0, 1, 2, 3, 4, -1, 1 << 62, i64::MAX, i64::MIN]);
                    dims.get_mut(axis).into_iter().for_each(|dim| *dim = other);
                }
            }
        }
        let data = match choices.below(40) {
            1 => ptr::null_mut(),
            2 => arena.base().wrapping_add(choices.below(256)),
            3 => arena.base().wrapping_add(choices.below(256) * 16),
            _ => arena.base().wrapping_add(place),
        };
        place += size
            .map_or(0, |size| size.clamp(0, 4096) as usize)
            .next_multiple_of(16)
            + 16;
        BufferSpec { dtype, dims, data }
    };
    for (i, (_, param)) in callable.operands().enumerate() {
        let own: Vec<i64> = match param.dims {
            Some(dims) => dims
                .iter()
                .map(|dim| match *dim {
                    crate::signature::Dim::Name(name) => names[name],
                    _ => free[0],
                })
                .collect(),
            None => free[..param.ty.rank].to_vec(),
        };
        let axes = site.batch.as_ref().and_then(|batch| batch[i].as_ref());
        let leading = axes.into_iter().flatten().zip(&sizes);
        let leading = leading
            .map(|(&is_own, &size)| if is_own { size } else { 1 })
            .collect();
        frame
            .args
            .push(buffer(param, leading, own.clone(), choices));
        owns.push(own);
    }
    let known: Vec<&[i64]> = owns.iter().map(Vec::as_slice).collect();
    for (index, param) in callable.results().chain(callable.scratch()) {
        let source = callable.operands().position(|(i, _)| i == index);
        let own: Vec<i64> = match (source, param.dims) {
            (Some(source), _) => owns[source].clone(),
            (_, Some(dims)) => dims
                .iter()
                .map(|dim| site.eval(dim, &known).map_or(1, |size| size as i64))
                .collect(),
            (None, None) => {
                let first = owns.first().filter(|first| first.len() == param.ty.rank);
                first.map_or(free[..param.ty.rank].to_vec(), Clone::clone)
            }
        };
        let is_scratch = param.ty.kind == Kind::Scratch;
        let leading = if is_scratch {
            Vec::new()
        } else {
            sizes.clone()
        };
        let mut result = buffer(param, leading, own, choices);
        if let Some(source) = source.filter(|_| choices.below(5) != 1) {
            result.data = frame.args[source].data;
        } else if choices.one_in(20) {
            let all: Vec<_> = frame
                .args
                .iter()
                .chain(&frame.rets)
                .map(|b| b.data)
                .collect();
            result.data = all.get(choices.below(8)).copied().unwrap_or(result.data);
        }
        frame.rets.push(result);
    }
    if choices.one_in(60) {
        frame.args.pop();
    }
    if choices.one_in(60) {
        let extra = frame.rets[0].clone();
        frame.rets.push(extra);
    }
    frame
}

/// The same shapes, now and then with a buffer at another place.
fn elsewhere(mut frame: FrameSpec, arena: &Arena, choices: &mut Choices) -> FrameSpec {
    let others: Vec<_> = frame
        .args
        .iter()
        .chain(&frame.rets)
        .map(|b| b.data)
        .collect();
    let mut buffers: Vec<_> = frame.args.iter_mut().chain(&mut frame.rets).collect();
    let moved = choices.below(buffers.len());
    let data = &mut buffers[moved].data;
    match choices.below(6) {
        1 => *data = ptr::null_mut(),
        2 => *data = data.wrapping_add(1),
        3 => *data = choices.pick(&others),
        4 => *data = arena.base().wrapping_add(7 * 1024),
        _ => {}
    }
    frame
}

/// Spoils a frame in a way that no `FrameSpec` has; false if this one has nothing to spoil.
fn spoil(frame: &mut sys::CallFrame, how: usize) -> bool {
    let list = if how.is_multiple_of(2) {
        &mut frame.args
    } else {
        &mut frame.rets
    };
    if list.size == 0 {
        return false;
    }
    match how {
        1 => list.size = -1,
        2 => list.size = i64::MAX,
        3 => list.buffers = ptr::null_mut(),
        4 => list.types = ptr::null_mut(),
        // SAFETY: the lists are the test's own and not empty.
        5 => unsafe { *list.types = 7 },
        // SAFETY: as above.
        _ => unsafe { *list.buffers = ptr::null_mut() },
    }
    true
}
