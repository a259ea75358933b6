//! decode.rs - records: their bytes, decoded and encoded. Nothing here allocates or needs `std`.
use crate::error::{Error, Fault, Result};
use crate::sys;
use core::marker::PhantomData;
use core::mem::{size_of, MaybeUninit};
use core::ptr::{addr_of, read_unaligned};

/// What an attr says about the bytes of its records.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Format(pub(crate) sys::perfring_format);

impl Format {
    /// Of samples with these fields (`PERFRING_SAMPLE_` bits), and other records without a trailer.
    pub fn new(sample_type: u64) -> Format {
        // SAFETY: all members are numbers, and 0 is one of each.
        let mut format: sys::perfring_format = unsafe { MaybeUninit::zeroed().assume_init() };
        format.sample_type = sample_type;
        // SAFETY: it is a whole struct.
        unsafe { sys::perfring_format_plan(&mut format) };
        Format(format)
    }

    /// Of the attr's records.
    pub fn of(attr: &crate::Attr) -> Result<Format> {
        let mut format = MaybeUninit::uninit();
        // SAFETY: an Attr has more bytes than its size says.
        match unsafe { sys::perfring_format_from_attr(format.as_mut_ptr(), attr.get()) } {
            // SAFETY: it was written.
            0 => Ok(Format(unsafe { format.assume_init() })),
            code => Err(Error::from_code(code)),
        }
    }

    /// The number of its event, in the file or session that it is of.
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// `PERFRING_SAMPLE_` bits.
    pub fn sample_type(&self) -> u64 {
        self.0.sample_type
    }
}

/// A record as its bytes are.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    header: *const sys::perf_event_header,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Record<'a> {
    /// The record that these bytes begin with; none if they are fewer than it needs.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Record<'a>> {
        // SAFETY: the header is inside of the bytes, and all values are valid.
        let header = (bytes.len() >= 8).then(|| unsafe { read_unaligned(bytes.as_ptr().cast::<sys::perf_event_header>()) })?;
        (usize::from(header.size) >= 8 && usize::from(header.size) <= bytes.len())
            // SAFETY: just tested.
            .then(|| unsafe { Record::new(bytes.as_ptr().cast()) })
    }

    /// # Safety
    /// At `header` are as many bytes as it says, at least 8, which nothing changes while `'a` lasts.
    pub(crate) unsafe fn new(header: *const sys::perf_event_header) -> Record<'a> {
        Record { header, bytes: PhantomData }
    }

    fn header(&self) -> sys::perf_event_header {
        // SAFETY: by `new`. Records of files need not be aligned.
        unsafe { read_unaligned(self.header) }
    }

    /// The record's type: `PERFRING_RECORD_`.
    #[inline]
    pub fn kind(&self) -> u32 {
        // SAFETY: by `new`.
        unsafe { read_unaligned(addr_of!((*self.header).r#type)) }
    }

    /// Of the header.
    pub fn misc(&self) -> u16 {
        self.header().misc
    }

    /// Whether its type is SAMPLE.
    #[inline]
    pub fn is_sample(&self) -> bool {
        self.kind() == sys::PERFRING_RECORD_SAMPLE
    }

    /// "MMAP2"; none of an unknown type.
    pub fn name(&self) -> Option<&'static str> {
        // SAFETY: a constant text, or null.
        unsafe { crate::c_bytes(sys::perfring_record_name(self.kind())) }.and_then(|name| core::str::from_utf8(name).ok())
    }

    /// With its header.
    pub fn bytes(&self) -> &'a [u8] {
        // SAFETY: by `new`.
        unsafe { core::slice::from_raw_parts(self.header.cast(), self.header().size.into()) }
    }

    /// Its time; 0: none.
    pub fn time(&self, format: &Format) -> u64 {
        // SAFETY: by `new`; places outside of the record are not read.
        unsafe { sys::perfring_format_time_of(&format.0, self.header) }
    }

    /// Decodes a record of type SAMPLE. Of another type: [`Error::Invalid`].
    #[inline]
    pub fn sample<'s>(&self, format: &Format, buffer: &'s mut SampleBuffer) -> Result<Sample<'s>>
    where
        'a: 's,
    {
        if !self.is_sample() {
            return Err(Error::from_code(-sys::EINVAL));
        }
        let mut fault = MaybeUninit::uninit();
        // SAFETY: decoding is total over bytes, and the buffer is a whole struct.
        let code = unsafe { sys::perfring_sample_decode_any(&format.0, self.header, buffer.0.as_mut_ptr(), fault.as_mut_ptr()) };
        if code < 0 {
            // SAFETY: -EBADMSG, the only error, writes the fault.
            return Err(unsafe { Error::of_fault(code, fault.assume_init_ref()) });
        }
        Ok(Sample { at: buffer.0.as_ptr(), bytes: PhantomData })
    }

    /// Decodes a record of any other type. format: none if it has no trailer. Of type SAMPLE: [`Error::Invalid`].
    pub fn decode<'s>(&self, format: Option<&Format>, buffer: &'s mut RecordBuffer) -> Result<Decoded<'s>>
    where
        'a: 's,
    {
        let mut fault = sys::perfring_fault { at: 0, what: core::ptr::null() };
        let format = format.map_or(core::ptr::null(), |format| &format.0);
        // SAFETY: as above; a null format is one without a trailer.
        let code = unsafe { sys::perfring_record_decode(format, self.header, buffer.0.as_mut_ptr(), &mut fault) };
        if code < 0 {
            // SAFETY: the text is null or constant.
            return Err(unsafe { Error::of_fault(code, &fault) });
        }
        Ok(Decoded { at: buffer.0.as_ptr(), bytes: PhantomData })
    }
}

