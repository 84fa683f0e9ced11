//! Scratch: hidden results, right ones and hostile ones.

use super::*;
use crate::testing::Target;
use std::ptr;

/// y[i] <- x[0] + .. + x[i], summed in the workspace, of which `marks` is left full.
#[jax_callable]
pub(super) fn sums(
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(n + 1)] mut sums: cpu::Scratch<f64, 1>,
    #[dims(n)] mut y: cpu::ArrayMut<f32, 1>,
    #[dims(x.dim(0), 2)] mut marks: cpu::Scratch<[u8; 3], 2>,
) {
    assert_eq!((sums.len(), marks.shape()), (x.len() + 1, [x.len(), 2]));
    sums[0] = 0.0;
    for i in 0..x.len() {
        sums[[i + 1]] = sums[i] + f64::from(x[i]);
        y[i] = sums[i + 1] as f32;
    }
    marks.fill([0xFF; 3]);
}

type Sums = sums::Def;

pub(super) struct SumsCase {
    pub(super) frame: FrameSpec,
    x: [f32; 6],
    pub(super) y: [f32; 6],
    sums: [f64; 4],
    marks: [u8; 24],
}

/// The results in the order of the frame: scratch after the output.
const Y: usize = 0;
const SUMS: usize = 1;
const MARKS: usize = 2;

impl SumsCase {
    pub(super) fn new() -> Box<SumsCase> {
        let mut case = Box::new(SumsCase {
            frame: FrameSpec::new(sys::stage::EXECUTE),
            x: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            y: [f32::NAN; 6],
            sums: [f64::NAN; 4],
            marks: [7; 24],
        });
        case.frame.args = vec![f32s(&mut case.x[..3])];
        case.frame.rets = vec![
            f32s(&mut case.y[..3]),
            BufferSpec {
                dtype: DataType::F64 as i32,
                dims: vec![4],
                data: case.sums.as_mut_ptr().cast(),
            },
            BufferSpec {
                dtype: DataType::U8 as i32,
                dims: vec![3, 2, 3],
                data: case.marks.as_mut_ptr().cast(),
            },
        ];
        case
    }

    /// A batch of two.
    fn batched() -> Box<SumsCase> {
        let mut case = SumsCase::new();
        let batch = AttrSpec::Str("1".into());
        case.frame.attrs.push(("jc.batch".into(), batch));
        case.frame.args[0].dims = vec![2, 3];
        case.frame.rets[Y].dims = vec![2, 3];
        case
    }

    pub(super) fn instantiate(&self, minor: i32, context: &Context) {
        let mut frame = FrameSpec::new(sys::stage::INSTANTIATE);
        frame.attrs = self.frame.attrs.clone();
        // SAFETY: there are no buffers.
        unsafe { frame.call(entry::handler::<Sums>, host::table(minor), context) }.unwrap();
    }

    fn run(&mut self) -> Result<(), Failure> {
        let context = Context::new();
        self.instantiate(3, &context);
        // SAFETY: the buffers point into this case, whatever a test made of their shapes.
        unsafe {
            self.frame
                .call(entry::handler::<Sums>, host::table(3), &context)
        }
    }

    #[track_caller]
    fn refused(&mut self, parts: &[&str]) {
        let failure = self.run().expect_err("a damaged call must be refused");
        assert_eq!(failure.code, 3, "{failure:?}");
        for part in parts.iter().chain(&["jax_callable.sums: "]) {
            assert!(failure.message.contains(part), "{part:?} in {failure:?}");
        }
        assert!(self.y.iter().all(|y| y.is_nan()));
        assert!(self.sums.iter().all(|sum| sum.is_nan()));
        assert_eq!(self.marks, [7; 24]);
    }
}

#[test]
fn it_comes_after_the_results() {
    let mut case = SumsCase::new();
    case.run().unwrap();
    assert_eq!(case.y[..3], [1.0, 3.0, 6.0]);
    assert_eq!(case.sums, [0.0, 1.0, 3.0, 6.0]);
    assert_eq!(case.marks[..18], [0xFF; 18]);
    assert_eq!(case.marks[18..], [7; 6]);
}

#[test]
fn missing_and_extra_ones() {
    let mut case = SumsCase::new();
    case.frame.rets.pop();
    case.refused(&["expected 3 results, got 2"]);
    let mut case = SumsCase::new();
    case.frame.rets.truncate(1);
    case.refused(&["expected 3 results, got 1"]);
    let mut case = SumsCase::new();
    let extra = case.frame.rets[MARKS].clone();
    case.frame.rets.push(extra);
    case.refused(&["expected 3 results, got 4"]);
}

