//! Attributes as bytes: decoded to exactly what they hold, or refused; never read past their end.

use super::super::entry;
use super::super::host::{self, Context};
use super::super::host_frame::{BufferSpec, FrameSpec};
use super::super::sys::{self, attr_type};
use crate::dtype::DataType;
use crate::fuzzing::choices::Choices;
use crate::prelude::*;
use std::ffi::c_void;
use std::ptr;

/// Attributes of every kind, and their bytes as the body sees them.
#[jax_callable(output_dims(out = 80))]
#[expect(clippy::too_many_arguments, reason = "one of each kind")]
fn fuzz_attributes(
    a_f32: f32,
    b_bool: bool,
    c_i8: i8,
    d_u64: u64,
    e_text: &str,
    f_list: &[i16],
    g_three: [u8; 3],
    h_bools: &[bool],
    mut out: cpu::ArrayMut<u8, 1>,
) {
    let mut all = a_f32.to_bits().to_le_bytes().to_vec();
    all.extend([u8::from(b_bool), c_i8 as u8]);
    all.extend(d_u64.to_le_bytes());
    all.extend(e_text.as_bytes());
    all.push(0);
    all.extend(f_list.iter().flat_map(|value| value.to_le_bytes()));
    all.push(0);
    all.extend(g_three);
    all.extend(h_bools.iter().map(|&value| u8::from(value)));
    all.resize(80, 0xee);
    out.copy_from_slice(&all);
}

type Def = fuzz_attributes::Def;

const S64: i32 = DataType::S64 as i32;
const U8: i32 = DataType::U8 as i32;

const NAMES: [&str; 8] = [
    "a_f32", "b_bool", "c_i8", "d_u64", "e_text", "f_list", "g_three", "h_bools",
];

/// An attribute whose bytes have allocations of their own, so that a checker of memory sees who
/// reads past the end.
struct Raw {
    name: Box<[u8]>,
    ty: i32,
    value: Value,
}

enum Value {
    Null,
    Scalar(i32, Option<Box<[u8; 8]>>),
    Array(i32, usize, Data),
    Text(Box<[u8]>),
}

enum Data {
    Null,
    Words(Box<[i64]>),
    /// The same, not aligned.
    Crooked(Box<[i64]>),
    Bytes(Box<[u8]>),
}

/// The attributes of a call site.
pub fn attributes(bytes: &[u8]) {
    check(&mut Choices::new(bytes));
}

#[cfg(test)]
pub(crate) fn check_one(choices: &mut Choices<'_>, seen: &mut [u64; 2]) {
    seen[usize::from(check(choices))] += 1;
}

/// Whether they were decoded.
fn check(choices: &mut Choices) -> bool {
    let mut raws: Vec<Raw> = NAMES.iter().map(|name| attribute(name, choices)).collect();
    match choices.below(40) {
        1 => drop(raws.remove(choices.below(8))),
        2 => raws.swap(choices.below(8), choices.below(8)),
        3 => raws.push(attribute("z", choices)),
        4 => raws[choices.below(8)].name = choices.bytes(6).into(),
        _ => {}
    }
    let expected = expected(&raws);
    let context = Context::new();
    let run = |handler: sys::Handler, stage, out: &mut [u8; 80]| {
        let mut frame = FrameSpec::new(stage);
        if stage == sys::stage::EXECUTE {
            frame.rets.push(BufferSpec {
                dtype: DataType::U8 as i32,
                dims: vec![80],
                data: out.as_mut_ptr(),
            });
        }
        let error = frame.with_frame(host::table(3), &context, |frame| {
            with_attributes(&raws, |attrs| {
                frame.attrs = attrs;
                // SAFETY: the attributes are as XLA's ABI has them, or damaged in ways that the
                // handler must notice.
                unsafe { handler(frame) }
            })
        });
        // SAFETY: the handler ran with a table of `host`.
        unsafe { host::take_error(error) }
    };
    let mut out = [0; 80];
    let made = run(entry::handler::<Def>, sys::stage::INSTANTIATE, &mut out);
    assert_eq!(
        made.is_none(),
        expected.is_some(),
        "{made:?} but {expected:?}"
    );
    let Some(mut expected) = expected else {
        return false;
    };
    let failure = run(entry::handler::<Def>, sys::stage::EXECUTE, &mut out);
    assert!(failure.is_none(), "{failure:?}");
    expected.resize(80, 0xee);
    assert_eq!(out[..], expected[..]);
    true
}

