//! The rules between keys and parameters.
//!
//! What a type makes of a parameter is known from its spelling, or only to the type's
//! traits. So each rule is a fact, a question and a text: a fact that is known to be
//! wrong is an error now; an unknown one is asked by the expansion in const context, and
//! has the same text.

use crate::diag::{self, At, Errors, Text};
use crate::model::{Callable, Param, Reference};
use crate::state;
use crate::types::{self, Platform, Role};

/// What the expansion has to ask.
pub(crate) struct Ask {
    pub(crate) at: At,
    pub(crate) question: Question,
    pub(crate) text: Text,
}

/// A question to `check` of the runtime, about parameters by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    HasResult,
    Results(u64),
    IsCuda,
    IsContextFirst(usize),
    IsInOrder(usize),
    IsSamePlatform(usize),
    IsOperand(usize),
    IsResult(usize),
    IsOutput(usize),
    IsInteger(usize),
    HasAxis(usize, usize),
    RankAtMost(usize, usize),
    DimsFit(usize),
    Binds(usize),
    HasSize(usize),
    HasState,
    IsBuiltOnce(usize),
    IsKnownToState(usize),
}

/// Limits of this crate; the runtime's tables have room for as many parameters.
const MAX_RANK: usize = 8;
const MAX_PARAMS: usize = 64;

/// Options of every call in Python.
const CALL_OPTIONS: &[&str] = &["output_dims", "vmap_method"];

#[rustfmt::skip]
const PYTHON_KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
    "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global",
    "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
    "try", "while", "with", "yield",
];

/// Checks all rules.
pub(crate) fn check(callable: &Callable, errors: &mut Errors) -> Vec<Ask> {
    let mut check = Check {
        callable,
        errors,
        asks: Vec::new(),
    };
    check.names();
    check.outputs();
    check.roles();
    check.platforms();
    check.stages();
    check.dims();
    check.bindings();
    check.batch_dims();
    check.state();
    check.asks
}

pub(crate) struct Check<'a> {
    pub(crate) callable: &'a Callable,
    pub(crate) errors: &'a mut Errors,
    asks: Vec<Ask>,
}

