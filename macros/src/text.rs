//! The description as text: what the runtime makes its own of when it is asked for.
//!
//! Numbers are decimal and end with a colon; texts follow their number of bytes. The place in the
//! source is added by the expansion: the line in front, module and file, with a NUL between, behind.

use crate::model::{Callable, Dim, DimKind, Origin, Param};
use std::fmt::Write;

/// Everything but the place in the source and what types and the attribute's keys say.
pub(crate) fn write(callable: &Callable) -> String {
    let mut text = Text(String::new());
    text.text(&callable.name.text);
    text.text(&callable.doc);
    text.number(callable.dim_names.len());
    for name in &callable.dim_names {
        text.text(name);
    }
    for param in &callable.params {
        text.param(param);
    }
    text.0
}

struct Text(String);

impl Text {
    fn number(&mut self, number: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{number}:");
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.push_str(text);
    }

    /// The name, a flag for in-outs, and the dimensions: 0 for none, 1 for its own, 2 for those of
    /// all outputs.
    fn param(&mut self, param: &Param) {
        self.text(&param.name);
        self.number(u8::from(param.in_out.is_some()));
        let Some(list) = &param.dims else {
            return self.number(0);
        };
        let is_of_all = list.origin == Origin::All && param.is_output().is_none();
        self.number(1 + u8::from(is_of_all));
        self.number(list.dims.len());
        for dim in &list.dims {
            self.dim(dim);
        }
    }

    fn dim(&mut self, dim: &Dim) {
        match &dim.kind {
            DimKind::Const(value) => {
                self.text("Const");
                self.number(value);
            }
            DimKind::Name(name) => {
                self.text("Name");
                self.number(name);
            }
            DimKind::Axis(param, axis) => {
                self.text("Axis");
                self.number(param);
                self.number(axis);
            }
            DimKind::Scalar(param) => {
                self.text("Scalar");
                self.number(param);
            }
            DimKind::Op(op, args) => {
                self.text(op);
                args.iter().for_each(|arg| self.dim(arg));
            }
        }
    }
}
