//! Descriptions as bytes.
//!
//! A [`Callable`] has pointers, each of which costs a library more in relocations than what it
//! points to. So the attribute's static holds bytes, written at compile time, and the description
//! is made from them when it is first asked for.

use crate::dtype::DataType;
use crate::signature::{
    BufferType, Callable, Dim, DimOp, GraphCacheMax, GraphMode, Kind, Length, ModuleUse, Param,
    ParamType, Platform, StaticType,
};

/// How many bytes [`pack`] needs.
pub const fn packed_len(callable: &Callable) -> usize {
    write::<0>(callable).len
}

/// All of a description but its `vjp`.
pub const fn pack<const N: usize>(callable: &Callable) -> [u8; N] {
    write::<N>(callable).bytes
}

/// The description that was packed.
pub(crate) fn unpack(bytes: &'static [u8], vjp: Option<fn() -> &'static Callable>) -> Callable {
    let mut reader = Reader(bytes);
    Callable {
        name: reader.text(),
        module: reader.text(),
        file: reader.text(),
        line: reader.number() as u32,
        doc: reader.text(),
        params: reader.list(Reader::param),
        dim_names: reader.list(Reader::text),
        vmap_method: reader.option(Reader::text),
        batch_dims: reader.list(Reader::text),
        has_side_effect: reader.flag(),
        vjp,
        graph_mode: reader.one_of(&GRAPH_MODES),
        stage_in: reader.option(|reader| reader.list(Reader::text)),
        stage_out: reader.option(|reader| reader.list(Reader::text)),
        graph_cache_max: match reader.byte() {
            0 => GraphCacheMax::Default,
            1 => GraphCacheMax::Unlimited,
            _ => GraphCacheMax::Limit(reader.number()),
        },
        modules: reader.option(|reader| {
            reader.list(|reader| ModuleUse {
                path: reader.text(),
                id: reader.text(),
            })
        }),
        preload: reader.text(),
        state: reader.option(Reader::text),
    }
}

const GRAPH_MODES: [GraphMode; 5] = [
    GraphMode::None,
    GraphMode::Jax,
    GraphMode::Warp,
    GraphMode::WarpStaged,
    GraphMode::WarpStagedEx,
];
const KINDS: [Kind; 7] = [
    Kind::Context,
    Kind::Array,
    Kind::ArrayMut,
    Kind::Scratch,
    Kind::Static,
    Kind::State,
    Kind::PerDevice,
];
const PLATFORMS: [Platform; 2] = [Platform::Cpu, Platform::Cuda];
const DIM_OPS: [DimOp; 8] = [
    DimOp::Add,
    DimOp::Sub,
    DimOp::Mul,
    DimOp::Div,
    DimOp::Rem,
    DimOp::DivCeil,
    DimOp::Min,
    DimOp::Max,
];

const fn write<const N: usize>(callable: &Callable) -> Writer<N> {
    let mut writer = Writer {
        bytes: [0; N],
        len: 0,
    };
    writer.text(callable.name);
    writer.text(callable.module);
    writer.text(callable.file);
    writer.number(callable.line as u64);
    writer.text(callable.doc);
    writer.number(callable.params.len() as u64);
    let mut i = 0;
    while i < callable.params.len() {
        writer.param(&callable.params[i]);
        i += 1;
    }
    writer.texts(callable.dim_names);
    writer.some_text(callable.vmap_method);
    writer.texts(callable.batch_dims);
    writer.byte(callable.has_side_effect as u8);
    writer.byte(callable.graph_mode as u8);
    writer.some_texts(callable.stage_in);
    writer.some_texts(callable.stage_out);
    match callable.graph_cache_max {
        GraphCacheMax::Default => writer.byte(0),
        GraphCacheMax::Unlimited => writer.byte(1),
        GraphCacheMax::Limit(limit) => {
            writer.byte(2);
            writer.number(limit);
        }
    }
    writer.byte(callable.modules.is_some() as u8);
    if let Some(modules) = callable.modules {
        writer.number(modules.len() as u64);
        let mut i = 0;
        while i < modules.len() {
            writer.text(modules[i].path);
            writer.text(modules[i].id);
            i += 1;
        }
    }
    writer.text(callable.preload);
    writer.some_text(callable.state);
    writer
}

