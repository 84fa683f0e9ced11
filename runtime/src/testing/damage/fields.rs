//! Every field of a call's frames, and what it could be instead.

use super::super::Call;
use super::{Damage, Stages};
use crate::dtype::DataType;
use crate::ffi::host_damage::{AttrChange, AttrsChange, BufferChange, Change, List, ListChange};
use crate::ffi::host_frame::AttrSpec;
use crate::ffi::host_site::Layout;
use crate::ffi::host_table::OtherTable;
use crate::ffi::sys;
use crate::plan::{BATCH, OUTPUT_DIMS};
use crate::signature::{Length, Param, StaticType};

const ATTR_TYPES: [i32; 4] = [0, 2, 5, -1];
/// Also those that XLA has and we do not: no type, S4, TOKEN, F4E2M1FN.
const DTYPES: [i32; 6] = [0, 17, 21, 32, 99, -1];

impl Call {
    /// Every damage of this call: each field of its frames, and each attribute of the program, with
    /// each value that it could have instead.
    ///
    /// Not among them is what no handler can notice, and XLA does not get wrong: pointers to memory
    /// that is gone, buffers smaller than their shape says, a missing API table or context.
    ///
    /// # Panics
    /// If an input is missing, or the shapes contradict each other.
    pub fn damages(&self) -> Vec<Damage> {
        let mut all = Damages(Vec::new());
        for stage in [Stages::Instantiate, Stages::Execute] {
            all.frame(stage);
            all.attributes(self, stage);
        }
        for table in [
            OtherTable::Newer,
            OtherTable::Short,
            OtherTable::Major,
            OtherTable::NoTypes,
        ] {
            all.add(Stages::Both, None, Change::Table(table));
        }
        all.program(self);
        let [operands, results] = self.layouts().expect("the shapes of a right call");
        let callable = self.target.callable;
        let params: Vec<_> = callable.operands().map(|(_, param)| param).collect();
        all.buffers(List::Args, &params, &operands, &results);
        let params = callable.results().chain(callable.scratch());
        let params: Vec<_> = params.map(|(_, param)| param).collect();
        all.buffers(List::Rets, &params, &operands, &results);
        all.0
    }
}

struct Damages(Vec<Damage>);

impl Damages {
    fn add(&mut self, stages: Stages, param: Option<&'static str>, change: Change) {
        self.0.push(Damage {
            stages,
            change,
            param,
        });
    }

    fn frame(&mut self, stage: Stages) {
        for size in [0, sys::CALL_FRAME_SIZE - 8, sys::CALL_FRAME_SIZE + 8, 400] {
            self.add(stage, None, Change::FrameSize(size));
        }
        let own = match stage {
            Stages::Instantiate => sys::stage::INSTANTIATE,
            _ => sys::stage::EXECUTE,
        };
        for other in [0, 1, 2, 3, 4, 5, 77, -1, i32::MIN] {
            if other != own {
                self.add(stage, None, Change::Stage(other));
            }
        }
        self.add(stage, None, Change::Extension);
    }

    /// The attributes of a frame as XLA's structs.
    fn attributes(&mut self, call: &Call, stage: Stages) {
        let attrs = call.attrs();
        let size = attrs.len() as i64;
        let sizes = [-1, size - 1, size + 1, i64::MAX, i64::MIN];
        let sizes = sizes.into_iter().chain((size > 0).then_some(0));
        let sizes = sizes.map(AttrsChange::Size);
        let rest = [
            AttrsChange::StructSize(0),
            AttrsChange::NullTypes,
            AttrsChange::NullNames,
            AttrsChange::NullValues,
        ];
        for change in sizes.chain(rest) {
            self.add(stage, None, Change::Attrs(change));
        }
        for (index, (name, value)) in attrs.iter().enumerate() {
            let param = parameter(call, name);
            for change in attribute_fields(value) {
                self.add(stage, param, Change::Attr(index, change));
            }
        }
    }