impl Check<'_> {
    pub(crate) fn rule(&mut self, fact: Option<bool>, question: Question, at: At, text: Text) {
        match fact {
            Some(true) => {}
            Some(false) => self.errors.push(at, text),
            None => self.asks.push(Ask { at, question, text }),
        }
    }

    fn names(&mut self) {
        let name = &self.callable.name;
        let mut chars = name.text.chars();
        let is_identifier = chars.next().is_some_and(|c| c == '_' || c.is_alphabetic())
            && chars.all(|c| c == '_' || c.is_alphanumeric());
        if !is_identifier || PYTHON_KEYWORDS.contains(&&*name.text) {
            self.errors.push(name.at, diag::bad_target_name(&name.text));
        }
        for param in &self.callable.params {
            if matches!(
                param.guess.role,
                Role::Context | Role::State | Role::PerDevice | Role::Scratch
            ) {
                continue;
            }
            if CALL_OPTIONS.contains(&&*param.name) {
                self.errors.push(param.at, diag::option_name(&param.name));
            }
            if PYTHON_KEYWORDS.contains(&&*param.name) {
                self.errors
                    .push(param.at, diag::python_keyword(&param.name));
            }
        }
        if let Some(ty) = self.callable.hides() {
            let text = diag::hidden_module(&self.callable.ident);
            self.errors.push(At::of(ty), text);
        }
        let count = self.callable.params.len();
        if let Some(param) = self.callable.params.get(MAX_PARAMS) {
            self.errors
                .push(param.at, diag::too_many_parameters(count, MAX_PARAMS));
        }
    }

    fn outputs(&mut self) {
        let callable = self.callable;
        let given = callable.num_outputs.as_ref();
        if let Some(given) = given.filter(|given| given.value == 0) {
            self.errors.push(given.at, diag::zero_outputs());
        }
        if !callable.certain.params {
            return;
        }
        let results = || callable.params.iter().map(Param::is_result);
        let has_result = any(results());
        // What it returns instead is the mistake.
        if has_result == Some(false) && !callable.certain.result {
            return;
        }
        let text = diag::no_output(&callable.name.text);
        self.rule(
            has_result,
            Question::HasResult,
            At::of(&callable.ident),
            text,
        );
        // Without any result, that is the mistake.
        let Some(given) = given.filter(|given| given.value != 0 && has_result != Some(false))
        else {
            return;
        };
        if results().any(|result| result.is_none()) {
            let text = diag::num_outputs_asked(given.value);
            self.rule(None, Question::Results(given.value), given.at, text);
            return;
        }
        let is_in_out = |param: &&Param| param.in_out.is_some();
        let results: Vec<_> = callable
            .params
            .iter()
            .filter(|param| param.is_result() == Some(true))
            .collect();
        let (count, in_outs) = (
            results.len(),
            results.iter().copied().filter(is_in_out).count(),
        );
        if count as u64 != given.value {
            let text = diag::num_outputs(given.value, count, in_outs, count - in_outs);
            self.errors.push(given.at, text);
        }
    }

    fn roles(&mut self) {
        let callable = self.callable;
        for (i, param) in callable.params.iter().enumerate() {
            if let Some(at) = param.in_out {
                let fact = match param.guess.role {
                    Role::ArrayMut => Some(true),
                    Role::Unknown => None,
                    _ => Some(false),
                };
                let text = diag::in_out_not_mutable(&param.name);
                self.rule(fact, Question::IsResult(i), at, text);
            }
            if param.guess.role == Role::Context && i != 0 {
                self.errors
                    .push(param.at, diag::context_not_first(&param.name));
            }
            if param.guess.role == Role::Unknown && i != 0 {
                let text = diag::context_not_first(&param.name);
                self.rule(None, Question::IsContextFirst(i), param.at, text);
            }
            let fact = match param.guess.role {
                Role::Scratch => Some(param.dims.is_some()),
                Role::Unknown if param.dims.is_none() => None,
                _ => Some(true),
            };
            let text = diag::scratch_without_dims(&param.name);
            self.rule(fact, Question::HasSize(i), param.at, text);
            if param.is_array() != Some(false) {
                let fact = param.guess.rank.map(|rank| rank <= MAX_RANK);
                let fact = if param.is_array().is_some() {
                    fact
                } else {
                    None
                };
                let text = diag::rank_too_high(&param.name, MAX_RANK);
                self.rule(
                    fact,
                    Question::RankAtMost(i, MAX_RANK),
                    At::of(&param.ty),
                    text,
                );
            }
        }
        if callable.certain.in_outs {
            self.order();
        }
    }

    /// Outputs come last. Only the first offence is reported: the others follow from it.
    fn order(&mut self) {
        let callable = self.callable;
        let is_output = |i: &usize| callable.params[*i].is_output();
        for (i, param) in callable.params.iter().enumerate() {
            let output = (0..i).find(|j| is_output(j) == Some(true));
            let is_after = any((0..i).map(|j| is_output(&j)));
            let wrong = match (param.is_input(), is_after) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let text = match output {
                Some(output) => diag::after_output(&param.name, &callable.params[output].name),
                None => diag::out_of_order(&param.name),
            };
            self.rule(
                wrong.map(|wrong| !wrong),
                Question::IsInOrder(i),
                param.at,
                text,
            );
            if wrong == Some(true) {
                return;
            }
        }
    }

    fn platforms(&mut self) {
        let params = &self.callable.params;
        let belongs = |param: &Param| {
            param.is_array() != Some(false)
                || matches!(param.guess.role, Role::Context | Role::PerDevice)
        };
        let known = params
            .iter()
            .find_map(|param| Some((param, param.guess.platform?)));
        let unsure = params
            .iter()
            .any(|p| belongs(p) && p.guess.platform.is_none());
        for (i, param) in params
            .iter()
            .enumerate()
            .filter(|(_, param)| belongs(param))
        {
            match (param.guess.platform, known) {
                (Some(platform), Some((first, other))) if platform != other => {
                    let text = diag::mixed_platforms(&param.name, platform.name(), &first.name);
                    self.errors.push(At::of(&param.ty), text);
                }
                _ if unsure => {
                    let text = diag::mixed_platforms_asked(&param.name);
                    self.rule(None, Question::IsSamePlatform(i), At::of(&param.ty), text);
                }
                _ => {}
            }
        }
        if let Some(mode) = &self.callable.graph_mode
            && mode.word.starts_with("Warp")
        {
            let fact = known.map(|(_, platform)| platform == Platform::Cuda);
            self.rule(
                fact,
                Question::IsCuda,
                mode.at,
                diag::graph_mode_on_cpu(mode.word),
            );
        }
    }

    fn stages(&mut self) {
        let callable = self.callable;
        let mode = callable.graph_mode.as_ref().map_or("Jax", |mode| mode.word);
        let stage_in = callable.stage_in.as_deref().unwrap_or_default();
        let stage_out = callable.stage_out.as_deref().unwrap_or_default();
        let unstaged = |check: &mut Self, key, references: &[Reference]| {
            let is_unstaged = !mode.starts_with("WarpStaged");
            if let (true, Some(first)) = (is_unstaged, references.first()) {
                check.errors.push(first.at, diag::stage_unstaged(key, mode));
            }
        };
        unstaged(self, "stage_in", stage_in);
        unstaged(self, "stage_out", stage_out);
        if !callable.certain.in_outs {
            return;
        }
        for Reference { param, at } in stage_in {
            let text = diag::stage_in_output(&callable.params[*param].name);
            let fact = callable.params[*param].is_operand();
            self.rule(fact, Question::IsOperand(*param), *at, text);
        }
        for Reference { param, at } in stage_out {
            let text = diag::stage_out_input(&callable.params[*param].name);
            let fact = callable.params[*param].is_result();
            self.rule(fact, Question::IsResult(*param), *at, text);
        }
    }

    /// One state, with a constructor, which is over what is known before there are calls.
    fn state(&mut self) {
        let callable = self.callable;
        if !callable.certain.state {
            return;
        }
        let mut known = None;
        for (i, param) in callable.params.iter().enumerate() {
            match (param.guess.role, &callable.state, known) {
                (role, None, _) if role.is_state() => {
                    self.errors
                        .push(param.at, diag::nothing_builds(&param.name));
                }
                (role, Some(_), Some(first)) if role.is_state() => {
                    self.errors
                        .push(param.at, diag::second_state(&param.name, first));
                }
                (role, Some(_), None) if role.is_state() => known = Some(&param.name),
                (Role::Unknown, ..) => {
                    let text = diag::state_asked(&param.name);
                    self.rule(None, Question::IsBuiltOnce(i), param.at, text);
                }
                _ => {}
            }
        }
        let Some(constructor) = &callable.state else {
            return;
        };
        let states = state::candidates(callable);
        let is_any = |role| {
            let roles = states.iter().map(|param| param.guess.role);
            any(roles.map(|other| (other != Role::Unknown).then_some(other == role)))
        };
        let is_per_device = is_any(Role::PerDevice);
        let mut params = callable.params.iter();
        let fact = match is_any(Role::State) {
            // The compiler asks for a `&`.
            _ if params.any(|param| types::is_state_by_value(&param.ty)) => Some(true),
            Some(false) => is_per_device,
            known => known,
        };
        let text = diag::no_state_parameter();
        self.rule(fact, Question::HasState, At::of(constructor), text);
        for (i, at) in state::uses(callable) {
            let param = &callable.params[i];
            let (fact, text) = match param.guess.role {
                Role::Integer | Role::Static => continue,
                // Nothing of this name is there: the compiler says so.
                Role::State | Role::PerDevice => continue,
                Role::Context => (is_per_device, diag::state_from_context(&param.name)),
                Role::Unknown => (None, diag::state_from(&param.name)),
                Role::Array | Role::ArrayMut | Role::Scratch => {
                    (Some(false), diag::state_from(&param.name))
                }
            };
            self.rule(fact, Question::IsKnownToState(i), at, text);
        }
    }
}

/// Whether any is true, as far as known.
fn any(facts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(false);
    for fact in facts {
        match fact {
            Some(true) => return Some(true),
            None => result = None,
            Some(false) => {}
        }
    }
    result
}