/// Where a sample is decoded into: one for many, one after the other. Its 408 bytes are not cleared.
pub struct SampleBuffer(MaybeUninit<sys::perfring_sample>);

/// The same of other records.
pub struct RecordBuffer(MaybeUninit<sys::perfring_record>);

impl SampleBuffer {
    /// Empty.
    pub const fn new() -> SampleBuffer {
        SampleBuffer(MaybeUninit::uninit())
    }
}

impl RecordBuffer {
    /// Empty.
    pub const fn new() -> RecordBuffer {
        RecordBuffer(MaybeUninit::uninit())
    }
}

impl Default for SampleBuffer {
    fn default() -> SampleBuffer {
        SampleBuffer::new()
    }
}

impl Default for RecordBuffer {
    fn default() -> RecordBuffer {
        RecordBuffer::new()
    }
}

/// A decoded sample. A field that its event does not have is none.
#[derive(Clone, Copy)]
pub struct Sample<'s> {
    at: *const sys::perfring_sample,
    bytes: PhantomData<&'s [u8]>,
}

macro_rules! members {
    ($($(#[$meta:meta])* $name:ident: $type:ty, $field:ident;)*) => { $(
        $(#[$meta])*
        #[inline]
        pub fn $name(&self) -> Option<$type> {
            // SAFETY: decoding has written what stands in `present`.
            self.has(sys::$field).then(|| unsafe { addr_of!((*self.at).$name).read() })
        }
    )* };
}

impl<'s> Sample<'s> {
    /// Where the address of a frame is, `PERFRING_RECORD_MISC_KERNEL` ...: after a marker what that says, else where the sample is.
    pub fn cpumode(&self, frame: &Frame) -> u16 {
        match frame.context as i64 {
            0 => self.misc() & 7,
            sys::PERFRING_CONTEXT_HV => sys::PERFRING_RECORD_MISC_HYPERVISOR,
            sys::PERFRING_CONTEXT_KERNEL => sys::PERFRING_RECORD_MISC_KERNEL,
            sys::PERFRING_CONTEXT_USER | sys::PERFRING_CONTEXT_USER_DEFERRED => sys::PERFRING_RECORD_MISC_USER,
            sys::PERFRING_CONTEXT_GUEST_KERNEL => sys::PERFRING_RECORD_MISC_GUEST_KERNEL,
            sys::PERFRING_CONTEXT_GUEST_USER => sys::PERFRING_RECORD_MISC_GUEST_USER,
            _ => 0,
        }
    }

    /// bits: `PERFRING_SAMPLE_`, all of which must be there.
    #[inline]
    pub fn has(&self, bits: u64) -> bool {
        self.present() & bits == bits
    }

    /// `PERFRING_SAMPLE_` bits of the fields that it has.
    #[inline]
    pub fn present(&self) -> u64 {
        // SAFETY: decoding has written it.
        unsafe { addr_of!((*self.at).present).read() }
    }

    /// Of the header.
    pub fn misc(&self) -> u16 {
        // SAFETY: decoding has written it.
        unsafe { addr_of!((*self.at).misc).read() }
    }

    members! {
        /// The address.
        ip: u64, PERFRING_SAMPLE_IP;
        /// Of the process.
        pid: u32, PERFRING_SAMPLE_TID;
        /// Of the thread.
        tid: u32, PERFRING_SAMPLE_TID;
        /// In ns, by the event's clock.
        time: u64, PERFRING_SAMPLE_TIME;
        /// What the event says of it.
        addr: u64, PERFRING_SAMPLE_ADDR;
        /// The event's, of one fd.
        id: u64, PERFRING_SAMPLE_ID;
        /// As id, of heirs their own.
        stream_id: u64, PERFRING_SAMPLE_STREAM_ID;
        /// As id, at a fixed place.
        identifier: u64, PERFRING_SAMPLE_IDENTIFIER;
        /// The CPU's number.
        cpu: u32, PERFRING_SAMPLE_CPU;
        /// How many occurrences, or ns of a clock, it stands for.
        period: u64, PERFRING_SAMPLE_PERIOD;
        /// Of memory: PERF_MEM_ bits.
        data_src: u64, PERFRING_SAMPLE_DATA_SRC;
        /// The cgroup's id.
        cgroup: u64, PERFRING_SAMPLE_CGROUP;
        /// How long it took, in the event's units.
        weight: u64, PERFRING_SAMPLE_WEIGHT;
        /// The same in three parts, of events that have it in this form.
        weight_struct: sys::perfring_weight, PERFRING_SAMPLE_WEIGHT_STRUCT;
        /// PERF_TXN_ bits.
        transaction: u64, PERFRING_SAMPLE_TRANSACTION;
        /// Where `addr` is in memory.
        phys_addr: u64, PERFRING_SAMPLE_PHYS_ADDR;
        /// In bytes, of `addr`.
        data_page_size: u64, PERFRING_SAMPLE_DATA_PAGE_SIZE;
        /// In bytes, of `ip`.
        code_page_size: u64, PERFRING_SAMPLE_CODE_PAGE_SIZE;
    }

    /// The words of the callchain, with its markers.
    pub fn callchain(&self) -> Option<Words<'s>> {
        self.has(sys::PERFRING_SAMPLE_CALLCHAIN).then(|| {
            // SAFETY: decoding has written it; the words are in the record.
            let list = unsafe { addr_of!((*self.at).callchain).read() };
            Words { at: list.words, left: list.nr, bytes: PhantomData }
        })
    }

    /// The addresses of the callchain, innermost first; none without one.
    pub fn frames(&self) -> Frames<'s> {
        let list = if self.has(sys::PERFRING_SAMPLE_CALLCHAIN) {
            // SAFETY: as above.
            unsafe { addr_of!((*self.at).callchain).read() }
        } else {
            sys::perfring_list { words: core::ptr::null(), nr: 0 }
        };
        // SAFETY: the words are in the record.
        unsafe { Frames::new(&list) }
    }

    /// The bytes of RAW.
    pub fn raw(&self) -> Option<&'s [u8]> {
        self.has(sys::PERFRING_SAMPLE_RAW).then(|| {
            // SAFETY: decoding has written it; the bytes are in the record.
            let raw = unsafe { addr_of!((*self.at).raw).read() };
            unsafe { slice(raw.data, raw.size.into()) }
        })
    }

    /// The copy of the thread's stack, what of it means something.
    pub fn stack(&self) -> Option<&'s [u8]> {
        self.has(sys::PERFRING_SAMPLE_STACK_USER).then(|| {
            // SAFETY: as above. dyn_size may be larger than what was copied.
            let stack = unsafe { addr_of!((*self.at).stack_user).read() };
            unsafe { slice(stack.data, stack.dyn_size.min(stack.size)) }
        })
    }

    /// The C struct, for members that are not here: `present` says which were written.
    pub fn get(&self) -> *const sys::perfring_sample {
        self.at
    }
}

