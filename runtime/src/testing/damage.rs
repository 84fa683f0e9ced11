//! Calls whose frames are damaged.

mod fields;

use super::{Call, Outcome};
use crate::error::{Code, Error, Result};
use crate::ffi::host_damage::{BufferChange, Change, List, ListChange};
use crate::ffi::host_site::Layout;
use crate::plan::{BATCH, OUTPUT_DIMS};
use crate::signature::Param;
use std::fmt;

/// One field of a call's frames that is other than XLA makes it, or one attribute of the program.
/// [`Call::damages`] has those of a call.
///
/// Most are mistakes, which a handler must refuse. Some are oddities that must not matter, such as
/// null data of an empty array, or a newer API.
#[derive(Clone, PartialEq, Eq)]
pub struct Damage {
    pub(super) stages: Stages,
    pub(super) change: Change,
    pub(super) param: Option<&'static str>,
}

/// The frames that are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stages {
    Instantiate,
    Execute,
    Both,
}

impl Damage {
    /// The parameter whose buffer or attribute it is, if it is one's.
    pub fn parameter(&self) -> Option<&'static str> {
        self.param
    }

    fn is_in(&self, stage: Stages) -> bool {
        self.stages == stage || self.stages == Stages::Both
    }
}

impl fmt::Debug for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stages {
            Stages::Instantiate => f.write_str("INSTANTIATE")?,
            Stages::Execute => f.write_str("EXECUTE")?,
            Stages::Both => f.write_str("both stages")?,
        }
        if let Some(param) = self.param {
            write!(f, ", `{param}`")?;
        }
        write!(f, ": {:?}", self.change)
    }
}

/// What [`Call::check_damages`] has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamageReport {
    /// Calls that were refused by an error with the target's name, and that of the parameter.
    pub refused: usize,
    /// Calls that gave what the undamaged call gives, or a sound call with the same shapes.
    pub right: usize,
}

impl Call {
    /// Damages its frames, also those of a call site that is [instantiated](Call::instantiate) from
    /// it. The damages must be this call's, as [`damages`](Call::damages) has them.
    ///
    /// Whatever is damaged, [`run`](Call::run) has memory for all shapes that are possible, so that
    /// only a handler that is wrong itself goes out of bounds.
    pub fn damaged(mut self, damages: &[Damage]) -> Call {
        self.damages = damages.to_vec();
        self
    }

    /// The changes of a stage's frame.
    pub(super) fn changes(&self, stage: Stages) -> Vec<Change> {
        let damages = self.damages.iter().filter(|damage| damage.is_in(stage));
        damages.map(|damage| damage.change.clone()).collect()
    }

    /// Runs it with each of its [`damages`](Call::damages) in turn, and checks what comes: an error
    /// that begins with the target's name and has that of the parameter, or the right result.
    ///
    /// The function must give the same result each time. Earlier damages are forgotten.
    ///
    /// ```
    /// use jax_callable::prelude::*;
    /// use jax_callable::testing::Target;
    ///
    /// /// y[i] <- x[i] + .. + x[i + k - 1].
    /// #[jax_callable]
    /// fn windows(
    ///     k: u32,
    ///     #[dims(n)] x: cpu::Array<f32, 1>,
    ///     #[dims(n - k + 1)] mut y: cpu::ArrayMut<f32, 1>,
    /// ) {
    ///     for (y, window) in y.iter_mut().zip(x.windows(k as usize)) {
    ///         *y = window.iter().sum();
    ///     }
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// let call = Target::find("windows")?.call().value("k", 2_u32);
    /// let report = call.input("x", [4], &[1.0_f32, 2.0, 3.0, 4.0]).check_damages()?;
    /// assert!(report.refused > 200 && report.right > 20, "{report:?}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The undamaged call fails, or a damaged one gives something else: the message has the damage.
    ///
    /// # Panics
    /// As for [`run`](Call::run): also if a damaged call writes out of bounds.
    pub fn check_damages(&self) -> Result<DamageReport> {
        let undamaged = self.clone().damaged(&[]).run()?;
        let mut report = DamageReport::default();
        for damage in self.damages() {
            let got = self.clone().damaged(std::slice::from_ref(&damage)).run();
            let wrong = match &got {
                Err(error) => self.wrong_refusal(&damage, error),
                Ok(got) => self.wrong_result(&damage, got, &undamaged),
            };
            if let Some(wrong) = wrong {
                let path = self.target.path();
                let text = format!("{path}: damaged in {damage}, {wrong}");
                return Err(Error::new(Code::FailedPrecondition, text));
            }
            match got {
                Err(_) => report.refused += 1,
                Ok(_) => report.right += 1,
            }
        }
        Ok(report)
    }

