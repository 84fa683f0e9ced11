//! Random frames: the short cut against the full check, and both against a plain model.

use super::super::attrs::Attrs;
use super::super::buffer::Ranges;
use super::super::frame::Call;
use super::super::place::Place;
use super::super::plain;
use super::super::slot;
use super::super::state::CallSite;
use super::super::values::Values;
use super::*;
use crate::random::Random;
use crate::signature::{Callable, Kind, Param};
use std::ptr;

#[jax_callable]
fn copies(x: cpu::Array<f32, 2>, mut y: cpu::ArrayMut<f32, 2>, mut z: cpu::ArrayMut<f32, 2>) {
    y.copy_from_slice(&x);
    z.copy_from_slice(&x);
}

#[jax_callable(in_out = ("y", "z"))]
fn in_outs(
    z1: u16,
    a: f32,
    x: cpu::Array<f32, 1>,
    b: i64,
    mut y: cpu::ArrayMut<f32, 1>,
    mut z: cpu::ArrayMut<i16, 1>,
    mut w: cpu::ArrayMut<f64, 1>,
) {
    let _ = (z1, a, b, x);
    y.fill(0.0);
    z.fill(0);
    w.fill(0.0);
}

#[jax_callable(in_out = "y")]
fn packed(
    x: cpu::Array<[f32; 2], 1>,
    mut y: cpu::ArrayMut<[[f32; 2]; 1], 1>,
    mut z: cpu::ArrayMut<f32, 1>,
) {
    let _ = x;
    y.fill([[0.0; 2]]);
    z.fill(0.0);
}

#[jax_callable]
fn scalars(b: i32, x: cpu::Array<f32, 0>, y: cpu::Array<f32, 1>, mut z: cpu::ArrayMut<f32, 0>) {
    let _ = (b, y);
    z[[]] = x[[]];
}

#[jax_callable]
fn another_rank(x: cpu::Array<f32, 1>, mut y: cpu::ArrayMut<f32, 2>) {
    let _ = x;
    y.fill(0.0);
}

#[jax_callable(in_out = "y")]
fn with_scratch(
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(n)] mut w: cpu::Scratch<[f32; 2], 1>,
    mut y: cpu::ArrayMut<f64, 1>,
    #[dims(n)] mut v: cpu::Scratch<i16, 1>,
) {
    let _ = x;
    w.fill([0.0; 2]);
    y.fill(0.0);
    v.fill(0);
}

/// Memory for all buffers of a frame, so that they can meet.
type Arena = [u64; 256];

#[test]
fn the_short_cut_accepts_only_what_the_full_check_accepts() {
    let [_, in_full, at_once] = compare::<copies::Def>();
    assert!(in_full > 0 && at_once > 0, "{in_full} {at_once}");
    let [_, in_full, at_once] = compare::<in_outs::Def>();
    assert!(in_full > 0 && at_once > 0, "{in_full} {at_once}");
    let [_, in_full, at_once] = compare::<packed::Def>();
    assert!(in_full > 0 && at_once > 0, "{in_full} {at_once}");
    let [_, in_full, at_once] = compare::<scalars::Def>();
    assert!(in_full > 0 && at_once > 0, "{in_full} {at_once}");
    // Its sizes are for the full check.
    let [_, in_full, at_once] = compare::<with_scratch::Def>();
    assert!(in_full > 0 && at_once == 0, "{in_full} {at_once}");
    // Only right where its shape is chosen for the call.
    let [_, in_full, at_once] = compare::<another_rank::Def>();
    assert!(in_full > 0 && at_once == 0, "{in_full} {at_once}");
}

/// What was found right at a call site before must decide as the full check does.
#[test]
fn what_is_known_against_the_full_check() {
    for counts in [
        know::<copies::Def>(),
        know::<in_outs::Def>(),
        know::<packed::Def>(),
        know::<scalars::Def>(),
        know::<with_scratch::Def>(),
    ] {
        let [others, refused, as_known] = counts;
        assert!(others > 50 && refused > 50 && as_known > 50, "{counts:?}");
    }
}

