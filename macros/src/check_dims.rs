//! The rules on dimensions.

use crate::check::{Check, Question};
use crate::diag::{self, At};
use crate::model::{Dim, DimKind, DimList, Origin, Param};
use crate::types::Role;

/// How many named dimensions the runtime keeps.
const MAX_DIM_NAMES: usize = 64;

impl Check<'_> {
    /// Dimensions by themselves.
    pub(crate) fn dims(&mut self) {
        let callable = self.callable;
        let names = callable.dim_names.len();
        if names > MAX_DIM_NAMES {
            let text = diag::too_many_dim_names(names, MAX_DIM_NAMES);
            self.errors.push(At::of(&callable.ident), text);
        }
        for (i, param) in callable.params.iter().enumerate() {
            let Some(list) = &param.dims else {
                continue;
            };
            if param.is_array() == Some(false) {
                self.errors.push(list.at, diag::dims_not_array(&param.name));
                continue;
            }
            if list.origin == Origin::Named {
                let text = diag::not_an_output(&param.name, "", "`ArrayMut` parameters");
                self.rule(param.is_output(), Question::IsOutput(i), list.at, text);
            }
            let given = list.dims.len();
            let text = match param.guess.rank {
                Some(rank) => diag::dims_count(&param.name, given, rank),
                None => diag::dims_count_asked(&param.name, given),
            };
            let fact = param.guess.rank.map(|rank| rank == given);
            self.rule(fact, Question::DimsFit(i), list.at, text);
            list.visit(|dim, _, _| self.dim(dim));
        }
    }

    fn dim(&mut self, dim: &Dim) {
        let params = &self.callable.params;
        match dim.kind {
            DimKind::Scalar(i) => {
                let fact = match params[i].guess.role {
                    Role::Integer => Some(true),
                    Role::Unknown => None,
                    _ => Some(false),
                };
                let text = diag::not_an_integer(&params[i].name);
                self.rule(fact, Question::IsInteger(i), dim.at, text);
            }
            DimKind::Axis(i, axis) => {
                let param = &params[i];
                if self.callable.certain.in_outs {
                    let text = diag::axis_of_no_input(&param.name);
                    self.rule(param.is_operand(), Question::IsOperand(i), dim.at, text);
                }
                if param.is_operand() == Some(false) {
                    return;
                }
                let text = match param.guess.rank {
                    Some(rank) => diag::no_such_axis(&param.name, axis, rank),
                    None => diag::no_such_axis_asked(&param.name, axis),
                };
                let fact = param.guess.rank.map(|rank| axis < rank);
                self.rule(fact, Question::HasAxis(i, axis), dim.at, text);
            }
            DimKind::Op("Div" | "Rem" | "DivCeil", ref args) => {
                if let DimKind::Const(0) = args[1].kind {
                    self.errors.push(args[1].at, diag::zero_divisor());
                }
            }
            DimKind::Const(_) | DimKind::Name(_) | DimKind::Op(..) => {}
        }
    }

    /// Each name must be bound by an input, where it stands alone.
    pub(crate) fn bindings(&mut self) {
        let callable = self.callable;
        let misplaced = |p: &Param| p.dims.is_some() && p.is_array() == Some(false);
        if !callable.certain.dims
            || !callable.certain.in_outs
            || callable.params.iter().any(misplaced)
        {
            return;
        }
        let lists = || {
            callable
                .params
                .iter()
                .filter_map(|p| Some((p, p.dims.as_ref()?)))
        };
        let binds = |name: usize| {
            let mut fact = Some(false);
            for (param, list) in lists() {
                let alone = |dim: &Dim| matches!(dim.kind, DimKind::Name(n) if n == name);
                match param.is_operand() {
                    _ if !list.dims.iter().any(alone) => {}
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => fact = None,
                }
            }
            fact
        };
        for (name, text) in callable.dim_names.iter().enumerate() {
            let fact = binds(name);
            if fact == Some(true) {
                continue;
            }
            let bound = callable.dim_names.iter().enumerate();
            let bound = bound
                .filter(|(n, _)| binds(*n) == Some(true))
                .map(|(_, name)| &**name);
            let hint = diag::hint(text, bound);
            // Where it is used first.
            let mut used = None;
            for (param, list) in lists() {
                list.visit(|dim, _, _| {
                    if matches!(dim.kind, DimKind::Name(n) if n == name) {
                        used.get_or_insert((dim.at, param.is_operand()));
                    }
                });
            }
            let Some((at, in_operand)) = used else {
                continue;
            };
            let text = if in_operand == Some(true) {
                diag::unbound_dim(text, hint)
            } else {
                diag::unbound_output_dim(text, hint)
            };
            self.rule(fact, Question::Binds(name), at, text);
        }
    }

    /// Batch dimensions lead, once in an array, in no expression, in all results.
    pub(crate) fn batch_dims(&mut self) {
        let callable = self.callable;
        if callable.batch_dims.is_empty() || !callable.certain.dims {
            return;
        }
        let mut batch = Vec::new();
        for name in &callable.batch_dims {
            match callable.dim_names.iter().position(|dim| *dim == name.text) {
                Some(dim) => batch.push(dim),
                None => {
                    let dims = || callable.dim_names.iter().map(String::as_str);
                    let hint = diag::hint(&name.text, dims());
                    let text = diag::unknown_batch_dim(&name.text, hint, diag::list(dims()));
                    self.errors.push(name.at, text);
                }
            }
        }
        if batch.len() < callable.batch_dims.len() {
            return;
        }
        let names = || batch.iter().map(|dim| &*callable.dim_names[*dim]);
        let leads = |list: &DimList| {
            let first = list.dims.first().map(|dim| &dim.kind);
            matches!(first, Some(DimKind::Name(n)) if batch.contains(n))
        };
        // Scratch is one for the whole batch, whatever its size hangs on.
        let arrays = callable.params.iter();
        for param in arrays.filter(|param| param.guess.role != Role::Scratch) {
            if let Some(list) = &param.dims {
                self.batch_dims_of(param, list, &batch);
            }
        }
        // Without dimensions of its own, an output has those of the first array input.
        let first = callable
            .params
            .iter()
            .find(|param| param.is_operand() != Some(false));
        for param in callable
            .params
            .iter()
            .filter(|p| p.is_result() == Some(true))
        {
            let source = match (&param.dims, first) {
                (None, Some(first)) if param.in_out.is_none() => first,
                _ => param,
            };
            let is_known = source.is_operand().is_some();
            let has = source.dims.as_ref().is_some_and(&leads);
            // A batch dimension in another place is reported already.
            let elsewhere = source
                .dims
                .as_ref()
                .is_some_and(|list| mentions(list, &batch));
            if is_known && !has && !elsewhere {
                let text = diag::result_without_batch_dim(&param.name, diag::list(names()));
                self.errors.push(param.at, text);
            }
        }
    }

    fn batch_dims_of(&mut self, param: &Param, list: &DimList, batch: &[usize]) {
        let callable = self.callable;
        let is_batch = |dim: &Dim| match dim.kind {
            DimKind::Name(n) => batch.contains(&n).then_some(n),
            // An axis that is a batch dimension under another name.
            DimKind::Axis(i, axis) => {
                let dims = callable.params[i].dims.as_ref()?;
                match dims.dims.get(axis)?.kind {
                    DimKind::Name(n) => batch.contains(&n).then_some(n),
                    _ => None,
                }
            }
            _ => None,
        };
        let mut wrong: Vec<(At, diag::Text)> = Vec::new();
        list.visit(|dim, axis, inside| {
            let Some(n) = is_batch(dim) else {
                return;
            };
            let name = &callable.dim_names[n];
            if inside || matches!(dim.kind, DimKind::Axis(..)) {
                wrong.push((dim.at, diag::batch_dim_in_expression(name)));
            } else if axis != 0 {
                wrong.push((dim.at, diag::batch_dim_not_leading(name, &param.name)));
            }
        });
        for (at, text) in wrong {
            self.errors.push(at, text);
        }
    }
}

fn mentions(list: &DimList, batch: &[usize]) -> bool {
    let mut found = false;
    list.visit(|dim, _, _| {
        found |= matches!(dim.kind, DimKind::Name(n) if batch.contains(&n));
    });
    found
}