/// # Safety
/// At `data` are `size` bytes of a record; with 0 bytes it may be null.
pub(crate) unsafe fn slice<'s>(data: *const sys::c_void, size: u64) -> &'s [u8] {
    if size == 0 {
        return &[];
    }
    // SAFETY: the caller's; a record has less than 64 KiB.
    unsafe { core::slice::from_raw_parts(data.cast(), size as usize) }
}

/// Words of a record, which need not be aligned.
#[derive(Clone)]
pub struct Words<'s> {
    at: *const sys::perfring_word,
    left: u64,
    bytes: PhantomData<&'s [u8]>,
}

impl<'s> Words<'s> {
    /// Their bytes, in native order.
    pub fn bytes(&self) -> &'s [u8] {
        // SAFETY: they are in the record.
        unsafe { slice(self.at.cast(), self.left * 8) }
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: there was one more.
        unsafe {
            let word = read_unaligned(self.at);
            self.at = self.at.add(1);
            Some(word)
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Words<'_> {}

/// An address of a callchain, and the last marker before it (`PERFRING_CONTEXT_` as a u64; 0: none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The address.
    pub ip: u64,
    /// The marker.
    pub context: u64,
}

/// The addresses of a callchain.
#[derive(Clone)]
pub struct Frames<'s> {
    chain: sys::perfring_callchain,
    code: i32,
    words: PhantomData<&'s [u8]>,
}

