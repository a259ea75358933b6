//! ring.rs - perfring's rings: memory, writers, readers.
use crate::decode::{Format, NewSample, Record};
use crate::error::{status, Error, Result};
use crate::sys;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "std")]
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// How a ring is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingOptions<'a> {
    /// Data pages, a power of two.
    pub pages: u32,
    /// `PERFRING_RING_`
    pub flags: u32,
    /// The event whose records it will hold, and their id; none: not known.
    pub event: Option<(&'a crate::Attr, u64)>,
}

/// A ring's memory, and its fd.
#[derive(Debug)]
pub struct Ring {
    ring: sys::perfring_ring,
    is_read: AtomicBool, // a Reader borrows it
}

// SAFETY: the mapping is the process's; what points into it borrows this.
unsafe impl Send for Ring {}
// SAFETY: `ring` does not change before drop, and C opens readers and writers of one struct in any threads.
unsafe impl Sync for Ring {}

impl Ring {
    /// Makes a ring of this process, without a file.
    pub fn create(options: &RingOptions<'_>) -> Result<Ring> {
        // SAFETY: there is no path.
        unsafe { Ring::create_at(options, core::ptr::null()) }
    }

    /// Makes a ring in a file, which stays. It is there already: [`Error::Os`] with EEXIST, unless the flags have REPLACE.
    #[cfg(feature = "std")]
    pub fn create_file<P: AsRef<std::path::Path>>(options: &RingOptions<'_>, path: P) -> Result<Ring> {
        use std::os::unix::ffi::OsStrExt;
        match std::ffi::CString::new(path.as_ref().as_os_str().as_bytes()) {
            // SAFETY: it ends with a NUL.
            Ok(path) => unsafe { Ring::create_at(options, path.as_ptr()) },
            Err(_) => Err(Error::from_code(-sys::EINVAL)),
        }
    }

    /// # Safety
    /// The path is null, or ends with a NUL.
    unsafe fn create_at(options: &RingOptions<'_>, path: *const sys::c_char) -> Result<Ring> {
        // SAFETY: all members are numbers and pointers, which may be 0.
        let mut all: sys::perfring_ring_options = unsafe { MaybeUninit::zeroed().assume_init() };
        all.pages = options.pages;
        all.flags = options.flags;
        all.file = path;
        if let Some((attr, id)) = options.event {
            all.attr = attr.get();
            all.id = id;
        }
        let mut ring = MaybeUninit::uninit();
        // SAFETY: the options are whole.
        status(unsafe { sys::perfring_ring_create(ring.as_mut_ptr(), &all) })?;
        // SAFETY: it was written.
        Ok(Ring { ring: unsafe { ring.assume_init() }, is_read: AtomicBool::new(false) })
    }

    /// Maps the ring of another process by its fd, which stays the caller's.
    #[cfg(feature = "std")]
    pub fn attach<F: AsFd>(fd: F, flags: u32) -> Result<Ring> {
        // SAFETY: the caller has the fd.
        unsafe { Ring::attach_raw(fd.as_fd().as_raw_fd(), flags) }
    }

    /// The same without `std`.
    ///
    /// # Safety
    /// The fd is the caller's: no ring that other code of this process reads in place.
    pub unsafe fn attach_raw(fd: i32, flags: u32) -> Result<Ring> {
        let mut ring = MaybeUninit::uninit();
        let mut fault = sys::perfring_fault { at: 0, what: core::ptr::null() };
        // SAFETY: all values in the ring are checked.
        match unsafe { sys::perfring_ring_attach(ring.as_mut_ptr(), fd, flags, &mut fault) } {
            // SAFETY: it was written.
            0 => Ok(Ring { ring: unsafe { ring.assume_init() }, is_read: AtomicBool::new(false) }),
            // SAFETY: the text is null or constant.
            code => Err(unsafe { Error::of_fault(code, &fault) }),
        }
    }

    pub(crate) fn get(&self) -> *const sys::perfring_ring {
        &self.ring
    }

    /// Of the ring, for another process; valid while the ring is.
    pub fn fd(&self) -> i32 {
        self.ring.fd
    }

