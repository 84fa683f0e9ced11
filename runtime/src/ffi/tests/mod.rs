//! Handlers in frames that JAX would not make: other versions, damage, foreign buffers.

mod aborts;
mod absent;
mod alloc;
#[cfg(feature = "_cuda")]
mod cuda;
mod first_call;
mod hostile;
mod panics;
mod pool;
mod random;
mod scratch;
mod state;
mod versions;

use super::host::{self, Context, Failure};
use super::host_frame::{AttrSpec, BufferSpec, FrameSpec};
use super::{entry, sys};
use crate::dtype::DataType;
use crate::param::Definition;
use crate::prelude::*;

/// y <- a x + y, and the sum of the new y.
#[jax_callable(in_out = "y", num_outputs = 2)]
fn saxpy_sum(
    a: f32,
    offset: i32,
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(n)] mut y: cpu::ArrayMut<f32, 1>,
    #[dims()] mut sum: cpu::ArrayMut<f32, 0>,
) {
    for (y, x) in y.iter_mut().zip(x.iter()) {
        *y += a * x + offset as f32;
    }
    sum[[]] = y.iter().sum();
}

/// A right call of `saxpy_sum` on three elements, to be spoiled by tests.
struct Case {
    frame: FrameSpec,
    x: [f32; 4],
    y_in: [f32; 4],
    y_out: [f32; 4],
    sum: [f32; 2],
}

type Def = saxpy_sum::Def;

impl Case {
    fn new() -> Box<Case> {
        let mut case = Box::new(Case {
            frame: FrameSpec::new(sys::stage::EXECUTE),
            x: [1.0, 2.0, 3.0, 0.0],
            y_in: [10.0, 20.0, 30.0, 0.0],
            y_out: [f32::NAN; 4],
            sum: [f32::NAN; 2],
        });
        let attr = |name: &str, value| (name.to_owned(), value);
        case.frame.attrs = vec![
            attr("a", AttrSpec::I64(i64::from(2.0_f32.to_bits()))),
            attr("offset", AttrSpec::I64(-1)),
        ];
        case.frame.args = vec![f32s(&mut case.x[..3]), f32s(&mut case.y_in[..3])];
        case.frame.rets = vec![f32s(&mut case.y_out[..3]), scalar(&mut case.sum)];
        case
    }

    /// Gives an attribute another value, or adds it.
    fn set(&mut self, name: &str, value: AttrSpec) {
        self.frame.attrs.retain(|(n, _)| n != name);
        self.frame.attrs.push((name.to_owned(), value));
    }

    fn instantiate(&mut self, minor: i32, context: &Context) -> Result<(), Failure> {
        let mut frame = FrameSpec::new(sys::stage::INSTANTIATE);
        frame.attrs = self.frame.attrs.clone();
        // SAFETY: there are no buffers.
        unsafe { frame.call(entry::handler::<Def>, host::table(minor), context) }
    }

    fn execute(&mut self, minor: i32, context: &Context) -> Result<(), Failure> {
        let table = host::table(minor);
        // SAFETY: the buffers point into this case, whatever a test made of their shapes:
        // that the handler does not follow wrong ones is what is tested.
        unsafe { self.frame.call(entry::handler::<Def>, table, context) }
    }

    fn run(&mut self) -> Result<(), Failure> {
        let context = Context::new();
        self.instantiate(3, &context)?;
        self.execute(3, &context)
    }

    /// Runs it, and expects a refusal that says each of `parts` and wrote nothing.
    #[track_caller]
    fn refused(&mut self, parts: &[&str]) {
        let failure = self.run().expect_err("a damaged call must be refused");
        assert_eq!(failure.code, 3, "{failure:?}");
        let start = format!("{}.saxpy_sum: ", Def::CALLABLE.crate_name());
        for part in parts.iter().chain([&start.as_str()]) {
            assert!(failure.message.contains(part), "{part:?} in {failure:?}");
        }
        assert!(self.y_out.iter().chain(&self.sum).all(|v| v.is_nan()));
    }
}

fn f32s(values: &mut [f32]) -> BufferSpec {
    BufferSpec {
        dtype: DataType::F32 as i32,
        dims: vec![values.len() as i64],
        data: values.as_mut_ptr().cast(),
    }
}

fn scalar(values: &mut [f32]) -> BufferSpec {
    BufferSpec {
        dims: Vec::new(),
        ..f32s(values)
    }
}