    /// The attributes as a program has them.
    fn program(&mut self, call: &Call) {
        let both = Stages::Both;
        let attrs = call.attrs();
        for (name, value) in &attrs {
            let param = parameter(call, name);
            let change = |value| Change::Attribute(name.clone(), value);
            self.add(both, param, change(None));
            let others = [
                AttrSpec::I64Array(vec![0; 70]),
                AttrSpec::U8Array(vec![1, 2, 3]),
                AttrSpec::Str("other".into()),
                AttrSpec::I64(0),
            ];
            let kind = std::mem::discriminant::<AttrSpec>;
            let others = others
                .into_iter()
                .filter(|other| kind(other) != kind(value));
            let misfits = param.map_or_else(Vec::new, |param| misfits(call, param));
            for other in others.chain(misfits) {
                self.add(both, param, change(Some(other)));
            }
            if name == BATCH {
                let AttrSpec::Str(axes) = value else { continue };
                for other in descriptions(axes) {
                    self.add(both, None, change(Some(AttrSpec::Str(other))));
                }
            }
        }
        for second in 1..attrs.len() {
            self.add(both, None, Change::Attrs(AttrsChange::Swapped(0, second)));
        }
        let extra = |name: &str, value| Change::Attribute(name.into(), Some(value));
        for name in ["", "A", "zzz", "jc.", "jc.batches"] {
            self.add(both, None, extra(name, AttrSpec::I64(0)));
        }
        if !attrs.iter().any(|(name, _)| name == BATCH) {
            for axes in ["", "1", "0", "-", "1,1", "x"] {
                self.add(both, None, extra(BATCH, AttrSpec::Str(axes.into())));
            }
        }
        for value in ["", "Call", "call "] {
            self.add(both, None, extra(OUTPUT_DIMS, AttrSpec::Str(value.into())));
        }
    }

