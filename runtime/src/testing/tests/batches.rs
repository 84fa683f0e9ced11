//! Random batches, nested ones too, against a loop over calls without one.

use super::super::call::{Axes, Input};
use super::super::{Call, Outcome, Target};
use crate::ffi::host_memory::Memory;
use crate::random::Random;
use crate::signature::{Dim, Param};

/// Functions whose dimensions are names, numbers, or not declared, with their static attributes.
fn functions() -> Vec<Call> {
    let call = |name: &str| Target::find(name).unwrap().call();
    vec![
        call("axpy_sum").value("a", 2.0_f32).value("offset", -1),
        call("matmul"),
        call("lookup"),
        call("prefix_sums"),
        call("turn"),
        call("copy_vectors"),
        call("copy_matrices"),
        call("deep"),
        call("scalar"),
    ]
}

/// The own dimensions of an operand, by the sizes of names.
fn own_dims(param: &Param, names: &[i64], random: &mut Random) -> Vec<i64> {
    match param.dims {
        None => (0..param.ty.rank).map(|_| random.below(3) as i64).collect(),
        Some(dims) => {
            let size = |dim: &Dim| match *dim {
                Dim::Name(name) => names[name],
                Dim::Const(size) => size,
                _ => panic!("`{}` has arithmetic", param.name),
            };
            dims.iter().map(size).collect()
        }
    }
}

/// Bytes of one element's array.
fn size(param: &Param, dims: &[i64]) -> usize {
    let own = dims.iter().map(|&dim| dim as usize);
    let numel: usize = own.chain(param.ty.packed.iter().copied()).product();
    numel * param.ty.dtype.unwrap().size()
}

/// All indices of a shape, in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![Vec::new()], |indices, &size| {
        let longer = indices.iter().flat_map(|index| {
            (0..size).map(move |last| index.iter().copied().chain([last]).collect())
        });
        longer.collect()
    })
}

/// The part of a batched input that belongs to an index of the batch.
fn element(param: &Param, input: &Input, batch: &[usize], index: &[usize]) -> Input {
    // The indices of the arrays that it holds, in their order.
    let own: Vec<bool> = match &input.axes {
        Axes::Some(axes) => axes.clone(),
        Axes::None => vec![false; batch.len()],
    };
    let masked = |index: &[usize]| -> Vec<usize> {
        let pairs = index.iter().zip(&own);
        pairs.map(|(&i, &has)| if has { i } else { 0 }).collect()
    };
    let sizes = batch
        .iter()
        .zip(&own)
        .map(|(&size, &has)| if has { size } else { 1 });
    let all = indices(&sizes.collect::<Vec<_>>());
    let place = all
        .iter()
        .position(|other| *other == masked(index))
        .unwrap();
    let size = size(param, &input.dims);
    let bytes = input.memory.as_ref().unwrap().bytes();
    Input {
        axes: Axes::Some(Vec::new()),
        dims: input.dims.clone(),
        memory: Some(Memory::of(&bytes[place * size..][..size])),
    }
}

fn random_call(call: &Call, random: &mut Random) -> Call {
    let callable = call.target.callable;
    let batch: Vec<_> = (0..1 + random.below(3))
        .map(|_| random.pick(&[0, 1, 2, 2, 3]))
        .collect();
    let names: Vec<_> = callable
        .dim_names
        .iter()
        .map(|_| random.below(4) as i64)
        .collect();
    let mut call = call.clone().batch_sizes(&batch);
    call = call
        .api_version(1 + random.below(5) as i32)
        .alias_in_outs(random.one_in(2));
    for (_, param) in callable.operands() {
        let axes = match random.below(6) {
            _ if param.in_out => Axes::Some(vec![true; batch.len()]),
            // An operand without axes; one that has them must tell how many.
            0 => Axes::None,
            _ => Axes::Some(batch.iter().map(|_| random.one_in(2)).collect()),
        };
        let dims = own_dims(param, &names, random);
        let copies: usize = call.axis_sizes(&axes).iter().product();
        // Small numbers, and for floats no NaN, which would not be itself.
        let bytes: Vec<u8> = (0..size(param, &dims) * copies)
            .map(|_| random.below(0x30) as u8)
            .collect();
        let memory = Some(Memory::of(&bytes));
        call.inputs.insert(param.name, Input { axes, dims, memory });
    }
    let has_none = |input: &&&Input| input.axes == Axes::None;
    if call.inputs().iter().filter(has_none).count() == call.inputs.len() {
        let (name, _) = call.inputs.iter().next().unwrap();
        let name: &'static str = name;
        call.inputs.get_mut(name).unwrap().axes = Axes::Some(vec![false; batch.len()]);
    }
    call
}

#[test]
fn batches_are_loops_over_calls() {
    let (mut runs, mut elements) = (0, 0);
    for call in functions() {
        for seed in 1..=150 {
            let mut random = Random::new(seed);
            let batched = random_call(&call, &mut random);
            let callable = call.target.callable;
            let got: Outcome = batched.run().unwrap();
            let mut expected: Vec<Vec<u8>> = vec![Vec::new(); callable.results().count()];
            for index in indices(&batched.batch) {
                let mut single = call.clone();
                for (_, param) in callable.operands() {
                    let whole = &batched.inputs[param.name];
                    let input = element(param, whole, &batched.batch, &index);
                    single.inputs.insert(param.name, input);
                }
                let outcome = single.run().unwrap();
                for ((_, param), all) in callable.results().zip(&mut expected) {
                    all.extend(outcome.bytes(param.name));
                }
                elements += 1;
            }
            for ((_, param), all) in callable.results().zip(expected) {
                let name = param.name;
                assert_eq!(
                    got.bytes(name),
                    all,
                    "{} {seed}: `{name}` of {got:?}",
                    callable.name
                );
                assert!(got.shape(name).starts_with(&batched.batch));
            }
            runs += 1;
        }
    }
    assert!(runs == 1350 && elements > 2 * runs, "{runs} {elements}");
}