    /// Opens a reader at the first record that was not returned. There is one already: [`Error::Busy`]. Each record is copied before
    /// it is checked, because other processes, and other handles of this one, may write into the memory.
    pub fn reader(&self) -> Result<Reader<'_>> {
        // SAFETY: copies are the reader's own.
        unsafe { self.open_reader(sys::PERFRING_READER_COPY) }
    }

    /// The same without copies: records are read in the ring.
    ///
    /// # Safety
    /// No one changes a record between its publication and [`Reader::return_space`]: the ring's writers keep to the protocol, and no other
    /// reader returns its space.
    pub unsafe fn reader_in_place(&self) -> Result<Reader<'_>> {
        // SAFETY: the caller's.
        unsafe { self.open_reader(0) }
    }

    unsafe fn open_reader(&self, flags: u32) -> Result<Reader<'_>> {
        let mut reader = MaybeUninit::uninit();
        // Acquire pairs with the release of the last reader's drop: what it returned is in the control page.
        if self.is_read.swap(true, Ordering::Acquire) {
            return Err(Error::Busy);
        }
        // SAFETY: the ring is open while the reader borrows it. C has written the struct also where it returns an error.
        let code = unsafe { sys::perfring_reader_open(reader.as_mut_ptr(), &self.ring, flags) };
        let reader = Reader { reader: unsafe { reader.assume_init() }, ring: self }; // closed again if there is an error
        status(code).map(|()| reader)
    }

    /// Opens the calling thread's writer. There is one already: [`Error::Busy`].
    pub fn writer(&self) -> Result<Writer<'_>> {
        let mut opened = core::ptr::null_mut();
        // SAFETY: the ring is open while the writer borrows it; C copies the struct and does not change it.
        status(unsafe { sys::perfring_writer_open(&mut opened, self.get() as *mut _, core::ptr::null()) })?;
        // SAFETY: without an error it is not null.
        Ok(Writer { writer: unsafe { NonNull::new_unchecked(opened) }, ring: PhantomData })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it is closed once, after all that borrowed it.
        unsafe { sys::perfring_ring_close(&mut self.ring) }
    }
}

#[cfg(feature = "std")]
impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: a ring that was created or attached has an fd, which is open until drop.
        unsafe { BorrowedFd::borrow_raw(self.fd()) }
    }
}

#[cfg(feature = "std")]
impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> RawFd {
        self.fd()
    }
}

/// The one reader of a ring.
#[derive(Debug)]
pub struct Reader<'r> {
    reader: sys::perfring_reader,
    ring: &'r Ring,
}

// SAFETY: one thread at a time; the ring outlives it.
unsafe impl Send for Reader<'_> {}

impl Reader<'_> {
    /// Looks how far the writer is, so that a loop over next_record ends. Returns the number of bytes to read.
    pub fn observe(&mut self) -> Result<u64> {
        // SAFETY: the reader is open.
        match unsafe { sys::perfring_reader_observe(&mut self.reader) } {
            bytes if bytes < 0 => Err(self.why(bytes as i32)),
            bytes => Ok(bytes as u64),
        }
    }

    /// The next record before the observed position; none after the last. After an error only skip goes on.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        let mut record = core::ptr::null();
        // SAFETY: the reader is open.
        match unsafe { sys::perfring_reader_next(&mut self.reader, &mut record) } {
            // SAFETY: a whole record, of which nothing changes until the next call: a copy, or by reader_in_place.
            1 => Ok(Some(unsafe { Record::new(record) })),
            0 => Ok(None),
            code => Err(self.why(code)),
        }
    }

    /// Returns the space of all records so far to the writer.
    pub fn return_space(&mut self) {
        // SAFETY: the reader is open, and no record borrows it.
        unsafe { sys::perfring_reader_return(&mut self.reader) }
    }

    /// Drops everything up to the writer's present position. Returns the number of bytes.
    pub fn skip(&mut self) -> u64 {
        // SAFETY: the reader is open, and no record borrows it.
        unsafe { sys::perfring_reader_skip(&mut self.reader) }
    }

    #[cold]
    fn why(&self, code: i32) -> Error {
        // SAFETY: the text is constant; it was written with the error.
        unsafe { Error::of_fault(code, &self.reader.fault) }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        // SAFETY: it is closed once.
        unsafe { sys::perfring_reader_close(&mut self.reader) }
        self.ring.is_read.store(false, Ordering::Release);
    }
}

