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
    Os(i32),
}

/// What calls return.
pub type Result<T> = core::result::Result<T, Error>;

const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const ENOMEM: i32 = 12;
const ENOSPC: i32 = 28;
const EBADMSG: i32 = 74;
const EOPNOTSUPP: i32 = 95;

impl Error {
    /// Of a negative errno.
    pub fn from_code(code: i32) -> Error {
        Error::with(code, Fault::default())
    }

    #[cold]
    pub(crate) fn with(code: i32, fault: Fault) -> Error {
        match -code {
            EBADMSG => Error::BadBytes(fault),
            EOPNOTSUPP => Error::NotSupported(fault),
            EINVAL => Error::Invalid(fault),
            ENOSPC => Error::NoSpace,
            ENOMEM => Error::NoMemory,
            EBUSY => Error::Busy,
            other => Error::Os(other),
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
        -match *self {
            Error::BadBytes(_) => EBADMSG,
            Error::NotSupported(_) => EOPNOTSUPP,
            Error::Invalid(_) => EINVAL,
            Error::NoSpace => ENOSPC,
            Error::NoMemory => ENOMEM,
            Error::Busy => EBUSY,
            Error::Os(code) => code,
        }
    }

    /// The place and the text, if the library gave them.
    pub fn fault(&self) -> Option<Fault> {
        match *self {
            Error::BadBytes(fault) | Error::NotSupported(fault) | Error::Invalid(fault) if !fault.what.is_empty() => Some(fault),
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
        return write!(to, "{}", std::io::Error::from_raw_os_error(-self.code()));
        #[cfg(not(feature = "std"))]
        return write!(to, "errno {}", -self.code());
    }
}

#[cfg(feature = "std")]
impl std::error::Error for Error {}
