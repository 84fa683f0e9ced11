//! State: built by INSTANTIATE, used by EXECUTE, dropped with the call site.

use super::*;
use crate::testing::Target;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts its visits, and may panic when dropped.
pub(super) struct Guest {
    name: String,
    panics: bool,
    visits: AtomicU32,
}

static DROPPED: AtomicU32 = AtomicU32::new(0);

impl Guest {
    fn new(name: &str, weights: &[f32], panics: bool) -> Result<Guest> {
        match weights {
            [] => Err(Error::not_found("no weights")),
            [0.0] => panic!("a weight of 0"),
            _ => Ok(Guest {
                name: name.to_owned(),
                panics,
                visits: AtomicU32::new(weights.len() as u32),
            }),
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.panics {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            panic!("{} does not leave", self.name);
        }
    }
}

/// y <- how often this was called before, beginning with the number of weights.
#[jax_callable(state = Guest::new(name, weights, panics))]
pub(super) fn visit(
    name: &str,
    weights: &[f32],
    panics: bool,
    #[dims(n)] x: cpu::Array<f32, 1>,
    guest: &State<Guest>,
    #[dims(n)] mut y: cpu::ArrayMut<u32, 1>,
) {
    assert_eq!(
        (name, panics, x.len()),
        (&*guest.name, guest.panics, y.len())
    );
    assert!(!weights.is_empty());
    y.fill(guest.visits.fetch_add(1, Ordering::Relaxed));
}

type Visit = visit::Def;

pub(super) struct VisitCase {
    pub(super) frame: FrameSpec,
    x: [f32; 2],
    pub(super) y: [u32; 2],
}

impl VisitCase {
    pub(super) fn new(panics: bool) -> Box<VisitCase> {
        let mut case = Box::new(VisitCase {
            frame: FrameSpec::new(sys::stage::EXECUTE),
            x: [0.0; 2],
            y: [u32::MAX; 2],
        });
        case.frame.attrs = vec![
            ("name".into(), AttrSpec::Str("Ann".into())),
            ("weights".into(), AttrSpec::I64Array(vec![1, 2, 3])),
            ("panics".into(), AttrSpec::I64(panics.into())),
        ];
        case.frame.args = vec![f32s(&mut case.x)];
        case.frame.rets = vec![BufferSpec {
            dtype: DataType::U32 as i32,
            dims: vec![2],
            data: case.y.as_mut_ptr().cast(),
        }];
        case
    }

    pub(super) fn instantiate(&self, minor: i32, context: &Context) -> Result<(), Failure> {
        let mut frame = FrameSpec::new(sys::stage::INSTANTIATE);
        frame.attrs = self.frame.attrs.clone();
        // SAFETY: there are no buffers.
        unsafe { frame.call(entry::handler::<Visit>, host::table(minor), context) }
    }

    fn execute(&mut self, minor: i32, context: &Context) -> Result<(), Failure> {
        // SAFETY: the buffers are this case's own.
        unsafe {
            self.frame
                .call(entry::handler::<Visit>, host::table(minor), context)
        }
    }
}

#[test]
fn each_call_site_has_its_own_in_every_version() {
    for minor in host::MINOR_VERSIONS {
        let mut case = VisitCase::new(false);
        let contexts = [Context::new(), Context::new()];
        for context in &contexts {
            case.instantiate(minor, context).unwrap();
        }
        for (run, site) in [(3, 0), (4, 0), (3, 1), (5, 0), (4, 1)] {
            case.execute(minor, &contexts[site]).unwrap();
            assert_eq!(case.y, [run; 2], "API 0.{minor}");
        }
    }
}

#[test]
fn a_drop_that_panics_is_contained() {
    let before = DROPPED.load(Ordering::Relaxed);
    let mut case = VisitCase::new(true);
    let context = Context::new();
    case.instantiate(3, &context).unwrap();
    case.execute(3, &context).unwrap();
    drop(context);
    assert_eq!(DROPPED.load(Ordering::Relaxed), before + 1);
}

#[test]
fn without_instantiate_there_is_no_state() {
    let mut case = VisitCase::new(false);
    let failure = case.execute(3, &Context::new()).unwrap_err();
    assert!(failure.message.contains("State is not set"), "{failure:?}");
    assert_eq!(case.y, [u32::MAX; 2]);
}

#[test]
fn a_call_site_of_another_callable_has_none_either() {
    let mut case = VisitCase::new(false);
    let context = Context::new();
    Case::new().instantiate(3, &context).unwrap();
    let failure = case.execute(3, &context).unwrap_err();
    assert_eq!(failure.code, Code::Internal as i32, "{failure:?}");
    assert_eq!(case.y, [u32::MAX; 2]);
}

fn error_with(weights: &[f32]) -> Error {
    let call = Target::find("visit").unwrap().call();
    let call = call.value("name", "Ann").value("panics", false);
    let call = call.value("weights", weights).input("x", [1], &[0.0_f32]);
    call.run().expect_err("the constructor fails")
}

#[test]
fn constructors_that_fail() {
    let error = error_with(&[]);
    assert_eq!(error.code(), Code::NotFound);
    let text = error.to_string();
    assert_eq!(
        text,
        "jax_callable.visit: cannot build its state: no weights"
    );
    let error = error_with(&[0.0]);
    assert_eq!(error.code(), Code::Internal);
    assert_eq!(
        error.to_string(),
        "jax_callable.visit: panicked: a weight of 0"
    );
}

/// y <- the length of a list that only the test holds otherwise.
#[jax_callable(state = Arc::new(vec![k; 3]))]
fn shared(k: u8, list: &State<Arc<Vec<u8>>>, #[dims()] mut y: cpu::ArrayMut<u8, 0>) {
    assert!(list.iter().all(|&item| item == k));
    y[[]] = list.len() as u8;
}

#[test]
fn the_harness_builds_state_and_batches_share_it() {
    let outcome = Target::find("shared")
        .unwrap()
        .call()
        .value("k", 5_u8)
        .run();
    assert_eq!(outcome.unwrap().get::<u8>("y"), [3]);
    let call = Target::find("visit").unwrap().call().batch_size(3);
    let call = call.value("name", "Bea").value("panics", false);
    let call = call.value("weights", [1.0_f32]);
    let outcome = call.batched_input("x", [2], &[0.0_f32; 6]).run().unwrap();
    assert_eq!(outcome.get::<u32>("y"), [1, 1, 2, 2, 3, 3]);
}
