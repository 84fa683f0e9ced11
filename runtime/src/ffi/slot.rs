//! Where a callable's [`Registration`] is: a static of its own.

use super::entry::fatal;
use crate::param::Definition;
use crate::registry::{self, Registration};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Room for a registration, which is made when the library is first used. Zeros until then, which
/// take no place in a file; a `OnceLock` would not be, and a pointer would be one more to follow
/// in each call. A plain call reads the first two cache lines, which processors fetch in pairs.
#[repr(C, align(128))]
pub struct Slot {
    pub(super) is_filled: AtomicBool,
    registration: UnsafeCell<MaybeUninit<Registration>>,
}

// SAFETY: the registration is written once, under a lock, before `is_filled` is set; from then on
// it is only read, and it is `Sync`.
unsafe impl Sync for Slot {}

const fn is_sync<T: Sync>() {}
const _: () = is_sync::<Registration>();

/// The slot of a definition.
pub(crate) const fn of<D: Definition>() -> &'static Slot {
    // SAFETY: the definition promises that it is a static.
    unsafe { &*D::SLOT }
}

impl Slot {
    /// One that is still to be filled.
    #[expect(clippy::new_without_default, reason = "a static is made of it")]
    pub const fn new() -> Slot {
        Slot {
            is_filled: AtomicBool::new(false),
            registration: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The registration of the callable that has this slot.
    #[inline]
    pub(crate) fn get(&'static self) -> &'static Registration {
        if !self.is_filled.load(Ordering::Acquire) {
            self.wait_for_all();
        }
        // SAFETY: it is filled.
        unsafe { (*self.registration.get()).assume_init_ref() }
    }

    /// The registration, which is made of nothing else if it is not there.
    pub(crate) fn get_or_fill(
        &'static self,
        make: impl FnOnce() -> Registration,
    ) -> &'static Registration {
        static FILLING: Mutex<()> = Mutex::new(());
        // Nothing is half done after a panic.
        let filling = FILLING.lock().unwrap_or_else(|error| error.into_inner());
        if !self.is_filled.load(Ordering::Acquire) {
            let registration = make();
            // SAFETY: nobody reads before `is_filled` is set, and nobody else writes: the lock
            // is held.
            unsafe { (*self.registration.get()).write(registration) };
            self.is_filled.store(true, Ordering::Release);
        }
        drop(filling);
        self.get()
    }

    /// Fills all slots of the library.
    #[cold]
    #[inline(never)]
    fn wait_for_all(&self) {
        registry::registrations();
        if !self.is_filled.load(Ordering::Acquire) {
            fatal("a callable was not registered");
        }
    }
}