/// Counts bytes, and keeps those that there is room for.
struct Writer<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Writer<N> {
    const fn byte(&mut self, byte: u8) {
        if self.len < N {
            self.bytes[self.len] = byte;
        }
        self.len += 1;
    }

    /// In groups of 7 bits, the least first.
    const fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    const fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        if self.len + text.len() <= N {
            let (_, rest) = self.bytes.split_at_mut(self.len);
            rest.split_at_mut(text.len())
                .0
                .copy_from_slice(text.as_bytes());
        }
        self.len += text.len();
    }

    const fn some_text(&mut self, text: Option<&str>) {
        self.byte(text.is_some() as u8);
        if let Some(text) = text {
            self.text(text);
        }
    }

    const fn texts(&mut self, texts: &[&str]) {
        self.number(texts.len() as u64);
        let mut i = 0;
        while i < texts.len() {
            self.text(texts[i]);
            i += 1;
        }
    }

    const fn some_texts(&mut self, texts: Option<&[&str]>) {
        self.byte(texts.is_some() as u8);
        if let Some(texts) = texts {
            self.texts(texts);
        }
    }

    const fn param(&mut self, param: &Param) {
        let ty = &param.ty;
        self.text(param.name);
        self.byte(ty.kind as u8);
        match ty.platform {
            None => self.byte(0),
            Some(platform) => self.byte(1 + platform as u8),
        }
        self.dtype(ty.dtype);
        self.number(ty.rank as u64);
        self.number(ty.packed.len() as u64);
        let mut i = 0;
        while i < ty.packed.len() {
            self.number(ty.packed[i] as u64);
            i += 1;
        }
        self.number(ty.buffer.align_mask as u64);
        match ty.value {
            None => self.byte(0),
            Some(StaticType::Str) => self.byte(1),
            Some(StaticType::Number(dtype, length)) => {
                match length {
                    Length::One => self.byte(2),
                    Length::Slice => self.byte(3),
                    Length::Fixed(len) => {
                        self.byte(4);
                        self.number(len as u64);
                    }
                }
                self.dtype(Some(dtype));
            }
        }
        self.byte(param.in_out as u8);
        self.byte(param.dims.is_some() as u8);
        if let Some(dims) = param.dims {
            self.number(dims.len() as u64);
            let mut i = 0;
            while i < dims.len() {
                self.dim(&dims[i]);
                i += 1;
            }
        }
    }

    const fn dtype(&mut self, dtype: Option<DataType>) {
        match dtype {
            None => self.byte(0),
            Some(dtype) => self.byte(dtype as u8),
        }
    }

    const fn dim(&mut self, dim: &Dim) {
        match dim {
            Dim::Const(value) => {
                self.byte(0);
                self.number(*value as u64);
            }
            Dim::Name(name) => {
                self.byte(1);
                self.number(*name as u64);
            }
            Dim::Axis(param, axis) => {
                self.byte(2);
                self.number(*param as u64);
                self.number(*axis as u64);
            }
            Dim::Scalar(param) => {
                self.byte(3);
                self.number(*param as u64);
            }
            Dim::Op(op, left, right) => {
                self.byte(4 + *op as u8);
                self.dim(left);
                self.dim(right);
            }
        }
    }
}

