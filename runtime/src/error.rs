//! The error of a callable: a code, a message and an optional source.

use std::error::Error as StdError;
use std::fmt;

/// The result of a callable's body.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// XLA's status codes, with their numbers.
///
/// JAX shows the code's upper-case name in front of the message, as in
/// `INVALID_ARGUMENT: ops.saxpy: ...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum Code {
    /// The work was cancelled, typically by the caller.
    Cancelled = 1,
    /// An error of which nothing else is known; what `?` on a foreign error gives.
    Unknown = 2,
    /// An argument is wrong whatever the state of the system.
    InvalidArgument = 3,
    /// The work took too long.
    DeadlineExceeded = 4,
    /// Something that was asked for does not exist.
    NotFound = 5,
    /// Something that was to be made exists already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A limited resource, such as memory, is used up.
    ResourceExhausted = 8,
    /// The system is not in the state that this needs.
    FailedPrecondition = 9,
    /// The work was given up, as by a conflict.
    Aborted = 10,
    /// A value is outside its range.
    OutOfRange = 11,
    /// This is not offered here.
    Unimplemented = 12,
    /// An invariant is broken; what a panic gives.
    Internal = 13,
    /// A service cannot be reached for now.
    Unavailable = 14,
    /// Data is lost or damaged.
    DataLoss = 15,
    /// The caller did not say who it is.
    Unauthenticated = 16,
}

impl Code {
    /// The code of a number.
    pub(crate) fn from_number(number: i32) -> Option<Code> {
        use Code::*;
        [
            Cancelled,
            Unknown,
            InvalidArgument,
            DeadlineExceeded,
            NotFound,
            AlreadyExists,
            PermissionDenied,
            ResourceExhausted,
            FailedPrecondition,
            Aborted,
            OutOfRange,
            Unimplemented,
            Internal,
            Unavailable,
            DataLoss,
            Unauthenticated,
        ]
        .into_iter()
        .find(|&code| code as i32 == number)
    }
}

/// What a callable's body returns when it fails.
///
/// Every `std::error::Error` converts into it, so that `?` works in bodies; such an
/// error gets [`Code::Unknown`] unless [`Error::with_code`] says otherwise. (For that
/// conversion to exist, this type is not a `std::error::Error` itself.)
///
/// ```
/// use jax_callable::{Code, Error};
///
/// fn parse(text: &str) -> jax_callable::Result<f64> {
///     let value: f64 = text.parse()?;
///     if value < 0.0 {
///         return Err(Error::invalid_argument(format!("expected at least 0, got {value}")));
///     }
///     Ok(value)
/// }
///
/// assert_eq!(parse("x").unwrap_err().code(), Code::Unknown);
/// assert_eq!(parse("-1").unwrap_err().code(), Code::InvalidArgument);
/// ```
// Boxed, so that the result of a call that succeeds fits into a register.
pub struct Error(Box<Inner>);

struct Inner {
    code: Code,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

macro_rules! constructors {
    ($($name:ident => $code:ident,)*) => {$(
        #[doc = concat!("An error with [`Code::", stringify!($code), "`].")]
        pub fn $name(message: impl fmt::Display) -> Error {
            Error::new(Code::$code, message)
        }
    )*};
}

impl Error {
    /// An error with a code and a message.
    pub fn new(code: Code, message: impl fmt::Display) -> Error {
        Error(Box::new(Inner {
            code,
            message: message.to_string(),
            source: None,
        }))
    }

    constructors! {
        invalid_argument => InvalidArgument,
        out_of_range => OutOfRange,
        not_found => NotFound,
        failed_precondition => FailedPrecondition,
        resource_exhausted => ResourceExhausted,
        unimplemented => Unimplemented,
        internal => Internal,
    }

    /// The same error under another code.
    #[must_use]
    pub fn with_code(mut self, code: Code) -> Error {
        self.0.code = code;
        self
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The error that this one was made from.
    pub fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(source: E) -> Error {
        Error(Box::new(Inner {
            code: Code::Unknown,
            message: source.to_string(),
            source: Some(Box::new(source)),
        }))
    }
}

/// The message, then those of the sources that it does not repeat.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        // The first source is where the message came from.
        let mut source = self.source().and_then(StdError::source);
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);
    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("cannot read the table")
        }
    }
    impl StdError for Outer {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_foreign_error_keeps_its_chain() {
        let parse = "x".parse::<i32>().unwrap_err();
        let error = Error::from(Outer(parse)).with_code(Code::DataLoss);
        assert_eq!(error.code(), Code::DataLoss);
        assert_eq!(
            error.to_string(),
            "cannot read the table: invalid digit found in string"
        );
        assert!(error.source().is_some());
    }
}