/// Element types that make no array longer than its bytes, which only a host could that lies.
const SHORT: [i32; 6] = [0, 1, 2, U8, 99, -1];

/// Mostly of the type that the name asks for.
fn attribute(name: &str, choices: &mut Choices) -> Raw {
    let number = |choices: &mut Choices| match choices.below(6) {
        0..3 => choices.below(2) as i64,
        3 => i64::from(choices.byte() as i8),
        4 => choices.number(),
        // At and beyond the bounds of the types.
        _ => choices.pick(&[
            -128,
            -129,
            127,
            128,
            -32769,
            32768,
            0xffff_ffff,
            1 << 32,
            i64::MIN,
            i64::MAX,
        ]),
    };
    let small = |choices: &mut Choices| choices.below(2) as i64;
    let dtype = |right, choices: &mut Choices| {
        if choices.one_in(32) {
            choices.pick(&[0, 2, 4, S64, U8, 7, 11, 99, -1])
        } else {
            right
        }
    };
    let kind = if choices.one_in(32) {
        choices.below(5)
    } else {
        match name {
            "e_text" => 1,
            "f_list" => 2,
            "g_three" => 3,
            "h_bools" => 4,
            _ => 0,
        }
    };
    let (ty, value) = match kind {
        0 => {
            let value = if name == "d_u64" {
                choices.number()
            } else {
                number(choices)
            };
            let value = if choices.one_in(32) {
                None
            } else {
                Some(Box::new(value.to_le_bytes()))
            };
            (attr_type::SCALAR, Value::Scalar(dtype(S64, choices), value))
        }
        1 => {
            let text = choices.bytes(12);
            let text = if choices.below(4) > 0 {
                String::from_utf8_lossy(&text[..text.len() / 3])
                    .into_owned()
                    .into_bytes()
            } else {
                text.to_vec()
            };
            (attr_type::STRING, Value::Text(text.into()))
        }
        3 => {
            let bytes: Box<[u8]> = (0..3).map(|_| choices.byte()).collect();
            let size = if choices.one_in(16) {
                choices.pick(&[0, 1, 2, usize::MAX, 1 << 48])
            } else {
                3
            };
            let bytes = if size < 3 {
                bytes[..size].into()
            } else {
                bytes
            };
            let dtype = if choices.one_in(32) {
                choices.pick(&SHORT)
            } else {
                U8
            };
            let data = Data::Bytes(bytes);
            (attr_type::ARRAY, Value::Array(dtype, size, data))
        }
        _ => {
            let len = choices.below(8);
            let one = if kind == 4 || choices.below(4) > 0 {
                small
            } else {
                number
            };
            let words: Box<[i64]> = (0..len).map(|_| one(choices)).collect();
            let (size, data) = match choices.below(40) {
                1 => (len, Data::Null),
                2 => (usize::MAX, Data::Words(words)),
                3 => (1 << 48, Data::Words(words)),
                4 => (
                    len,
                    Data::Crooked(words.iter().copied().chain([0]).collect()),
                ),
                _ => (len, Data::Words(words)),
            };
            let dtype = if choices.one_in(32) {
                choices.pick(&SHORT)
            } else {
                S64
            };
            (attr_type::ARRAY, Value::Array(dtype, size, data))
        }
    };
    let value = if choices.one_in(64) {
        Value::Null
    } else {
        value
    };
    let is_other = choices.one_in(64) && matches!(value, Value::Null);
    let ty = if is_other {
        choices.pick(&[0, 2, 5, -1])
    } else {
        ty
    };
    Raw {
        name: name.as_bytes().into(),
        ty,
        value,
    }
}

