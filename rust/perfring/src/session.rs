//! session.rs - the kernel's events: attrs, targets, and many rings as one stream.
use crate::decode::Item;
use crate::error::{status, Error, Result};
use crate::sys;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// What is observed, as `struct perf_event_attr`: its members are those of [`Attr::members`].
#[derive(Clone, Copy, Debug)]
pub struct Attr(sys::perf_event_attr);

/// Bytes of the attr that count: up to config3. Older kernels are given what they know.
const SIZE: u32 = 136;

impl Attr {
    /// An event in perf's syntax ("cpu-clock", "page-faults:u"), without samples.
    pub fn parse(text: &str) -> Result<Attr> {
        let mut bytes = [0u8; 1024];
        if text.len() >= bytes.len() || text.bytes().any(|byte| byte == 0) {
            return Err(Error::from_code(-sys::EINVAL));
        }
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        // SAFETY: all members are numbers, and 0 is one of each.
        let mut attr: sys::perf_event_attr = unsafe { MaybeUninit::zeroed().assume_init() };
        let mut fault = sys::perfring_fault { at: 0, what: core::ptr::null() };
        attr.size = SIZE;
        // SAFETY: the text ends with a NUL; the struct is larger than any header's.
        match unsafe { sys::perfring_event_parse(bytes.as_ptr().cast(), &mut attr, &mut fault) } {
            0 => Ok(Attr(attr)),
            // SAFETY: the text is null or constant.
            code => Err(unsafe { Error::of_fault(code, &fault) }),
        }
    }

    /// Samples with these fields (`PERFRING_SAMPLE_`), and a trailer in other records.
    pub fn sample_type(mut self, fields: u64) -> Attr {
        self.0.sample_type = fields;
        self.flag(sys::PERFRING_ATTR_FLAG_sample_id_all, true)
    }

    /// A sample after each `period` occurrences, or ns of a clock.
    pub fn period(mut self, period: u64) -> Attr {
        self.0.sample_period = period;
        self.flag(sys::PERFRING_ATTR_FLAG_freq, false)
    }

    /// As many samples a second.
    pub fn frequency(mut self, frequency: u64) -> Attr {
        self.0.sample_period = frequency;
        self.flag(sys::PERFRING_ATTR_FLAG_freq, true)
    }

    /// flag: `PERFRING_ATTR_FLAG_`, of one bit. Panics above 63: the word of flags has no such bit.
    pub fn flag(mut self, flag: u32, set: bool) -> Attr {
        assert!(flag < 64, "a bit of a word");
        // SAFETY: it is a whole struct.
        unsafe { sys::perfring_attr_set_flag(&mut self.0, flag, set) }
        self
    }

    /// All others.
    pub fn members(&self) -> &sys::perf_event_attr {
        &self.0
    }

    pub(crate) fn get(&self) -> *const sys::perf_event_attr {
        &self.0
    }
}

/// Which threads and CPUs.
#[derive(Debug)]
pub struct Target(NonNull<sys::perfring_target>);

// SAFETY: one thread at a time.
unsafe impl Send for Target {}

impl Target {
    /// Of nothing yet.
    pub fn open() -> Result<Target> {
        let mut opened = core::ptr::null_mut();
        // SAFETY: it writes a pointer.
        status(unsafe { sys::perfring_target_open(&mut opened) })?;
        // SAFETY: without an error it is not null.
        Ok(Target(unsafe { NonNull::new_unchecked(opened) }))
    }

    /// All CPUs that are online.
    pub fn add_cpus(&mut self) -> Result<()> {
        // SAFETY: null: all.
        status(unsafe { sys::perfring_target_add_cpus(self.0.as_ptr(), core::ptr::null()) })
    }

    /// All threads that the process has now.
    pub fn add_process(&mut self, pid: i32) -> Result<()> {
        // SAFETY: any number may be given.
        status(unsafe { sys::perfring_target_add_process(self.0.as_ptr(), pid) })
    }

    /// One thread; 0: the calling one.
    pub fn add_thread(&mut self, tid: i32) -> Result<()> {
        // SAFETY: any number may be given.
        status(unsafe { sys::perfring_target_add_thread(self.0.as_ptr(), tid) })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // SAFETY: it is closed once.
        unsafe { sys::perfring_target_close(self.0.as_ptr()) }
    }
}

/// Many rings as one stream, in time order. 'e: of the events whose rings were added.
#[derive(Debug)]
pub struct Session<'e> {
    session: NonNull<sys::perfring_session>,
    #[cfg(feature = "soft")]
    first: *const crate::SoftEvent, // of the list of events whose rings it reads; null: none
    events: PhantomData<&'e ()>,
}

// SAFETY: one thread at a time; the events that it borrows may be used by any.
unsafe impl Send for Session<'_> {}

