//! A call of a callable allocates nothing.

use super::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is handed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(data, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn executing_allocates_nothing() {
    for (minor, batch) in [(1, ""), (3, ""), (5, ""), (3, "1,1")] {
        let context = Context::new();
        let mut case = Case::new();
        if !batch.is_empty() {
            case.set("jc.batch", AttrSpec::Str(batch.into()));
            for buffer in [0, 1] {
                case.frame.args[buffer].dims = vec![3, 1];
            }
            case.frame.rets[0].dims = vec![3, 1];
            case.frame.rets[1].dims = vec![3];
            let mut room = [0.0_f32; 3];
            case.frame.rets[1].data = room.as_mut_ptr().cast();
            count(&mut case, minor, &context);
            assert_eq!(room, [11.0, 23.0, 35.0]);
        } else {
            count(&mut case, minor, &context);
            assert_eq!(case.sum[0], 69.0);
        }
    }
}

fn count(case: &mut Case, minor: i32, context: &Context) {
    case.instantiate(minor, context).unwrap();
    count_in(&mut case.frame, entry::handler::<Def>, minor, context);
}

fn count_in(frame: &mut FrameSpec, handler: sys::Handler, minor: i32, context: &Context) {
    frame.with_frame(host::table(minor), context, |frame| {
        let mut call = || {
            allocations(|| {
                // SAFETY: the frame is right.
                let error = unsafe { handler(frame) };
                assert!(error.is_null());
            })
        };
        // The first call of a call site may note what it finds.
        call();
        assert_eq!(call(), 0, "API 0.{minor}");
    });
}

#[test]
fn scratch_allocates_nothing() {
    for minor in host::MINOR_VERSIONS {
        let context = Context::new();
        let mut case = super::scratch::SumsCase::new();
        case.instantiate(minor, &context);
        let handler = entry::handler::<super::scratch::sums::Def>;
        count_in(&mut case.frame, handler, minor, &context);
        assert_eq!(case.y[..3], [1.0, 3.0, 6.0]);
    }
}

#[test]
fn state_is_found_without_allocating() {
    for minor in host::MINOR_VERSIONS {
        let context = Context::new();
        let mut case = super::state::VisitCase::new(false);
        case.instantiate(minor, &context).unwrap();
        let handler = entry::handler::<super::state::visit::Def>;
        count_in(&mut case.frame, handler, minor, &context);
        assert_eq!(case.y, [4, 4]);
    }
}
