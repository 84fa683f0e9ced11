//! Objects by their handles, which are never given twice.

use super::{Fault, Result, misuse};
use cudarc::driver::sys::CUresult;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Table<T> {
    kind: &'static str,
    live: BTreeMap<u64, T>,
    dead: BTreeSet<u64>,
}

impl<T> Table<T> {
    pub(crate) fn new(kind: &'static str) -> Table<T> {
        Table {
            kind,
            live: BTreeMap::new(),
            dead: BTreeSet::new(),
        }
    }

    pub(crate) fn insert(&mut self, handle: u64, value: T) {
        self.live.insert(handle, value);
    }

    pub(crate) fn get(&self, handle: u64) -> Result<&T> {
        self.live.get(&handle).ok_or_else(|| self.absent(handle))
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Result<&mut T> {
        if !self.live.contains_key(&handle) {
            return Err(self.absent(handle));
        }
        Ok(self.live.get_mut(&handle).expect("it is there"))
    }

    pub(crate) fn remove(&mut self, handle: u64) -> Result<T> {
        let value = self.live.remove(&handle);
        let value = value.ok_or_else(|| self.absent(handle))?;
        self.dead.insert(handle);
        Ok(value)
    }

    pub(crate) fn contains(&self, handle: u64) -> bool {
        self.live.contains_key(&handle)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.live.iter().map(|(&handle, value)| (handle, value))
    }

    pub(crate) fn len(&self) -> u64 {
        self.live.len() as u64
    }

    fn absent(&self, handle: u64) -> Fault {
        let kind = self.kind;
        let what = if self.dead.contains(&handle) {
            format!("{kind} {handle:#x} is used after its end")
        } else {
            format!("{handle:#x} is no {kind}")
        };
        misuse(CUresult::CUDA_ERROR_INVALID_HANDLE, what)
    }
}