impl<'e> Session<'e> {
    /// pages: data pages of each ring, a power of two; 0: 128.
    pub fn open(pages: u32) -> Result<Session<'e>> {
        let mut opened = core::ptr::null_mut();
        // SAFETY: it writes a pointer.
        status(unsafe { sys::perfring_session_open(&mut opened, pages) })?;
        // SAFETY: without an error it is not null.
        let session = unsafe { NonNull::new_unchecked(opened) };
        Ok(Session {
            session,
            #[cfg(feature = "soft")]
            first: core::ptr::null(),
            events: PhantomData,
        })
    }

    /// Before the first add: `PERFRING_SESSION_` bits, and which features may be dropped (`PERFRING_FALLBACK_`). Sessions that
    /// overwrite (PERFRING_SESSION_BACKWARD) are not here.
    pub fn configure(&mut self, options: u32, allowed: u64) -> Result<()> {
        // SAFETY: any bits may be given.
        status(unsafe { sys::perfring_session_configure(self.session.as_ptr(), options, allowed) })
    }

    /// Opens the event for each thread and CPU of the target. Returns its number. refusal() explains an error.
    pub fn add(&mut self, attr: &Attr, target: &Target) -> Result<u32> {
        // SAFETY: both are whole.
        match unsafe { sys::perfring_session_add(self.session.as_ptr(), attr.get(), target.0.as_ptr()) } {
            code if code < 0 => Err(Error::from_code(code)),
            number => Ok(number as u32),
        }
    }

    /// Describes the records of a ring by what its creator says of them (`RingOptions::event`). Returns the event's number.
    pub fn describe_ring(&mut self, ring: &crate::Ring) -> Result<u32> {
        // SAFETY: the ring is open.
        match unsafe { sys::perfring_session_describe_ring(self.session.as_ptr(), ring.get()) } {
            code if code < 0 => Err(Error::from_code(code)),
            number => Ok(number as u32),
        }
    }

    /// Adds a ring, which must have no other reader; its memory stays while the session does. Each record is copied before it is
    /// checked. Returns the ring's number.
    pub fn add_ring(&mut self, ring: &crate::Ring) -> Result<u32> {
        // SAFETY: the session shares the mapping of a ring that perfring made.
        match unsafe { sys::perfring_session_add_ring(self.session.as_ptr(), ring.get(), -1, sys::PERFRING_READER_COPY) } {
            code if code < 0 => Err(Error::from_code(code)),
            number => Ok(number as u32),
        }
    }

    /// Adds the rings of an event of this process, now and later. A session reads it already: [`Error::Busy`].
    #[cfg(feature = "soft")]
    pub fn add_soft(&mut self, event: &'e crate::SoftEvent) -> Result<()> {
        if !event.take(self.first) {
            return Err(Error::Busy);
        }
        // SAFETY: the event, and its rings, outlive the session; its writers are this process's own.
        let added = status(unsafe { sys::perfring_session_add_set(self.session.as_ptr(), event.rings(), -1, 0) });
        match added {
            Ok(()) => self.first = event,
            Err(_) => _ = event.give_back(),
        }
        added
    }

    /// Why the last add failed, and what to change; "": it did not.
    pub fn refusal(&self) -> &str {
        // SAFETY: valid until the next add, which needs this object alone.
        unsafe { crate::c_text(sys::perfring_session_refusal(self.session.as_ptr())) }
    }

    /// Starts every event.
    pub fn enable(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        status(unsafe { sys::perfring_session_enable(self.session.as_ptr()) })
    }

    /// Stops every event.
    pub fn disable(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        status(unsafe { sys::perfring_session_disable(self.session.as_ptr()) })
    }

    /// Waits up to `timeout_ms` (-1: no limit) and begins a round, also where it returns an error, as after a signal. Whether a ring
    /// woke it.
    pub fn wait(&mut self, timeout_ms: i32) -> Result<bool> {
        // SAFETY: the session is open.
        match unsafe { sys::perfring_session_wait(self.session.as_ptr(), timeout_ms) } {
            code if code < 0 => Err(Error::from_code(code)),
            one => Ok(one == 1),
        }
    }

    /// An epoll fd that is readable when a ring has reached its watermark; then call wait with 0. Valid while the session is.
    pub fn fd(&self) -> i32 {
        // SAFETY: the session is open.
        unsafe { sys::perfring_session_fd(self.session.as_ptr()) }
    }

    /// Begins the last round.
    pub fn flush(&mut self) {
        // SAFETY: the session is open.
        unsafe { sys::perfring_session_flush(self.session.as_ptr()) }
    }

    /// Whether all observed threads have ended.
    pub fn is_over(&self) -> bool {
        // SAFETY: the session is open.
        unsafe { sys::perfring_session_is_over(self.session.as_ptr()) }
    }

    /// The next item of the round; none at its end. After an error, of a corrupt ring, the next call goes on.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>> {
        let mut item = sys::perfring_item { record: core::ptr::null(), format: core::ptr::null(), time: 0 };
        // SAFETY: the session is open; the item's lifetime, which borrows it, ends before return_space.
        match unsafe { sys::perfring_session_next(self.session.as_ptr(), &mut item) } {
            1 => Ok(Some(Item { item, file: core::ptr::null(), source: PhantomData })),
            0 => Ok(None),
            // SAFETY: the text is constant.
            code => {
                Err(unsafe { Error::of_fault(code, &sys::perfring_session_fault(self.session.as_ptr(), core::ptr::null_mut())) })
            }
        }
    }

    /// Returns the space of all items to the rings: after each round.
    pub fn return_space(&mut self) {
        // SAFETY: the session is open, and no item borrows it.
        unsafe { sys::perfring_session_return(self.session.as_ptr()) }
    }

    /// Of all rings, since the beginning.
    pub fn totals(&self) -> sys::perfring_totals {
        let mut totals = MaybeUninit::zeroed();
        // SAFETY: it writes the whole struct, of which 0 is a value.
        unsafe {
            sys::perfring_session_totals(self.session.as_ptr(), totals.as_mut_ptr());
            totals.assume_init()
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: it is closed once.
        unsafe { sys::perfring_session_close(self.session.as_ptr()) }
        #[cfg(feature = "soft")]
        while !self.first.is_null() {
            // SAFETY: the event outlives the session.
            self.first = unsafe { (*self.first).give_back() };
        }
    }
}

#[cfg(feature = "std")]
impl std::os::unix::io::AsFd for Session<'_> {
    fn as_fd(&self) -> std::os::unix::io::BorrowedFd<'_> {
        // SAFETY: it is open until drop.
        unsafe { std::os::unix::io::BorrowedFd::borrow_raw(self.fd()) }
    }
}