/// The writer of a ring, of the thread that opened it.
#[derive(Debug)]
pub struct Writer<'r> {
    writer: NonNull<sys::perfring_writer>, // neither Send nor Sync
    ring: PhantomData<&'r Ring>,
}

impl Writer<'_> {
    /// Space for one record of `size` bytes, a multiple of 8. None: it was refused, and counted.
    pub fn reserve(&mut self, size: u64) -> Option<Claim<'_>> {
        let mut claim = MaybeUninit::uninit();
        // SAFETY: the writer is this thread's; the last claim has ended, for it borrows the writer.
        let space =
            unsafe { sys::perfring_writer_reserve(self.writer.as_ptr(), core::ptr::null_mut(), size, claim.as_mut_ptr()) };
        NonNull::new(space.cast()).map(|space| Claim {
            // SAFETY: it was written.
            claim: unsafe { claim.assume_init() },
            space,
            size: size as usize,
            writer: self.writer,
            lives: PhantomData,
        })
    }

    /// Encodes a sample in place. [`Error::NoSpace`]: it was refused, and counted.
    pub fn put(&mut self, format: &Format, sample: &NewSample<'_>) -> Result<()> {
        let mut buffer = MaybeUninit::uninit();
        let size = sample.write(format, &mut buffer)?;
        let mut claim = self.reserve(size).ok_or(Error::NoSpace)?;
        let bytes = claim.bytes();
        // SAFETY: the format's fields have been written, and the space has the size that they need.
        unsafe { sys::perfring_sample_encode_any(&format.0, buffer.as_ptr(), bytes.as_mut_ptr().cast(), bytes.len()) };
        claim.commit();
        Ok(())
    }

    /// Copies a record. False: it was refused, and counted. Panics unless its header has the slice's length.
    pub fn write(&mut self, record: &[u8]) -> bool {
        assert!(is_record(record), "a record's header has its length");
        // SAFETY: the writer is this thread's; the bytes are those of a record.
        unsafe {
            sys::perfring_writer_write(self.writer.as_ptr(), core::ptr::null_mut(), record.as_ptr().cast(), record.len() as u64)
        }
    }

    /// Wakes the reader if the ring has records.
    pub fn flush(&mut self) {
        // SAFETY: the writer is this thread's.
        unsafe { sys::perfring_writer_flush(self.writer.as_ptr()) }
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // SAFETY: it is closed once.
        unsafe { sys::perfring_writer_close(self.writer.as_ptr()) }
    }
}

fn is_record(bytes: &[u8]) -> bool {
    bytes.len() >= 8 && usize::from(u16::from_ne_bytes([bytes[6], bytes[7]])) == bytes.len()
}

/// Space for a record, not committed: what is dropped is discarded.
#[derive(Debug)]
pub struct Claim<'w> {
    claim: sys::perfring_claim,
    space: NonNull<u8>,
    size: usize,
    writer: NonNull<sys::perfring_writer>,
    lives: PhantomData<&'w mut [u8]>,
}

impl Claim<'_> {
    /// To be written, header first. What they hold until then is of older records.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the space is this claim's, and its memory was written by the ring's creation.
        unsafe { core::slice::from_raw_parts_mut(self.space.as_ptr(), self.size) }
    }

    /// Publishes the record. Panics unless its header has the size that was reserved.
    pub fn commit(mut self) {
        assert!(is_record(self.bytes()), "a record's header has its length");
        // SAFETY: once, by the thread that reserved it.
        unsafe { sys::perfring_writer_commit(self.writer.as_ptr(), &self.claim) }
        core::mem::forget(self);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // SAFETY: it was not committed.
        unsafe { sys::perfring_writer_discard(self.writer.as_ptr(), &self.claim) }
    }
}
