//! The graphs of a call site, one place for each device.

use super::site::SiteGraphs;
use crate::cuda::device::{Device, MAX_DEVICES};
use crate::error::{Error, Result};
use crate::graph::slot::Slot;
use crate::graph::target::Target;
use crate::signature::GraphMode;
use std::sync::{Arc, OnceLock};

type Place = OnceLock<Arc<Slot<SiteGraphs>>>;

/// The graphs of one call site, for each device.
#[derive(Default)]
pub(crate) struct Slots(OnceLock<Box<[Place; MAX_DEVICES]>>);

impl std::fmt::Debug for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

impl Slots {
    /// Makes the graphs of a device, which is current, if they are not there.
    pub(crate) fn prepare(
        &self,
        device: &'static Device,
        target: &Arc<Target>,
        mode: GraphMode,
    ) -> Result<()> {
        let slots = self
            .0
            .get_or_init(|| Box::new([const { OnceLock::new() }; MAX_DEVICES]));
        let slot = &slots[device.ordinal()];
        if slot.get().is_none() {
            let graphs = SiteGraphs::new(device, target, mode)?;
            slot.get_or_init(|| Slot::new(target, graphs));
        }
        Ok(())
    }

    /// The graphs of a device that was prepared.
    pub(crate) fn on(&self, ordinal: i32) -> Result<&Slot<SiteGraphs>> {
        let index = usize::try_from(ordinal).unwrap_or(MAX_DEVICES);
        let slots = self.0.get().and_then(|slots| slots.get(index));
        let slot = slots.and_then(OnceLock::get);
        slot.map(|slot| &**slot).ok_or_else(|| {
            Error::internal("XLA called EXECUTE on a device without INITIALIZE before")
        })
    }
}
