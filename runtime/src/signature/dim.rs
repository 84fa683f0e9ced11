//! Expressions for dimensions.

/// An expression for a dimension.
#[derive(Debug)]
pub enum Dim {
    /// A number.
    Const(i64),
    /// A named dimension, by position in [`Callable::dim_names`](super::Callable::dim_names).
    Name(usize),
    /// An axis of an array parameter, by the position of the parameter.
    Axis(usize, usize),
    /// An integer static attribute, by the position of the parameter.
    Scalar(usize),
    /// Arithmetic.
    Op(DimOp, &'static Dim, &'static Dim),
}

/// Arithmetic on dimensions: 64-bit signed, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`, rounded down
    Div,
    /// `a % b`, with the sign of `b`
    Rem,
    /// `a.div_ceil(b)`
    DivCeil,
    /// `a.min(b)`
    Min,
    /// `a.max(b)`
    Max,
}

impl DimOp {
    /// Its name in the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            DimOp::Add => "+",
            DimOp::Sub => "-",
            DimOp::Mul => "*",
            DimOp::Div => "/",
            DimOp::Rem => "%",
            DimOp::DivCeil => "div_ceil",
            DimOp::Min => "min",
            DimOp::Max => "max",
        }
    }
}