impl<'s> Frames<'s> {
    /// # Safety
    /// The list's words stay while `'s` lasts.
    pub(crate) unsafe fn new(list: &sys::perfring_list) -> Frames<'s> {
        // SAFETY: the caller's.
        Frames { chain: unsafe { sys::perfring_callchain_init(list) }, code: 0, words: PhantomData }
    }

    /// After the last one: the cookie of the part that comes in a later record, if there is one.
    pub fn cookie(&self) -> Option<u64> {
        self.chain.is_deferred.then_some(self.chain.cookie)
    }

    /// Whether the addresses ended because the chain does. Else [`Error::BadBytes`]: it ends with a deferred marker without a cookie.
    pub fn status(&self) -> Result<()> {
        if self.code >= 0 {
            return Ok(());
        }
        let fault = Fault { at: self.chain.at as i64 - 1, what: "deferred marker without a cookie" };
        Err(Error::with(self.code, fault))
    }
}

impl Iterator for Frames<'_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let mut frame = sys::perfring_frame { ip: 0, context: 0 };
        // SAFETY: the words are in the record.
        match unsafe { sys::perfring_callchain_next(&mut self.chain, &mut frame) } {
            1 => Some(Frame { ip: frame.ip, context: frame.context }),
            0 => None,
            code => {
                self.code = code;
                None
            }
        }
    }
}

/// A decoded record that is no sample.
#[derive(Clone, Copy)]
pub struct Decoded<'s> {
    at: *const sys::perfring_record,
    bytes: PhantomData<&'s [u8]>,
}

/// COMM: the thread has this name from now on.
#[derive(Clone, Copy, Debug)]
pub struct Comm<'s> {
    /// Of the process.
    pub pid: u32,
    /// Of the thread.
    pub tid: u32,
    /// The name.
    pub comm: &'s [u8],
}

/// FORK and EXIT: a thread begins, or has ended.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Of the process.
    pub pid: u32,
    /// Of its parent.
    pub ppid: u32,
    /// Of the thread.
    pub tid: u32,
    /// Of the thread that made it.
    pub ptid: u32,
    /// In ns.
    pub time: u64,
}

/// MMAP and MMAP2: a mapping.
#[derive(Clone, Copy, Debug)]
pub struct Map<'s> {
    /// Of the process; u32::MAX: the kernel's.
    pub pid: u32,
    /// Of the thread.
    pub tid: u32,
    /// Where it begins.
    pub addr: u64,
    /// In bytes.
    pub len: u64,
    /// Offset in the file.
    pub pgoff: u64,
    /// Path or name.
    pub filename: &'s [u8],
    /// The object's build id, if MMAP2 has it.
    pub build_id: Option<&'s [u8]>,
}

impl<'s> Decoded<'s> {
    fn kind(&self) -> u32 {
        // SAFETY: decoding has written it.
        unsafe { addr_of!((*self.at).r#type).read() }
    }

    /// # Safety
    /// `T` is the struct of a kind; decoding has written its members if the record is of it.
    unsafe fn is<T>(&self, kind: u32) -> Option<&'s T> {
        debug_assert!(size_of::<T>() <= 192);
        // SAFETY: the caller's; `is` is aligned to 8, as the structs are.
        (self.kind() == kind).then(|| unsafe { &*addr_of!((*self.at).is).cast::<T>() })
    }

    /// The trailer's, if it has them: pid and tid.
    pub fn thread(&self) -> Option<(u32, u32)> {
        // SAFETY: decoding has written what stands in `present`.
        unsafe {
            let trailer = addr_of!((*self.at).trailer);
            (addr_of!((*trailer).present).read() & sys::PERFRING_SAMPLE_TID != 0)
                .then(|| (addr_of!((*trailer).pid).read(), addr_of!((*trailer).tid).read()))
        }
    }

    /// The trailer's, if it has it.
    pub fn cpu(&self) -> Option<u32> {
        // SAFETY: decoding has written what stands in `present`.
        unsafe {
            let trailer = addr_of!((*self.at).trailer);
            (addr_of!((*trailer).present).read() & sys::PERFRING_SAMPLE_CPU != 0).then(|| addr_of!((*trailer).cpu).read())
        }
    }

    /// Of a COMM.
    pub fn comm(&self) -> Option<Comm<'s>> {
        // SAFETY: the struct of the kind.
        let is = unsafe { self.is::<sys::perfring_record_comm>(sys::PERFRING_RECORD_COMM) }?;
        Some(Comm { pid: is.pid, tid: is.tid, comm: text(&is.comm) })
    }

