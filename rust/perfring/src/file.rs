//! file.rs - perf.data files, read.
use crate::decode::{Item, Record};
use crate::error::{Error, Result};
use crate::sys;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// An open perf.data file, a stream, or a directory of them.
#[derive(Debug)]
pub struct File {
    file: NonNull<sys::perfring_file>,
    damaged: *const sys::perf_event_header, // of the last call of next; null: none
}

// SAFETY: any thread may use a reader, one at a time.
unsafe impl Send for File {}

impl File {
    /// Opens it. "-": standard input.
    #[cfg(feature = "std")]
    pub fn open<P: AsRef<std::path::Path>>(path: P) -> Result<File> {
        use std::os::unix::ffi::OsStrExt;
        match std::ffi::CString::new(path.as_ref().as_os_str().as_bytes()) {
            // SAFETY: it ends with a NUL.
            Ok(path) => unsafe { File::open_c(path.as_ptr()) },
            Err(_) => Err(Error::from_code(-sys::EINVAL)),
        }
    }

    /// The same without `std`.
    ///
    /// # Safety
    /// The text at `path` ends with a NUL.
    pub unsafe fn open_c(path: *const sys::c_char) -> Result<File> {
        let mut opened = core::ptr::null_mut();
        // SAFETY: the caller's.
        let code = unsafe { sys::perfring_file_open(&mut opened, path) };
        let file = NonNull::new(opened).map(|file| File { file, damaged: core::ptr::null() }); // closed again if there is an error
        match file {
            Some(file) if code == 0 => Ok(file),
            Some(file) => Err(file.why(code)),
            None => Err(Error::from_code(code)),
        }
    }

    #[cold]
    fn why(&self, code: i32) -> Error {
        let error = Error::from_code(code);
        match error {
            // SAFETY: the file is open, and its texts are constant.
            Error::BadBytes(_) | Error::NotSupported(_) => unsafe {
                Error::of_fault(code, &sys::perfring_file_fault(self.file.as_ptr()))
            },
            _ => error,
        }
    }

    /// The next record in time order; none at the end. After an error, if there is a [`File::damaged`] record, the next call goes on
    /// after it; else the error is permanent, and each further call returns it.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>> {
        let mut item = sys::perfring_item { record: core::ptr::null(), format: core::ptr::null(), time: 0 };
        self.damaged = core::ptr::null();
        // SAFETY: the file is open; the item's lifetime, which borrows it, ends before the next call.
        match unsafe { sys::perfring_file_next(self.file.as_ptr(), &mut item) } {
            1 => Ok(Some(Item { item, file: self.file.as_ptr(), source: PhantomData })),
            0 => Ok(None),
            code => {
                self.damaged = item.record;
                Err(self.why(code))
            }
        }
    }

    /// After an error of the last next_item: the record that has an id of no event, or the COMPRESSED record that is damaged.
    pub fn damaged(&self) -> Option<Record<'_>> {
        // SAFETY: a whole record, valid until the next call of next, which needs this object alone.
        (!self.damaged.is_null()).then(|| unsafe { Record::new(self.damaged) })
    }

    /// How many events it has, as far as it has been read.
    pub fn event_count(&self) -> u32 {
        // SAFETY: the file is open.
        unsafe { sys::perfring_format_set_count(sys::perfring_file_formats(self.file.as_ptr())) }
    }

    /// The name of an event; none beyond the last.
    pub fn event_name(&self, index: u32) -> Option<&[u8]> {
        // SAFETY: the name is valid until the file is closed.
        unsafe { crate::c_bytes(sys::perfring_file_event_name(self.file.as_ptr(), index)) }
    }

    /// The offset of the last item's record.
    pub fn position(&self) -> i64 {
        // SAFETY: the file is open.
        unsafe { sys::perfring_file_position(self.file.as_ptr()) }
    }

    /// Whether its writer finished it.
    pub fn is_finished(&self) -> bool {
        // SAFETY: the file is open.
        unsafe { sys::perfring_file_is_finished(self.file.as_ptr()) }
    }

    /// The C object, for calls that are not here; it stays this one's.
    pub fn get(&self) -> *mut sys::perfring_file {
        self.file.as_ptr()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: it is closed once.
        unsafe { sys::perfring_file_close(self.file.as_ptr()) }
    }
}