/// Of frames given to call sites that know an earlier one: how many have other shapes than that,
/// how many its shapes and are refused for where they are, and how many are as that.
fn know<D: Definition>() -> [u32; 3] {
    let callable = D::CALLABLE;
    let table = host::table(3);
    let mut seen = [0; 3];
    for seed in 1..=4_000 {
        let mut random = Random(0xd134_2543_de82_ef95_u64.wrapping_mul(seed));
        let mut arena: Arena = std::array::from_fn(|i| i as u64);
        let mut earlier = frame(callable, &mut random, &mut arena);
        let mut later = match random.below(4) {
            0 => frame(callable, &mut random, &mut arena),
            1 => earlier.clone(),
            _ => elsewhere(&earlier, &mut random),
        };
        let dice = random.0;
        let check = |spec: &mut FrameSpec, site: Option<&CallSite>| {
            spec.with_frame(table, &Context::new(), |frame| {
                damage(frame, &mut Random(dice));
                let mut ranges = Ranges::new();
                let known = site.and_then(|site| site.known.get());
                // SAFETY: the table is a static, and the frame is right, or wrong in ways that
                // must be noticed.
                unsafe {
                    let is_known = known.is_some_and(|known| known.is_of(frame, &mut ranges));
                    let mut call = Call::new(slot::of::<D>().get(), frame, Place::HOST);
                    call.site = site;
                    (is_known, call.check().map_err(|error| error.to_string()))
                }
            })
        };
        let site = earlier.with_frame(table, &Context::new(), |frame| {
            // SAFETY: the frame is alive during the call.
            CallSite::decode(callable, unsafe { Attrs::new(&frame.attrs) })
        });
        let site = site.unwrap();
        if check(&mut earlier, Some(&site)).1.is_err() {
            continue;
        }
        let (is_known, got) = check(&mut later, Some(&site));
        let (_, expected) = check(&mut later, None);
        let name = callable.name;
        assert_eq!(got, expected, "{name} {seed}: {later:?} after {earlier:?}");
        seen[usize::from(is_known) + usize::from(is_known && got.is_ok())] += 1;
    }
    seen
}

/// The same shapes, with a buffer at no address, a crooked one, or that of another.
fn elsewhere(frame: &FrameSpec, random: &mut Random) -> FrameSpec {
    let mut frame = frame.clone();
    let others: Vec<_> = frame
        .args
        .iter()
        .chain(&frame.rets)
        .map(|b| b.data)
        .collect();
    let mut buffers: Vec<_> = frame.args.iter_mut().chain(&mut frame.rets).collect();
    let moved = random.below(buffers.len());
    buffers[moved].data = match random.below(4) {
        0 => ptr::null_mut(),
        1 => buffers[moved].data.wrapping_add(1),
        _ => random.pick(&others),
    };
    frame
}

/// How many frames were refused, accepted in full and accepted by the short cut.
fn compare<D: Definition>() -> [u32; 3] {
    let callable = D::CALLABLE;
    let table = host::table(3);
    let mut seen = [0; 3];
    for seed in 1..=20_000 {
        let mut random = Random::new(seed);
        let mut arena: Arena = std::array::from_fn(|i| i as u64);
        let mut frame = frame(callable, &mut random, &mut arena);
        let outputs_given = random.one_in(20);
        if outputs_given {
            let value = AttrSpec::Str("call".into());
            frame.attrs.push(("jc.output_dims".into(), value));
        }
        let context = Context::new();
        let mut site = FrameSpec::new(sys::stage::INSTANTIATE);
        site.attrs = frame.attrs.clone();
        // SAFETY: there are no buffers.
        unsafe { site.call(entry::handler::<D>, table, &context) }.unwrap();

        let sound = is_sound(callable, &frame, outputs_given);
        let spec = frame.clone();
        let operands: Vec<_> = if sound {
            spec.args.iter().map(read).collect()
        } else {
            Vec::new()
        };
        let (is_damaged, plain, checked) = frame.with_frame(table, &context, |frame| {
            let is_damaged = sound && damage(frame, &mut random);
            // SAFETY: the table is a static, and the frame is right, or wrong in ways that
            // must be noticed.
            let (plain, checked) = unsafe {
                let values = Values::new();
                let plain = plain::read(slot::of::<D>().get(), frame, &values);
                let mut call = Call::new(slot::of::<D>().get(), frame, Place::HOST);
                let checked = call.check();
                if plain && checked.is_ok() {
                    assert_same(&call, &values);
                }
                (plain, checked)
            };
            (
                is_damaged,
                plain,
                checked.map_err(|error| error.to_string()),
            )
        });
        let case = format!("{} {seed}: {checked:?} for {spec:?}", callable.name);
        assert_eq!(checked.is_ok(), sound && !is_damaged, "{case}");
        assert!(!plain || (checked.is_ok() && !outputs_given), "{case}");
        if checked.is_ok() {
            // Inputs stay, and in-outs' results become their operands.
            for (operand, (index, _)) in callable.operands().enumerate() {
                let from = &spec.args[operand];
                let result = callable.results().position(|(i, _)| i == index);
                let to = result.map_or(from, |result| &spec.rets[result]);
                assert_eq!(read(to), operands[operand], "{case}");
                assert!(!plain || to.data == from.data, "{case}");
            }
        }
        seen[usize::from(plain) + usize::from(checked.is_ok())] += 1;
    }
    seen
}