    /// Of a FORK.
    pub fn fork(&self) -> Option<Task> {
        // SAFETY: the struct of the kind.
        let is = unsafe { self.is::<sys::perfring_record_fork>(sys::PERFRING_RECORD_FORK) }?;
        Some(Task { pid: is.pid, ppid: is.ppid, tid: is.tid, ptid: is.ptid, time: is.time })
    }

    /// Of an EXIT.
    pub fn exit(&self) -> Option<Task> {
        // SAFETY: the struct of the kind.
        let is = unsafe { self.is::<sys::perfring_record_exit>(sys::PERFRING_RECORD_EXIT) }?;
        Some(Task { pid: is.pid, ppid: is.ppid, tid: is.tid, ptid: is.ptid, time: is.time })
    }

    /// Of a MMAP or MMAP2.
    pub fn map(&self) -> Option<Map<'s>> {
        // SAFETY: the structs of the kinds.
        if let Some(is) = unsafe { self.is::<sys::perfring_record_mmap2>(sys::PERFRING_RECORD_MMAP2) } {
            let size = is.file.build_id_size.min(20).into();
            return Some(Map {
                pid: is.pid,
                tid: is.tid,
                addr: is.addr,
                len: is.len,
                pgoff: is.pgoff,
                filename: text(&is.filename),
                build_id: is.file.has_build_id.then(|| &is.file.build_id[..size]),
            });
        }
        // SAFETY: the same.
        let is = unsafe { self.is::<sys::perfring_record_mmap>(sys::PERFRING_RECORD_MMAP) }?;
        Some(Map {
            pid: is.pid,
            tid: is.tid,
            addr: is.addr,
            len: is.len,
            pgoff: is.pgoff,
            filename: text(&is.filename),
            build_id: None,
        })
    }

    /// Of a LOST: how many records did not fit into the ring.
    pub fn lost(&self) -> Option<u64> {
        // SAFETY: the struct of the kind.
        unsafe { self.is::<sys::perfring_record_lost>(sys::PERFRING_RECORD_LOST) }.map(|is| is.lost)
    }

    /// The C struct, for kinds that are not here.
    pub fn get(&self) -> *const sys::perfring_record {
        self.at
    }
}

fn text<'s>(string: &sys::perfring_string) -> &'s [u8] {
    // SAFETY: the bytes are in the record.
    unsafe { slice(string.data.cast(), string.size.into()) }
}

/// A record with its format and its time, of a file or a session.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    pub(crate) item: sys::perfring_item,
    pub(crate) file: *const sys::perfring_file, // null: of a session
    pub(crate) source: PhantomData<&'a [u8]>,
}

impl<'a> Item<'a> {
    /// Its bytes.
    #[inline]
    pub fn record(&self) -> Record<'a> {
        // SAFETY: a source's items are whole records.
        unsafe { Record::new(self.item.record) }
    }

    /// Of its event; none of a record that belongs to none.
    #[inline]
    pub fn format(&self) -> Option<&'a Format> {
        // SAFETY: null, or valid while the source is; Format is transparent.
        unsafe { self.item.format.cast::<Format>().as_ref() }
    }

    /// In ns; 0: none.
    pub fn time(&self) -> u64 {
        self.item.time
    }

    /// The event's name; none of a session, and of a record without an event.
    pub fn event_name(&self) -> Option<&'a [u8]> {
        if self.file.is_null() {
            return None;
        }
        // SAFETY: the name is valid while the file is open.
        unsafe { crate::c_bytes(sys::perfring_file_event_name(self.file, self.format()?.index())) }
    }

    /// As [`Record::sample`]; without a format [`Error::Invalid`].
    #[inline]
    pub fn sample<'s>(&self, buffer: &'s mut SampleBuffer) -> Result<Sample<'s>>
    where
        'a: 's,
    {
        match self.format() {
            Some(format) => self.record().sample(format, buffer),
            None => Err(Error::from_code(-sys::EINVAL)),
        }
    }

    /// As [`Record::decode`].
    pub fn decode<'s>(&self, buffer: &'s mut RecordBuffer) -> Result<Decoded<'s>>
    where
        'a: 's,
    {
        self.record().decode(self.format(), buffer)
    }
}

