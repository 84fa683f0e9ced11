//! The driver: what it exports is in `api` and `control`, what it is in the other files.
//!
//! | file | what |
//! |---|---|
//! | `world` | everything there is, behind one lock, and the scheduler of its queues |
//! | `table` | objects by their handles |
//! | `memory` | device memory: bounds, life, poison |
//! | `work` | what streams and graphs do |
//! | `kernels` | the functions that modules can have |
//! | `stream` | streams and events |
//! | `capture` | captures and their rules |
//! | `graph` | graphs, executables, updates |
//! | `fault` | which calls fail |
//! | `call` | what all calls have in common |
//! | `control` | the tests' side |

mod api;
mod call;
mod capture;
pub(crate) mod control;
mod fault;
mod graph;
pub(crate) mod kernels;
mod memory;
mod random;
mod stream;
mod table;
mod work;
mod world;

use cudarc::driver::sys::CUresult;

/// How many devices there are.
pub(crate) const DEVICES: usize = 64;

/// Why a call fails, and what its caller must not have done, if that is why.
pub(crate) struct Fault {
    code: CUresult,
    misuse: Option<String>,
}

type Result<T = ()> = std::result::Result<T, Fault>;

impl From<CUresult> for Fault {
    fn from(code: CUresult) -> Fault {
        Fault { code, misuse: None }
    }
}

/// Something that a real driver may answer with undefined behaviour.
fn misuse(code: CUresult, text: impl Into<String>) -> Fault {
    Fault {
        code,
        misuse: Some(text.into()),
    }
}
