//! Calls through their stages.

use super::damage::Stages;
use super::{Call, CallSite, Outcome};
use crate::error::Result;
use crate::ffi::host_damage::{BufferChange, Change};
use crate::ffi::host_site::{HostBuffer, HostResult};
use crate::signature::Platform;

impl Call {
    /// Runs it: INSTANTIATE, then EXECUTE.
    ///
    /// # Errors
    /// The error that JAX would raise: the message begins with `crate.f: `.
    ///
    /// # Panics
    /// If an input is missing, or only its shape was given. (A missing static attribute is the
    /// handler's to find.) If the function wrote to memory that is not a result's: around an array,
    /// or to an input.
    pub fn run(&self) -> Result<Outcome> {
        self.instantiate()?.run(self)
    }

    /// Runs INSTANTIATE alone, for calls that are executed again and again: a call site, as an
    /// executable of XLA has it.
    ///
    /// # Errors
    /// As for [`run`](Call::run).
    ///
    /// # Panics
    /// If an input is missing.
    pub fn instantiate(&self) -> Result<CallSite> {
        CallSite::new(
            self.target.handlers,
            self.host.api_version,
            self.attrs(),
            self.layouts()?,
            [Stages::Instantiate, Stages::Execute].map(|stage| self.changes(stage)),
        )
    }
}

impl CallSite {
    /// Runs EXECUTE on the CPU, with the arrays of a call. Any thread may, at any time.
    ///
    /// ```
    /// use jax_callable::prelude::*;
    /// use jax_callable::testing::Target;
    ///
    /// /// y <- x + the sum of all earlier x.
    /// #[jax_callable(state = std::sync::Mutex::new(0.0))]
    /// fn running(
    ///     x: cpu::Array<f64, 0>,
    ///     sum: &State<std::sync::Mutex<f64>>,
    ///     mut y: cpu::ArrayMut<f64, 0>,
    /// ) -> Result<()> {
    ///     let mut sum = sum.lock().map_err(|error| Error::internal(error))?;
    ///     *sum += x[[]];
    ///     y[[]] = *sum;
    ///     Ok(())
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// let call = Target::find("running")?.call();
    /// let site = call.clone().input_shape("x", []).instantiate()?;
    /// for (x, sum) in [(1.0, 1.0), (2.0, 3.0), (3.0, 6.0)] {
    ///     let outcome = site.run(&call.clone().input("x", [], &[x]))?;
    ///     assert_eq!(outcome.get::<f64>("y"), [sum]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Call::run`].
    ///
    /// # Panics
    /// As for [`Call::run`]; also if the call has other shapes, static attributes or another target
    /// than the call site, which are fixed in a program, and if it is for a GPU, whose call sites
    /// are [executed](CallSite::execute) with memory of the caller's.
    pub fn run(&self, call: &Call) -> Result<Outcome> {
        let callable = call.target.callable;
        let name = callable.name;
        assert!(
            callable.platform() == Platform::Cpu,
            "`{name}` runs on a GPU: `instantiate` it"
        );
        let is_of_site = self.is_of(call.target.handlers) && call.attrs() == self.attrs;
        assert!(
            is_of_site && call.layouts().is_ok_and(|layouts| layouts == self.layouts),
            "`{name}` is called with other shapes or static attributes than its call site has"
        );
        let [operands, results] = &self.layouts;
        let inputs = call.inputs();
        let mut operands: Vec<_> = operands
            .iter()
            .zip(&inputs)
            .map(|(layout, input)| match &input.memory {
                Some(memory) => layout.buffer(memory.clone()),
                None => panic!(
                    "an input has a shape and no data: such a call is to be instantiated, not run"
                ),
            })
            .collect();
        let mut results: Vec<_> = results
            .iter()
            .map(|layout| match layout.operand {
                Some(operand) if call.alias => HostResult::Operand(operand),
                _ => HostResult::Own(layout.unwritten()),
            })
            .collect();
        let outcome = self.execute_on_host(&call.host, &mut operands, &mut results);
        // Over an input that has become empty, a result may be.
        let is_moved =
            |change: &Change| matches!(change, Change::Buffer(_, _, BufferChange::Over(..)));
        check_borders(call, &operands, &results, self.changes.iter().any(is_moved));
        outcome?;
        let results = callable.results().zip(results);
        let results = results.map(|((_, param), result)| {
            let buffer = match &result {
                HostResult::Own(buffer) => buffer,
                HostResult::Operand(operand) => &operands[*operand],
            };
            (param.name, (buffer.dims.clone(), buffer.memory.clone()))
        });
        Ok(Outcome {
            callable,
            results: results.collect(),
        })
    }
}

/// Checks that only results were written: nothing around arrays, and no inputs, unless results may
/// be `over` them.
fn check_borders(call: &Call, operands: &[HostBuffer], results: &[HostResult], over: bool) {
    let callable = call.target.callable;
    let is_result = |index| {
        let mut results = results.iter();
        results.any(|result| matches!(result, HostResult::Operand(operand) if *operand == index))
    };
    let params = callable.operands().zip(call.inputs());
    for (index, (((_, param), input), buffer)) in params.zip(operands).enumerate() {
        let (name, memory) = (param.name, &buffer.memory);
        assert!(memory.has_borders(), "memory around `{name}` was written");
        let given = input.memory.as_ref();
        assert!(
            over || is_result(index) || given.is_some_and(|given| memory.begins_as(given)),
            "the memory of `{name}`, which is only read, was written"
        );
    }
    let params = callable.results().chain(callable.scratch());
    for ((_, param), result) in params.zip(results) {
        if let HostResult::Own(buffer) = result {
            let has_borders = buffer.memory.has_borders();
            assert!(has_borders, "memory around `{}` was written", param.name);
        }
    }
}
