//! error.rs - negative errnos as an enum.
use crate::sys;

/// Where something is wrong, and what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Counted as the C function says: in a record, a ring or a file.
    pub at: i64,
    /// "": only the code is known.
    pub what: &'static str,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// -EBADMSG: the bytes are wrong.
    BadBytes(Fault),
    /// -EOPNOTSUPP: not supported by this kernel, build or input.
    NotSupported(Fault),
    /// -EINVAL: called wrongly.
    Invalid(Fault),
    /// -ENOSPC: a buffer or a ring has no space.
    NoSpace,
    /// -ENOMEM
    NoMemory,
    /// -EBUSY
    Busy,
    /// Any other errno, positive.
    Os(i32, Fault),
}

/// What calls return.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// Of a negative errno.
    pub fn from_code(code: i32) -> Error {
        Error::with(code, Fault::default())
    }

    #[cold]
    pub(crate) fn with(code: i32, fault: Fault) -> Error {
        match code.wrapping_neg() {
            sys::EBADMSG => Error::BadBytes(fault),
            sys::EOPNOTSUPP => Error::NotSupported(fault),
            sys::EINVAL => Error::Invalid(fault),
            sys::ENOSPC => Error::NoSpace,
            sys::ENOMEM => Error::NoMemory,
            sys::EBUSY => Error::Busy,
            other => Error::Os(other, fault),
        }
    }

    /// # Safety
    /// `fault.what` is null, or one of the library's constant texts.
    #[cold]
    pub(crate) unsafe fn of_fault(code: i32, fault: &sys::perfring_fault) -> Error {
        // SAFETY: constant texts are never freed.
        Error::with(code, Fault { at: fault.at, what: unsafe { crate::c_text(fault.what) } })
    }

    /// The negative errno.
    pub fn code(&self) -> i32 {
        match *self {
            Error::BadBytes(_) => -sys::EBADMSG,
            Error::NotSupported(_) => -sys::EOPNOTSUPP,
            Error::Invalid(_) => -sys::EINVAL,
            Error::NoSpace => -sys::ENOSPC,
            Error::NoMemory => -sys::ENOMEM,
            Error::Busy => -sys::EBUSY,
            Error::Os(code, _) => code.wrapping_neg(),
        }
    }

    /// The place and the text, if the library gave them.
    pub fn fault(&self) -> Option<Fault> {
        match *self {
            Error::BadBytes(fault) | Error::NotSupported(fault) | Error::Invalid(fault) | Error::Os(_, fault)
                if !fault.what.is_empty() =>
            {
                Some(fault)
            }
            _ => None,
        }
    }
}

/// 0 or a negative errno.
pub(crate) fn status(code: i32) -> Result<()> {
    if code < 0 {
        Err(Error::from_code(code))
    } else {
        Ok(())
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if let Some(fault) = self.fault() {
            return write!(to, "at {}: {}", fault.at, fault.what);
        }
        #[cfg(feature = "std")]
        return write!(to, "{}", std::io::Error::from_raw_os_error(self.code().wrapping_neg()));
        #[cfg(not(feature = "std"))]
        return write!(to, "errno {}", self.code().wrapping_neg());
    }
}

#[cfg(feature = "std")]
impl std::error::Error for Error {}