    /// What is wrong with an error, if it does not say whose it is and what it is about.
    fn wrong_refusal(&self, damage: &Damage, error: &Error) -> Option<String> {
        let text = error.to_string();
        if !text.starts_with(&format!("{}: ", self.target.path())) {
            return Some(format!("its error does not begin with the target: {text}"));
        }
        let has = |name: &str| text.contains(&format!("`{name}`"));
        let is_named = match (damage.param, &damage.change) {
            (None, _) => true,
            // Two shapes or addresses that do not go together are the mistake of either.
            (_, Change::Buffer(_, _, BufferChange::Dim(..) | BufferChange::Over(..))) => self
                .target
                .callable
                .params
                .iter()
                .any(|param| has(param.name)),
            (Some(name), _) => has(name),
        };
        let of_frame = [
            "the call frame is damaged",
            "not those that INSTANTIATE saw",
        ];
        let is_of_frame = of_frame.iter().any(|part| text.contains(part));
        (!is_named && !is_of_frame)
            .then(|| format!("its error does not say which parameter is wrong: {text}"))
    }

    /// What is wrong with a result, if it is not what the frame asks for.
    fn wrong_result(&self, damage: &Damage, got: &Outcome, undamaged: &Outcome) -> Option<String> {
        let callable = self.target.callable;
        let is_right = match &damage.change {
            // Handlers have nothing to do in stages that they do not know.
            Change::Stage(_) if damage.stages == Stages::Execute => {
                let mut outputs = callable.results().filter(|(_, p)| !p.in_out || !self.alias);
                outputs.all(|(_, param)| got.results[param.name].1.is_unwritten())
            }
            Change::Buffer(_, _, BufferChange::Dim(..)) => match self.sound_twin(damage) {
                Some(twin) => twin.run().is_ok_and(|twin| twin.is_same(got)),
                None => return Some("it is not refused".into()),
            },
            Change::Buffer(_, _, BufferChange::Dtype(_) | BufferChange::Rank(_))
            | Change::List(_, ListChange::Type(..) | ListChange::Null(_)) => {
                return Some("it is not refused".into());
            }
            // An axis of size 1 may be the batch's or not, and a shape what the rules give.
            Change::Attribute(name, value)
                if name != BATCH && (name != OUTPUT_DIMS || value.is_some()) =>
            {
                return Some("it is not refused".into());
            }
            _ => got.is_same(undamaged),
        };
        (!is_right).then(|| "it gives another result than a sound call".into())
    }

    /// The sound call that has the frame of this one after the damage, if that is one: an input, or
    /// an output whose shape is chosen for the call, has another shape.
    fn sound_twin(&self, damage: &Damage) -> Option<Call> {
        let Change::Buffer(list, index, BufferChange::Dim(axis, size)) = damage.change else {
            return None;
        };
        if size < 0 {
            return None;
        }
        let mut twin = self.clone().damaged(&[]);
        let layouts = self.layouts().ok()?;
        let (list, params): (_, Vec<_>) = match list {
            List::Args => (0, self.target.callable.operands().collect()),
            List::Rets => (1, self.target.callable.results().collect()),
        };
        let (_, param) = params.get(index).filter(|(_, param)| !param.in_out)?;
        let own = |layout: &Layout, param: &Param, rank: usize| {
            layout.dims[rank..layout.dims.len() - param.ty.packed.len()].to_vec()
        };
        if !self.output_dims.is_empty() {
            // All outputs stay as they are, whatever the rules make of the other shape.
            let results = self.target.callable.results().zip(&layouts[1]);
            for ((_, param), layout) in results.filter(|((_, param), _)| !param.in_out) {
                let dims = own(layout, param, self.batch.len());
                twin.output_dims.insert(param.name, dims);
            }
        }
        let rank = match twin.inputs.get(param.name) {
            Some(input) => self.axis_sizes(&input.axes).len(),
            None => self.batch.len(),
        };
        let mut dims = own(&layouts[list][index], param, rank);
        *dims.get_mut(axis.checked_sub(rank)?)? = size;
        match twin.inputs.get_mut(param.name) {
            Some(input) => input.dims = dims,
            None if self.output_dims.is_empty() => return None,
            None => drop(twin.output_dims.insert(param.name, dims)),
        }
        let room = twin.layouts().ok()?[list][index].size();
        if let Some(input) = twin.inputs.get_mut(param.name) {
            input.memory = Some(input.memory.as_ref()?.resized(room));
        }
        Some(twin)
    }
}

#[cfg(test)]
mod tests;