/// That the short cut reads what the full check leads to.
///
/// # Safety
/// The call was checked, and the values are those of its parameters.
unsafe fn assert_same(call: &Call<'_>, values: &Values) {
    let expected = Values::new();
    call.read_numbers(&expected).unwrap();
    call.read_views(&expected);
    for (i, param) in call.callable().params.iter().enumerate() {
        // SAFETY: the caller's promise; without kept attributes all are arrays or numbers.
        unsafe {
            match param.ty.kind {
                Kind::Static => assert_eq!(values.word(i), expected.word(i), "{}", param.name),
                _ => assert_eq!(values.view(i), expected.view(i), "{}", param.name),
            }
        }
    }
}

/// A frame that is right more often than not.
fn frame(callable: &Callable, random: &mut Random, arena: &mut Arena) -> FrameSpec {
    let mut frame = FrameSpec::new(sys::stage::EXECUTE);
    frame.attrs = callable
        .statics()
        .map(|(_, param)| {
            let value = AttrSpec::I64(random.below(1 << 16) as i64);
            (param.name.to_owned(), value)
        })
        .collect();
    let own: [i64; 2] = std::array::from_fn(|_| random.pick(&[0, 1, 2, 2, 3]));
    let base = arena.as_mut_ptr().cast::<u8>();
    let mut place = 0;
    let mut buffer = |param: &Param, random: &mut Random| {
        let mut dims: Vec<i64> = own[..param.ty.rank].to_vec();
        dims.extend(param.ty.packed.iter().map(|&dim| dim as i64));
        let mut dtype = param.ty.dtype.unwrap() as i32;
        if random.one_in(12) {
            match random.below(5) {
                0 => dtype = random.pick(&[0, 1, 6, 11, 12, 16, 23, 99, -1]),
                1 => dims.push(1),
                2 => drop(dims.pop()),
                _ => {
                    let axis = random.below(dims.len().max(1));
                    if let Some(dim) = dims.get_mut(axis) {
                        *dim = random.pick(&[0, 1, 2, 3, -1, 1 << 62, i64::MAX]);
                    }
                }
            }
        }
        // Apart from each other, mostly; 64 bytes are enough for 3 * 3 * f32, or 3 * f64.
        let data = match random.below(40) {
            0 => ptr::null_mut(),
            1 => base.wrapping_add(random.below(1024)),
            2 => base.wrapping_add(random.below(16) * 16),
            _ => base.wrapping_add(place),
        };
        place += 64;
        BufferSpec { dtype, dims, data }
    };
    frame.args = callable
        .operands()
        .map(|(_, p)| buffer(p, random))
        .collect();
    for (index, param) in callable.results().chain(callable.scratch()) {
        let mut result = buffer(param, random);
        let source = callable.operands().position(|(i, _)| i == index);
        if let Some(source) = source.filter(|_| !random.one_in(5)) {
            result.data = frame.args[source].data;
        } else if let (Some(earlier), true) = (frame.rets.last(), random.one_in(10)) {
            result.data = earlier.data;
        }
        frame.rets.push(result);
    }
    if random.one_in(60) {
        frame.args.pop();
    }
    if random.one_in(60) {
        let extra = frame.rets[0].clone();
        frame.rets.push(extra);
    }
    frame
}

