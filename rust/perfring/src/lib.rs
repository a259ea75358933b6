//! lib.rs - rings, files, samples and sessions of Linux perf, by libperfring.
//!
//! ```no_run
//! # fn main() -> perfring::Result<()> {
//! let mut file = perfring::File::open("perf.data")?;
//! let mut buffer = perfring::SampleBuffer::new();
//! let mut sum = 0;
//! while let Some(item) = file.next_item()? {
//!     if item.record().is_sample() {
//!         sum += item.sample(&mut buffer)?.period().unwrap_or(0);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! * Lifetimes are those of the C headers: an item borrows its source until the next one, a sample its record and the buffer that it
//!   was decoded into. Nothing is copied that C does not copy, and bytes point into the record.
//! * Errors are [`Error`], of a negative errno and, where C has them, its place and text.
//! * Decoding ([`Record::sample`], [`Record::decode`]) allocates nothing, and works without `std`.
//! * Names of addresses are in `Names`, with the feature `profile`, which links libperfring-profile.
//! * A [`Writer`] stays in the thread that opened it. All others may be moved to another thread, and several may use a [`Ring`] or a
//!   `SoftEvent` at the same time.
#![cfg_attr(not(feature = "std"), no_std)]
#![warn(missing_docs, unsafe_op_in_unsafe_fn)]

mod decode;
mod error;
mod file;
#[cfg(feature = "profile")]
mod names;
mod ring;
mod session;
#[cfg(feature = "soft")]
mod soft;

pub use decode::{
    Comm, Decoded, Format, Frame, Frames, Item, Map, NewSample, Record, RecordBuffer, Sample, SampleBuffer, Task, Words,
};
pub use error::{Error, Fault, Result};
pub use file::File;
#[cfg(feature = "profile")]
pub use names::{Named, Names};
pub use perfring_sys as sys;
pub use ring::{Claim, Reader, Ring, RingOptions, Writer};
pub use session::{Attr, Session, Target};
#[cfg(feature = "soft")]
pub use soft::SoftEvent;

/// The bytes of a C text without its NUL; none of a null pointer.
///
/// # Safety
/// `text` is null, or ends with a NUL and lives as long as `'a`.
unsafe fn c_bytes<'a>(text: *const sys::c_char) -> Option<&'a [u8]> {
    if text.is_null() {
        return None;
    }
    let mut size = 0;
    // SAFETY: each byte up to the NUL may be read.
    unsafe {
        while *text.add(size) != 0 {
            size += 1;
        }
        Some(core::slice::from_raw_parts(text.cast(), size))
    }
}

/// The same up to the first byte that is no UTF-8; "" of a null pointer.
///
/// # Safety
/// As `c_bytes`.
unsafe fn c_text<'a>(text: *const sys::c_char) -> &'a str {
    // SAFETY: the caller's.
    let bytes = unsafe { c_bytes(text) }.unwrap_or(&[]);
    core::str::from_utf8(bytes).or_else(|error| core::str::from_utf8(&bytes[..error.valid_up_to()])).unwrap_or("")
}