#[test]
fn wrong_types_ranks_and_sizes() {
    type Spoil = fn(&mut FrameSpec);
    let damage: [(Spoil, &[&str]); 8] = [
        (
            |f| f.rets[SUMS].dtype = DataType::F32 as i32,
            &["`sums`", "expected float64[?]", "float32[4]"],
        ),
        (
            |f| f.rets[SUMS].dims = vec![4, 1],
            &["`sums`", "float64[4, 1]"],
        ),
        (
            |f| f.rets[SUMS].dims = vec![3],
            &["`sums`", "axis 0 to be 4, got 3"],
        ),
        (
            |f| f.rets[SUMS].dims = vec![0],
            &["`sums`", "axis 0 to be 4, got 0"],
        ),
        (
            |f| f.rets[SUMS].dims = vec![-4],
            &["`sums`", "negative or too large"],
        ),
        (
            |f| f.rets[MARKS].dims = vec![3, 1, 3],
            &["`marks`", "axis 1 to be 2, got 1"],
        ),
        (
            |f| f.rets[MARKS].dims = vec![3, 2, 2],
            &["`marks`", "expected uint8[?, ?, 3]"],
        ),
        (
            |f| f.rets.swap(SUMS, MARKS),
            &["`sums`", "expected float64[?]"],
        ),
    ];
    for (spoil, parts) in damage {
        let mut case = SumsCase::new();
        spoil(&mut case.frame);
        case.refused(parts);
        // Shapes that were chosen for the call are those of outputs.
        let chosen = AttrSpec::Str("call".into());
        case.frame.attrs.push(("jc.output_dims".into(), chosen));
        case.refused(parts);
    }
}

#[test]
fn null_misaligned_and_shared_memory() {
    for (index, name) in [(SUMS, "`sums`"), (MARKS, "`marks`")] {
        let mut case = SumsCase::new();
        case.frame.rets[index].data = ptr::null_mut();
        case.refused(&[name, "null or not aligned"]);
    }
    let mut case = SumsCase::new();
    case.frame.rets[SUMS].data = case.frame.rets[SUMS].data.wrapping_add(4);
    case.refused(&["`sums`", "not aligned to 8 bytes"]);
    let mut case = SumsCase::new();
    case.frame.rets[MARKS].data = case.frame.args[0].data.wrapping_add(11);
    case.refused(&["`marks`", "overlaps that of `x`"]);
    let mut case = SumsCase::new();
    case.frame.rets[MARKS].data = case.frame.rets[Y].data;
    case.refused(&["`marks`", "overlaps that of `y`"]);
    let mut case = SumsCase::new();
    case.frame.rets[MARKS].data = case.frame.rets[SUMS].data.wrapping_add(8);
    case.refused(&["`marks`", "overlaps that of `sums`"]);
}

#[test]
fn without_elements_it_may_be_null() {
    let mut case = SumsCase::new();
    case.frame.args[0].dims = vec![0];
    case.frame.rets[Y].dims = vec![0];
    case.frame.rets[SUMS].dims = vec![1];
    case.frame.rets[MARKS].dims = vec![0, 2, 3];
    case.frame.rets[MARKS].data = ptr::null_mut();
    case.run().unwrap();
    assert_eq!(case.sums[0], 0.0);
}

#[test]
fn a_batch_has_one_without_batch_axes() {
    let mut case = SumsCase::batched();
    case.run().unwrap();
    assert_eq!(case.y, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    assert_eq!(case.sums, [0.0, 4.0, 9.0, 15.0]);

    let mut case = SumsCase::batched();
    case.frame.rets[SUMS].dims = vec![2, 4];
    case.refused(&["`sums`", "expected float64[?], got float64[2, 4]"]);
    let mut case = SumsCase::batched();
    case.frame.rets[SUMS].data = case.frame.args[0].data.wrapping_add(16);
    case.refused(&["`sums`", "overlaps that of `x`"]);
}

#[test]
fn the_harness_makes_it_with_arbitrary_values() {
    let target = Target::find("sums").unwrap();
    for n in [0, 1, 100] {
        let outcome = target.call().input("x", [n], &vec![1.0_f32; n]).run();
        let expected: Vec<_> = (1..=n).map(|sum| sum as f32).collect();
        assert_eq!(outcome.unwrap().get::<f32>("y"), expected);
    }
    let call = target.call().batch_size(2);
    let outcome = call
        .batched_input("x", [2], &[1.0_f32, 2.0, 3.0, 4.0])
        .run();
    assert_eq!(outcome.unwrap().get::<f32>("y"), [1.0, 3.0, 3.0, 7.0]);
}
