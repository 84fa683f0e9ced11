//! What is read at run time is what the compiler was told.

use super::*;
use crate::param::Definition;
use crate::prelude::*;

#[jax_callable(vmap_method = None)]
fn smallest(y: cpu::ArrayMut<f32, 0>) {
    let _ = y;
}

/// The line of the next function: the attribute and the document before it have 16.
const EVERYTHING: u32 = line!() + 17;

/// A document: with `"quotes"`, 12:colons: and größe.
///
/// And a second paragraph.
#[jax_callable(
    name = "überall",
    in_out = ("z", "mod"),
    output_dims(
        a = (n, 2 * n + 1, (n - k) / 3 % 5),
        b = (x.dim(1).div_ceil(2), n.min(4).max(k)),
    ),
    has_side_effect,
    state = usize::try_from(k),
    vmap_method = "sequential"
)]
#[expect(clippy::too_many_arguments, reason = "there is one of each kind")]
fn everything(
    cx: &cpu::Context,
    k: u32,
    text: &str,
    flag: bool,
    taps: &[f64],
    origin: [i16; 3],
    state: &State<usize>,
    #[dims(n, größe)] x: cpu::Array<f32, 2>,
    z: cpu::ArrayMut<[[f32; 2]; 3], 1>,
    r#mod: cpu::ArrayMut<[u8; 4], 0>,
    #[dims(größe)] w: cpu::Scratch<f64, 1>,
    a: cpu::ArrayMut<i8, 3>,
    b: cpu::ArrayMut<Pred, 2>,
) {
    let _ = (cx, k, text, flag, taps, origin, state, x, z, r#mod, w, a, b);
}

#[jax_callable(batch_dims = n, output_dims(y = (n, 2)), vjp = backward)]
fn forward(#[dims(n, 2)] x: cpu::Array<f32, 2>, y: cpu::ArrayMut<f32, 2>) {
    let _ = (x, y);
}

#[jax_callable(output_dims = (n, 2))]
fn backward(
    #[dims(n, 2)] ct_y: cpu::Array<f32, 2>,
    #[dims(n)] w: cpu::Scratch<f32, 1>,
    d_x: cpu::ArrayMut<f32, 2>,
) {
    let _ = (ct_y, w, d_x);
}

type Input<'a> = cpu::Array<'a, f32, 1>;
type Output<'a> = cpu::ArrayMut<'a, f32, 1>;

/// The attribute cannot tell which of them is an output.
#[jax_callable(output_dims = 3)]
fn aliases(x: Input<'_>, y: Output<'_>) {
    let _ = (x, y);
}

#[cfg(feature = "_cuda")]
mod on_gpu {
    use crate::prelude::*;

    #[jax_callable(
        graph_mode = WarpStaged,
        graph_cache_max = 7,
        stage_in = x,
        stage_out = (),
        modules = (),
        preload = AllDevices,
        state = cuda::Context::device_ordinal(cx)
    )]
    pub(super) fn staged(
        cx: &cuda::Context,
        ordinal: &cuda::PerDevice<usize>,
        #[dims(n)] x: cuda::Array<f32, 1>,
        #[dims(n)] w: cuda::Scratch<f32, 1>,
        y: cuda::ArrayMut<f32, 1>,
    ) {
        let _ = (cx, ordinal, x, w, y);
    }
}

fn read<D: Definition>() -> Option<Callable> {
    unpack(D::TEXT, D::PACKED, D::KEYS.unwrap_or(&Callable::DEFAULT))
}

/// What the compiler is told too: all but the document, the place, and `vjp`, an address.
fn words(callable: &Callable) -> String {
    let Callable {
        doc,
        module,
        file,
        line,
        ..
    } = Callable::DEFAULT;
    let callable = Callable {
        doc,
        module,
        file,
        line,
        vjp: None,
        ..*callable
    };
    format!("{callable:#?}")
}

fn agree<D: Definition>() {
    let read = read::<D>().expect("the attribute wrote it");
    assert_eq!(words(&read), words(D::CALLABLE));
    let names = [&read, D::CALLABLE].map(|callable| callable.vjp.map(|vjp| vjp().name));
    assert_eq!(names[0], names[1]);
    assert_eq!((read.module, read.file), (module_path!(), file!()));
}

#[test]
fn what_is_read_is_what_the_compiler_was_told() {
    agree::<smallest::Def>();
    agree::<everything::Def>();
    agree::<forward::Def>();
    agree::<backward::Def>();
    agree::<aliases::Def>();
    #[cfg(feature = "_cuda")]
    {
        let read = read::<on_gpu::staged::Def>().unwrap();
        assert_eq!(words(&read), words(on_gpu::staged::Def::CALLABLE));
    }
    // So that the comparison is of something.
    let everything = read::<everything::Def>().unwrap();
    assert_eq!(
        (everything.params.len(), everything.dim_names.len()),
        (13, 2)
    );
    assert_eq!(everything.doc.lines().count(), 3);
    assert_eq!(everything.line, EVERYTHING);
    assert_eq!(
        read::<forward::Def>().unwrap().vjp.unwrap()().name,
        "backward"
    );
}

/// Every text that begins as the right one does, and every right one with another byte.
#[test]
fn damaged_text_is_no_description() {
    type Def = everything::Def;
    let text = Def::TEXT;
    let read = |text: String| unpack(text.leak(), Def::PACKED, &Callable::DEFAULT);
    let place = text.rfind('\0').unwrap();
    let step = if cfg!(miri) { 16 } else { 1 };
    let ends = (0..=place).step_by(step);
    for end in ends.filter(|&end| text.is_char_boundary(end)) {
        assert!(read(text[..end].to_owned()).is_none(), "{}", &text[..end]);
    }
    let mut refused = 0;
    for at in (0..text.len()).step_by(step) {
        for byte in [b'0', b'9', b':', b'-', b'x', 0] {
            let mut damaged = text.as_bytes().to_vec();
            damaged[at] = byte;
            // It may be another description, but is read without a panic.
            refused += u32::from(String::from_utf8(damaged).is_ok_and(|text| read(text).is_none()));
        }
    }
    assert!(refused > 1000 / step as u32, "{refused}");
    // With a parameter less, and with one more.
    let fewer = &Def::PACKED[1..];
    let more: Vec<_> = Def::PACKED.iter().chain(fewer).copied().collect();
    assert!(unpack(text, &more, &Callable::DEFAULT).is_none());
}