/// The list that XLA would make of them.
fn with_attributes<T>(raws: &[Raw], work: impl FnOnce(sys::Attrs) -> T) -> T {
    enum Struct {
        Null,
        Scalar(sys::Scalar),
        Array(sys::Array),
        Text(sys::ByteSpan),
    }
    let span = |bytes: &[u8]| sys::ByteSpan {
        ptr: if bytes.is_empty() {
            ptr::null()
        } else {
            bytes.as_ptr()
        },
        len: bytes.len(),
    };
    let mut structs: Vec<Struct> = raws
        .iter()
        .map(|raw| match &raw.value {
            Value::Null => Struct::Null,
            Value::Scalar(dtype, value) => Struct::Scalar(sys::Scalar {
                dtype: *dtype,
                value: value
                    .as_ref()
                    .map_or(ptr::null_mut(), |value| value.as_ptr().cast_mut().cast()),
            }),
            Value::Array(dtype, size, data) => Struct::Array(sys::Array {
                dtype: *dtype,
                size: *size,
                data: match data {
                    Data::Null => ptr::null_mut(),
                    Data::Words(words) => words.as_ptr().cast_mut().cast(),
                    Data::Crooked(words) => words
                        .as_ptr()
                        .cast::<u8>()
                        .wrapping_add(1)
                        .cast_mut()
                        .cast(),
                    Data::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
                },
            }),
            Value::Text(bytes) => Struct::Text(span(bytes)),
        })
        .collect();
    let mut types: Vec<i32> = raws.iter().map(|raw| raw.ty).collect();
    let mut names: Vec<_> = raws.iter().map(|raw| span(&raw.name)).collect();
    let mut names: Vec<_> = names.iter_mut().map(ptr::from_mut).collect();
    let mut attrs: Vec<*mut c_void> = structs
        .iter_mut()
        .map(|value| match value {
            Struct::Null => ptr::null_mut(),
            Struct::Scalar(value) => ptr::from_mut(value).cast(),
            Struct::Array(value) => ptr::from_mut(value).cast(),
            Struct::Text(value) => ptr::from_mut(value).cast(),
        })
        .collect();
    work(sys::Attrs {
        struct_size: size_of::<sys::Attrs>(),
        extension_start: ptr::null_mut(),
        size: raws.len() as i64,
        types: types.as_mut_ptr(),
        names: names.as_mut_ptr(),
        attrs: attrs.as_mut_ptr(),
    })
}

/// What the body sees, if the attributes are right.
fn expected(raws: &[Raw]) -> Option<Vec<u8>> {
    let names = raws.iter().map(|raw| &*raw.name);
    if !names.eq(NAMES.iter().map(|name| name.as_bytes())) {
        return None;
    }
    let number = |raw: &Raw| match (raw.ty, &raw.value) {
        (attr_type::SCALAR, Value::Scalar(S64, Some(bytes))) => Some(i64::from_le_bytes(**bytes)),
        _ => None,
    };
    let numbers = |raw: &Raw| match (raw.ty, &raw.value) {
        (attr_type::ARRAY, Value::Array(S64, 0, _)) => Some(Vec::new()),
        (attr_type::ARRAY, Value::Array(S64, size, Data::Words(words))) if *size == words.len() => {
            Some(words.to_vec())
        }
        _ => None,
    };
    let bytes = |words: &[i64], start| {
        let all = words.iter().flat_map(|word| word.to_le_bytes());
        all.skip(start).take(3).collect()
    };
    let [a, b, c, d, e, f, g, h] = raws else {
        return None;
    };
    let mut all = u32::try_from(number(a)?).ok()?.to_le_bytes().to_vec();
    all.push(u8::try_from(number(b)?).ok().filter(|bit| *bit < 2)?);
    all.push(i8::try_from(number(c)?).ok()? as u8);
    all.extend(number(d)?.to_le_bytes());
    match (e.ty, &e.value) {
        (attr_type::STRING, Value::Text(bytes)) => {
            all.extend(std::str::from_utf8(bytes).ok()?.as_bytes())
        }
        _ => return None,
    }
    all.push(0);
    for value in numbers(f)? {
        all.extend(i16::try_from(value).ok()?.to_le_bytes());
    }
    all.push(0);
    let three: Vec<u8> = match (g.ty, &g.value) {
        (attr_type::ARRAY, Value::Array(U8, 3, Data::Bytes(bytes))) => bytes.to_vec(),
        // Bytes are aligned anywhere, and these have more than are said to be there.
        (attr_type::ARRAY, Value::Array(U8, 3, Data::Words(words))) => bytes(words, 0),
        (attr_type::ARRAY, Value::Array(U8, 3, Data::Crooked(words))) => bytes(words, 1),
        _ => return None,
    };
    all.extend(three);
    for value in numbers(h)? {
        all.push(u8::try_from(value).ok().filter(|bit| *bit < 2)?);
    }
    Some(all)
}