/// A sample to be encoded: the members that its format has count. Formats with fields that are not here (READ, BRANCH_STACK,
/// registers, AUX) cannot be written.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct NewSample<'a> {
    pub misc: u16,
    pub identifier: u64,
    pub ip: u64,
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
    pub addr: u64,
    pub id: u64,
    pub stream_id: u64,
    pub cpu: u32,
    pub period: u64,
    pub callchain: &'a [u64],
    pub raw: &'a [u8],
}

impl NewSample<'_> {
    const FIELDS: u64 = sys::PERFRING_SAMPLE_IDENTIFIER
        | sys::PERFRING_SAMPLE_IP
        | sys::PERFRING_SAMPLE_TID
        | sys::PERFRING_SAMPLE_TIME
        | sys::PERFRING_SAMPLE_ADDR
        | sys::PERFRING_SAMPLE_ID
        | sys::PERFRING_SAMPLE_STREAM_ID
        | sys::PERFRING_SAMPLE_CPU
        | sys::PERFRING_SAMPLE_PERIOD
        | sys::PERFRING_SAMPLE_CALLCHAIN
        | sys::PERFRING_SAMPLE_RAW;

    /// In `buffer` the members of all FIELDS. The pointers are valid while `self` is.
    pub(crate) fn write(&self, format: &Format, buffer: &mut MaybeUninit<sys::perfring_sample>) -> Result<u64> {
        if format.0.sample_type & !NewSample::FIELDS != 0 || self.raw.len() > sys::PERFRING_RECORD_MAX {
            return Err(Error::from_code(-sys::EINVAL));
        }
        let at = buffer.as_mut_ptr();
        // SAFETY: only addresses of members are computed. No reference is made to what is not written.
        unsafe {
            core::ptr::addr_of_mut!((*at).trailing_size).write(0);
            core::ptr::addr_of_mut!((*at).misc).write(self.misc);
            core::ptr::addr_of_mut!((*at).identifier).write(self.identifier);
            core::ptr::addr_of_mut!((*at).ip).write(self.ip);
            core::ptr::addr_of_mut!((*at).pid).write(self.pid);
            core::ptr::addr_of_mut!((*at).tid).write(self.tid);
            core::ptr::addr_of_mut!((*at).time).write(self.time);
            core::ptr::addr_of_mut!((*at).addr).write(self.addr);
            core::ptr::addr_of_mut!((*at).id).write(self.id);
            core::ptr::addr_of_mut!((*at).stream_id).write(self.stream_id);
            core::ptr::addr_of_mut!((*at).cpu).write(self.cpu);
            core::ptr::addr_of_mut!((*at).cpu_reserved).write(0);
            core::ptr::addr_of_mut!((*at).period).write(self.period);
            core::ptr::addr_of_mut!((*at).callchain)
                .write(sys::perfring_list { words: self.callchain.as_ptr(), nr: self.callchain.len() as u64 });
            core::ptr::addr_of_mut!((*at).raw).write(sys::perfring_raw_of(self.raw.as_ptr().cast(), self.raw.len() as u32));
        }
        // SAFETY: the format's fields have been written.
        match unsafe { sys::perfring_sample_size_any(&format.0, at) } {
            size if size < 0 => Err(Error::from_code(size as i32)),
            size => Ok(size as u64),
        }
    }

    /// Encodes it into `bytes`. Returns the record's size; [`Error::NoSpace`]: `bytes` are too few; [`Error::Invalid`]: more than
    /// 65528 bytes, or a field that is not here.
    pub fn encode(&self, format: &Format, bytes: &mut [u8]) -> Result<usize> {
        let mut buffer = MaybeUninit::uninit();
        self.write(format, &mut buffer)?;
        // SAFETY: as above; `bytes` are written up to their length at most.
        match unsafe { sys::perfring_sample_encode_any(&format.0, buffer.as_ptr(), bytes.as_mut_ptr().cast(), bytes.len()) } {
            size if size < 0 => Err(Error::from_code(size as i32)),
            size => Ok(size as usize),
        }
    }
}