/// Reads what [`Writer`] wrote, and nothing else.
struct Reader(&'static [u8]);

impl Reader {
    fn byte(&mut self) -> u8 {
        let (&byte, rest) = self.0.split_first().expect("it was written");
        self.0 = rest;
        byte
    }

    fn flag(&mut self) -> bool {
        self.byte() != 0
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::from(self.byte())]
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number;
            }
            shift += 7;
        }
    }

    fn index(&mut self) -> usize {
        self.number() as usize
    }

    fn text(&mut self) -> &'static str {
        let len = self.index();
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        std::str::from_utf8(text).expect("it was a string")
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Reader) -> T) -> Option<T> {
        self.flag().then(|| read(self))
    }

    /// The list lives as long as the library.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Reader) -> T) -> &'static [T] {
        let len = self.index();
        (0..len).map(|_| read(self)).collect::<Vec<_>>().leak()
    }

    fn param(&mut self) -> Param {
        Param {
            name: self.text(),
            ty: self.ty(),
            in_out: self.flag(),
            dims: self.option(|reader| reader.list(Reader::dim)),
        }
    }

    fn ty(&mut self) -> ParamType {
        let kind = self.one_of(&KINDS);
        let platform = match self.byte() {
            0 => None,
            platform => Some(PLATFORMS[usize::from(platform) - 1]),
        };
        let dtype = self.dtype();
        let rank = self.index();
        let packed = self.list(Reader::index);
        let align_mask = self.number() as u16;
        ParamType {
            kind,
            platform,
            dtype,
            rank,
            packed,
            buffer: dtype.map_or(BufferType::NONE, |dtype| {
                BufferType::new(dtype, rank, packed, align_mask)
            }),
            value: match self.byte() {
                0 => None,
                1 => Some(StaticType::Str),
                length => {
                    let length = match length {
                        2 => Length::One,
                        3 => Length::Slice,
                        _ => Length::Fixed(self.index()),
                    };
                    self.dtype().map(|dtype| StaticType::Number(dtype, length))
                }
            },
        }
    }

    fn dtype(&mut self) -> Option<DataType> {
        DataType::from_xla(i32::from(self.byte()))
    }

    fn dim(&mut self) -> Dim {
        match self.byte() {
            0 => Dim::Const(self.number() as i64),
            1 => Dim::Name(self.index()),
            2 => Dim::Axis(self.index(), self.index()),
            3 => Dim::Scalar(self.index()),
            op => {
                let op = DIM_OPS[usize::from(op) - 4];
                let mut operand = || -> &'static Dim { Box::leak(Box::new(self.dim())) };
                Dim::Op(op, operand(), operand())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::MISTAKEN;
    use crate::cpu::{ArrayMut, Context, Scratch};
    use crate::param::FfiArg;

    const fn number(op: DimOp) -> Dim {
        Dim::Op(op, &Dim::Axis(300, 2), &Dim::Scalar(1))
    }

    const fn param<T: FfiArg<'static>>(name: &'static str) -> Param {
        Param::new(name, T::TYPE)
    }

    const ALL: Callable = Callable {
        name: "all",
        module: "krate::module",
        file: "src/lib.rs",
        line: 70_000,
        doc: "What it does: \u{e9}.",
        params: &[
            param::<&Context>("cx"),
            param::<&str>("mode"),
            param::<u64>("n"),
            param::<&[i8]>("list"),
            param::<[f64; 1000]>("fixed"),
            param::<&crate::State<()>>("state"),
            param::<ArrayMut<'static, [[f32; 3]; 200], 2>>("y").in_out(),
            param::<ArrayMut<'static, crate::Pred, 0>>("z").dims(&[]),
            param::<Scratch<'static, u8, 4>>("work").dims(&[
                Dim::Const(-1),
                Dim::Name(63),
                number(DimOp::Add),
                Dim::Op(DimOp::Max, &number(DimOp::Rem), &number(DimOp::DivCeil)),
            ]),
        ],
        dim_names: &["n", "m"],
        vmap_method: None,
        batch_dims: &["n"],
        has_side_effect: true,
        vjp: Some(|| &MISTAKEN),
        graph_mode: GraphMode::WarpStagedEx,
        stage_in: Some(&["x"]),
        stage_out: Some(&[]),
        graph_cache_max: GraphCacheMax::Limit(u64::MAX),
        modules: Some(&[ModuleUse {
            path: "kernels",
            id: "krate::kernels",
        }]),
        preload: "AllDevices",
        state: Some("State::new(n)"),
    };

    #[test]
    fn what_is_unpacked_was_packed() {
        macro_rules! check {
            ($($callable:expr),*) => {$({
                static PACKED: [u8; packed_len(&$callable)] = pack(&$callable);
                let unpacked = unpack(&PACKED, $callable.vjp);
                assert_eq!(format!("{unpacked:?}"), format!("{:?}", $callable));
            })*};
        }
        check!(ALL, MISTAKEN, Callable::DEFAULT);
    }

    #[test]
    fn each_is_at_its_number() {
        let all = |numbers: &[u8]| numbers.iter().copied().eq(0..numbers.len() as u8);
        assert!(all(&GRAPH_MODES.map(|value| value as u8)));
        assert!(all(&KINDS.map(|value| value as u8)));
        assert!(all(&PLATFORMS.map(|value| value as u8)));
        assert!(all(&DIM_OPS.map(|value| value as u8)));
    }
}
