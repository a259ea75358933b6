//! soft.rs - events that this process raises itself.
use crate::error::{status, Result};
use crate::session::Attr;
use crate::sys;
use core::ptr::NonNull;

/// An event of all threads that have joined; the one that opens it has.
#[derive(Debug)]
pub struct SoftEvent(NonNull<sys::perfring_soft_event>); // neither Send nor Sync

impl SoftEvent {
    /// Opens it; enabled unless the attr says disabled.
    pub fn open(attr: &Attr) -> Result<SoftEvent> {
        let mut opened = core::ptr::null_mut();
        // SAFETY: the attr is whole.
        status(unsafe { sys::perfring_soft_open(&mut opened, attr.get(), sys::PERFRING_SOFT_PROCESS, core::ptr::null_mut()) })?;
        // SAFETY: without an error it is not null.
        Ok(SoftEvent(unsafe { NonNull::new_unchecked(opened) }))
    }

    /// One ring for each thread. pages: data pages, a power of two.
    pub fn map(&mut self, pages: u32) -> Result<()> {
        // SAFETY: the event is open.
        status(unsafe { sys::perfring_soft_map(self.0.as_ptr(), pages, -1) })
    }

    /// From now on it counts.
    pub fn enable(&self) {
        // SAFETY: the event is open.
        unsafe { sys::perfring_soft_enable(self.0.as_ptr(), false) }
    }

    /// Not any more.
    pub fn disable(&self) {
        // SAFETY: the event is open.
        unsafe { sys::perfring_soft_disable(self.0.as_ptr(), false) }
    }

    pub(crate) fn rings(&self) -> *mut sys::perfring_set {
        // SAFETY: the event is open.
        unsafe { sys::perfring_soft_rings(self.0.as_ptr()) }
    }
}

impl Drop for SoftEvent {
    fn drop(&mut self) {
        // SAFETY: it is closed once, after the sessions that read it.
        unsafe { sys::perfring_soft_close(self.0.as_ptr()) }
    }
}
