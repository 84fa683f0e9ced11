//! The atomics and locks of code whose protocol is checked by loom (`cargo xtask loom`), which
//! tries the orders in which threads can meet, and the old values that they can see: the standard
//! library's, and with `--cfg loom` loom's.

#[cfg(not(loom))]
#[cfg_attr(not(any(feature = "_cuda", test)), allow(unused_imports))]
pub(crate) use std::sync::{
    Condvar, Mutex, Mutex as TryMutex, MutexGuard, MutexGuard as TryMutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, fence},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, fence},
};
#[cfg(loom)]
pub(crate) use try_mutex::{TryMutex, TryMutexGuard};

/// A mutex that can be tried. Loom's tells at once that it is free; of a real one a failed try is
/// a relaxed load, which may see that it was taken before.
#[cfg(loom)]
mod try_mutex {
    use super::{AtomicBool, Mutex, MutexGuard};
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::Ordering;
    use std::sync::{LockResult, TryLockError, TryLockResult};

    pub(crate) struct TryMutex<T> {
        is_taken: AtomicBool,
        inner: Mutex<T>,
    }

    pub(crate) struct TryMutexGuard<'a, T> {
        is_taken: &'a AtomicBool,
        inner: MutexGuard<'a, T>,
    }

    impl<T> TryMutex<T> {
        pub(crate) fn new(value: T) -> TryMutex<T> {
            TryMutex {
                is_taken: AtomicBool::new(false),
                inner: Mutex::new(value),
            }
        }

        pub(crate) fn lock(&self) -> LockResult<TryMutexGuard<'_, T>> {
            Ok(self.taken(self.inner.lock().expect("loom poisons nothing")))
        }

        pub(crate) fn try_lock(&self) -> TryLockResult<TryMutexGuard<'_, T>> {
            if self.is_taken.load(Ordering::Relaxed) {
                return Err(TryLockError::WouldBlock);
            }
            match self.inner.try_lock() {
                Ok(inner) => Ok(self.taken(inner)),
                Err(_) => Err(TryLockError::WouldBlock),
            }
        }

        fn taken<'a>(&'a self, inner: MutexGuard<'a, T>) -> TryMutexGuard<'a, T> {
            self.is_taken.store(true, Ordering::Relaxed);
            TryMutexGuard {
                is_taken: &self.is_taken,
                inner,
            }
        }
    }

    impl<T> Deref for TryMutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.inner
        }
    }

    impl<T> DerefMut for TryMutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.inner
        }
    }

    impl<T> Drop for TryMutexGuard<'_, T> {
        fn drop(&mut self) {
            self.is_taken.store(false, Ordering::Release);
        }
    }
}