    fn buffers(
        &mut self,
        list: List,
        params: &[&'static Param],
        operands: &[Layout],
        results: &[Layout],
    ) {
        let execute = Stages::Execute;
        let layouts = if list == List::Args {
            operands
        } else {
            results
        };
        let size = layouts.len() as i64;
        let sizes = [-1, 0, size - 1, size + 1, 1 << 16, i64::MAX, i64::MIN];
        let sizes = sizes.into_iter().filter(|&other| other != size);
        let sizes = sizes.map(ListChange::Size);
        let rest = [
            ListChange::StructSize(0),
            ListChange::NullTypes,
            ListChange::NullBuffers,
        ];
        for change in sizes.chain(rest) {
            self.add(execute, None, Change::List(list, change));
        }
        for (index, (param, layout)) in params.iter().zip(layouts).enumerate() {
            for ty in [0, 2, -1, i32::MAX] {
                let change = ListChange::Type(index, ty);
                self.add(execute, Some(param.name), Change::List(list, change));
            }
            let change = ListChange::Null(index);
            self.add(execute, Some(param.name), Change::List(list, change));
            for change in buffer_fields(param, layout) {
                let change = Change::Buffer(list, index, change);
                self.add(execute, Some(param.name), change);
            }
            let others = (0..operands.len()).map(|other| (List::Args, other));
            let others = others.chain((0..results.len()).map(|other| (List::Rets, other)));
            // An input may be where another is, whose numbers it then has.
            for (to, other) in others.filter(|_| list == List::Rets) {
                let is_own = (to, other) == (list, index)
                    || (to, Some(other)) == (List::Args, layout.operand);
                if !is_own {
                    let change = BufferChange::Over(to, other);
                    self.add(
                        execute,
                        Some(param.name),
                        Change::Buffer(list, index, change),
                    );
                }
            }
        }
    }
}

fn attribute_fields(value: &AttrSpec) -> Vec<AttrChange> {
    let mut fields = vec![
        AttrChange::Null,
        AttrChange::NullName,
        AttrChange::NullNameBytes,
        AttrChange::NameNotUtf8,
    ];
    fields.extend(ATTR_TYPES.map(AttrChange::Type));
    fields.extend([usize::MAX, 1 << 63].map(AttrChange::NameLength));
    let is_empty = match value {
        AttrSpec::I64(_) => false,
        AttrSpec::I64Array(values) => values.is_empty(),
        AttrSpec::U8Array(values) => values.is_empty(),
        AttrSpec::Str(text) => text.is_empty(),
    };
    if !is_empty {
        fields.push(AttrChange::NullData);
    }
    if matches!(value, AttrSpec::I64Array(_)) && !is_empty {
        fields.push(AttrChange::Crooked);
    }
    match value {
        AttrSpec::Str(_) => fields.push(AttrChange::NotUtf8),
        _ => fields.extend(DTYPES.map(AttrChange::Dtype)),
    }
    if !matches!(value, AttrSpec::I64(_)) {
        fields.extend([usize::MAX, 1 << 63, 1 << 48].map(AttrChange::Length));
    }
    fields
}

fn buffer_fields(param: &Param, layout: &Layout) -> Vec<BufferChange> {
    let rank = layout.dims.len() as i64;
    let dtype = layout.dtype as i32;
    let mut fields = vec![BufferChange::StructSize(0), BufferChange::NullData];
    // All that we have: the next of the same size among them.
    let dtypes = (0..34).chain(DTYPES).filter(|&other| other != dtype);
    fields.extend(dtypes.map(BufferChange::Dtype));
    let ranks = [-1, 0, rank - 1, rank + 1, 1 << 16, i64::MAX, i64::MIN];
    let ranks = ranks.into_iter().filter(|&other| other != rank);
    fields.extend(ranks.map(BufferChange::Rank));
    fields.push(BufferChange::NullDims);
    let scalar = layout.dtype.size();
    let align = usize::from(param.ty.buffer.align_mask) + 1;
    if align > 1 {
        fields.extend([1, align / 2].map(BufferChange::Shifted));
    }
    for (axis, &dim) in layout.dims.iter().enumerate() {
        let mut sizes = vec![-1, -dim, i64::MIN, 0, 1, dim - 1, dim + 1, 2 * dim];
        if scalar > 1 {
            // More bytes than there are addresses.
            sizes.extend([1 << 62, i64::MAX]);
        }
        sizes.retain(|&other| other != dim);
        sizes.sort_unstable();
        sizes.dedup();
        fields.extend(sizes.into_iter().map(|size| BufferChange::Dim(axis, size)));
    }
    fields
}

/// Descriptions of batch axes near a right one.
fn descriptions(axes: &str) -> Vec<String> {
    let flipped = axes.char_indices().filter_map(|(i, c)| {
        let other = match c {
            '0' => "1",
            '1' => "0",
            _ => return None,
        };
        Some([&axes[..i], other, &axes[i + 1..]].concat())
    });
    let deep = |n: usize| {
        axes.replace('0', &"0".repeat(n))
            .replace('1', &"1".repeat(n))
    };
    flipped
        .chain([
            "".into(),
            "-".into(),
            format!("{axes},0"),
            format!("{axes},"),
        ])
        .chain([axes.replace(['0', '1'], "-"), axes.replace(',', "")])
        .chain([
            deep(2),
            deep(33),
            axes.replace('1', "2"),
            axes.replace(',', ";"),
        ])
        .filter(|other| other != axes)
        .collect()
}

/// Attributes of the right kind that hold no value of a parameter's type.
fn misfits(call: &Call, name: &str) -> Vec<AttrSpec> {
    let mut statics = call.target.callable.statics();
    let param = statics.find(|(_, param)| param.name == name);
    let Some(StaticType::Number(dtype, length)) = param.and_then(|(_, param)| param.ty.value)
    else {
        return Vec::new();
    };
    let is_narrow = dtype.size() < 8;
    let extremes = [i64::MIN, i64::MAX].into_iter().filter(|_| is_narrow);
    match (length, dtype) {
        (Length::One, DataType::C128) => vec![AttrSpec::I64Array(vec![0])],
        (Length::One, _) => extremes.map(AttrSpec::I64).collect(),
        (Length::Fixed(k), DataType::U8) => vec![AttrSpec::U8Array(vec![0; k + 1])],
        (_, DataType::U8) => Vec::new(),
        (_, DataType::C128) => vec![AttrSpec::I64Array(vec![0; 3])],
        (Length::Fixed(k), _) => vec![AttrSpec::I64Array(vec![0; k + 1])],
        (Length::Slice, _) => extremes
            .map(|value| AttrSpec::I64Array(vec![value]))
            .collect(),
    }
}

fn parameter(call: &Call, name: &str) -> Option<&'static str> {
    let mut statics = call.target.callable.statics();
    statics.find_map(|(_, param)| (param.name == name).then_some(param.name))
}
