//! soft.rs - events that this process raises itself.
use crate::error::{status, Result};
use crate::session::Attr;
use crate::sys;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// An event of all threads that have joined; the one that opens it has.
#[derive(Debug)]
pub struct SoftEvent {
    event: NonNull<sys::perfring_soft_event>,
    is_read: AtomicBool,        // it is in a session's list
    next: AtomicPtr<SoftEvent>, // of that list; its session's alone
}

// SAFETY: C allows each call in any thread (soft.h), and close where no other thread uses the event, which a drop is.
unsafe impl Send for SoftEvent {}
// SAFETY: what &SoftEvent allows may run at the same time, but for reading the rings, which one session may: `is_read`.
unsafe impl Sync for SoftEvent {}

impl SoftEvent {
    /// Opens it; enabled unless the attr says disabled.
    pub fn open(attr: &Attr) -> Result<SoftEvent> {
        let mut opened = core::ptr::null_mut();
        // SAFETY: the attr is whole.
        status(unsafe { sys::perfring_soft_open(&mut opened, attr.get(), sys::PERFRING_SOFT_PROCESS, core::ptr::null_mut()) })?;
        // SAFETY: without an error it is not null.
        let event = unsafe { NonNull::new_unchecked(opened) };
        Ok(SoftEvent { event, is_read: AtomicBool::new(false), next: AtomicPtr::new(null_mut()) })
    }

    /// One ring for each thread. pages: data pages, a power of two.
    pub fn map(&mut self, pages: u32) -> Result<()> {
        // SAFETY: the event is open.
        status(unsafe { sys::perfring_soft_map(self.event.as_ptr(), pages, -1) })
    }

    /// From now on it counts.
    pub fn enable(&self) {
        // SAFETY: the event is open.
        unsafe { sys::perfring_soft_enable(self.event.as_ptr(), false) }
    }

    /// Not any more.
    pub fn disable(&self) {
        // SAFETY: the event is open.
        unsafe { sys::perfring_soft_disable(self.event.as_ptr(), false) }
    }

    pub(crate) fn rings(&self) -> *mut sys::perfring_set {
        // SAFETY: the event is open.
        unsafe { sys::perfring_soft_rings(self.event.as_ptr()) }
    }

    /// Makes it the first of a session's list, whose first was `next`. False: another session reads it, or this one.
    pub(crate) fn take(&self, next: *const SoftEvent) -> bool {
        // Acquire pairs with the release of `give_back`: the last session has left the rings.
        let is_free = !self.is_read.swap(true, Ordering::Acquire);
        if is_free {
            self.next.store(next as *mut SoftEvent, Ordering::Relaxed);
        }
        is_free
    }

    /// The session reads it no more. Returns the next of its list.
    pub(crate) fn give_back(&self) -> *const SoftEvent {
        let next = self.next.load(Ordering::Relaxed);
        self.is_read.store(false, Ordering::Release);
        next
    }
}

impl Drop for SoftEvent {
    fn drop(&mut self) {
        // SAFETY: it is closed once, after the sessions that read it.
        unsafe { sys::perfring_soft_close(self.event.as_ptr()) }
    }
}