/// Spoils a frame in a way that no `FrameSpec` has.
fn damage(frame: &mut sys::CallFrame, random: &mut Random) -> bool {
    if !random.one_in(40) {
        return false;
    }
    match random.below(6) {
        0 => frame.args.size = random.pick(&[-1, 0, i64::MAX]),
        1 => frame.rets.buffers = ptr::null_mut(),
        2 => frame.args.types = ptr::null_mut(),
        // SAFETY: the lists are the test's own and not empty.
        3 => unsafe { *frame.rets.types = 7 },
        // SAFETY: as above.
        4 => unsafe { *frame.rets.buffers = ptr::null_mut() },
        // SAFETY: as above; the entry is a buffer.
        _ => unsafe { (*(*frame.rets.buffers).cast::<sys::Buffer>()).rank -= 1 },
    }
    true
}

/// The rules once more, with nothing in mind but to be right.
fn is_sound(callable: &Callable, frame: &FrameSpec, outputs_given: bool) -> bool {
    let operands: Vec<_> = callable.operands().collect();
    let results: Vec<_> = callable.results().chain(callable.scratch()).collect();
    if frame.args.len() != operands.len() || frame.rets.len() != results.len() {
        return false;
    }
    let all = operands
        .iter()
        .chain(&results)
        .zip(frame.args.iter().chain(&frame.rets));
    for ((_, param), buffer) in all {
        let ty = &param.ty;
        let dtype = ty.dtype.unwrap();
        let Some((start, end)) = bytes(buffer, dtype.size()) else {
            return false;
        };
        let packed: Vec<_> = ty.packed.iter().map(|&dim| dim as i64).collect();
        if buffer.dtype != dtype as i32
            || buffer.dims.len() != ty.rank + packed.len()
            || !buffer.dims.ends_with(&packed)
            || (end > start && (start == 0 || start % dtype.size() as u128 != 0))
        {
            return false;
        }
    }
    let size = |param: &Param| param.ty.dtype.unwrap().size();
    for (r, (index, param)) in results.iter().enumerate() {
        let source = operands.iter().position(|(i, _)| i == index);
        let rank = param.ty.rank;
        let model = &frame.args[source.unwrap_or(0)].dims;
        let model = &model[..operands[source.unwrap_or(0)].1.ty.rank];
        let is_given = outputs_given && source.is_none() && param.ty.kind == Kind::ArrayMut;
        if model != &frame.rets[r].dims[..rank] && !is_given {
            return false;
        }
        let mine = bytes(&frame.rets[r], size(param)).unwrap();
        let others = operands
            .iter()
            .zip(&frame.args)
            .enumerate()
            .filter(|(i, _)| Some(*i) != source)
            .map(|(_, pair)| pair)
            .chain(results.iter().zip(&frame.rets).take(r));
        for ((_, other), buffer) in others {
            let theirs = bytes(buffer, size(other)).unwrap();
            let is_empty = |(start, end): (u128, u128)| start == end;
            if !is_empty(mine) && !is_empty(theirs) && mine.0 < theirs.1 && theirs.0 < mine.1 {
                return false;
            }
        }
    }
    true
}

/// The addresses of a buffer, if its shape is possible.
fn bytes(buffer: &BufferSpec, scalar: usize) -> Option<(u128, u128)> {
    let mut size = scalar as u128;
    for &dim in &buffer.dims {
        size = size.checked_mul(u128::try_from(dim).ok()?)?;
        // What came so far must fit too, or a zero at the end would hide it.
        u64::try_from(size).ok()?;
    }
    let start = buffer.data.addr() as u128;
    (size <= isize::MAX as u128).then_some((start, start + size))
}

/// The bytes of a sound buffer.
fn read(buffer: &BufferSpec) -> Vec<u8> {
    let scalar = DataType::from_xla(buffer.dtype).map_or(0, DataType::size);
    let size = bytes(buffer, scalar).map_or(0, |(start, end)| end - start);
    // SAFETY: a sound buffer lies in the arena, which is alive.
    (0..size as usize)
        .map(|i| unsafe { buffer.data.add(i).read() })
        .collect()
}
