//! lib.rs - C functions, structs and numbers of perfring, under their own names.
//!
//! The C headers say what each means, its errors, threads and lifetimes. Inline functions of the headers are called by their
//! linkable copies. Only processors whose pointers have 64 bits.
//!
//! `layouts`, `signatures` and `numbers` list what is declared here; the example `check` makes a C program of them, which compiles
//! only if the headers agree.
#![no_std]
#![allow(non_camel_case_types, non_upper_case_globals)]

use core::mem::{size_of, MaybeUninit};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("perfring-sys is for processors whose pointers have 64 bits");

pub use core::ffi::c_void;
pub type c_int = i32;
pub type c_uint = u32;
/// As `core::ffi::c_char`, which Rust 1.63 does not have: unsigned where the C compiler's char is.
#[cfg(any(target_arch = "aarch64", target_arch = "powerpc64", target_arch = "riscv64", target_arch = "s390x"))]
pub type c_char = u8;
#[cfg(not(any(target_arch = "aarch64", target_arch = "powerpc64", target_arch = "riscv64", target_arch = "s390x")))]
pub type c_char = i8;

/// A word of a record, which need not be aligned: `core::ptr::read_unaligned`.
pub type perfring_word = u64;

fn size_of_target<T>(_: *const T) -> usize {
    size_of::<T>()
}

macro_rules! structs {
    ($($(#[$meta:meta])* struct $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name { $(pub $field: $type,)* }
        )*

        /// Each struct: its name, its size, and (name, offset, size, type) of its members.
        #[doc(hidden)]
        pub fn layouts(each: &mut dyn FnMut(&str, usize, &[(&str, usize, usize, &str)])) {
            $({
                let space = MaybeUninit::<$name>::uninit();
                let base = space.as_ptr();
                each(stringify!($name), size_of::<$name>(), &[$({
                    // SAFETY: only the address is computed, inside of `space`.
                    let at = unsafe { core::ptr::addr_of!((*base).$field) };
                    (stringify!($field), at as usize - base as usize, size_of_target(at), stringify!($type))
                },)*]);
            })*
        }
    };
}

macro_rules! opaque {
    ($($name:ident)*) => { $(
        /// Known to the library alone.
        #[repr(C)]
        #[derive(Debug)]
        pub struct $name { _private: [u8; 0] }
    )* };
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        extern "C" { $(pub fn $name($($argument: $type),*) $(-> $result)?;)* }

        /// Each function: its name, the types of its arguments, that of its result ("": none).
        #[doc(hidden)]
        pub fn signatures(each: &mut dyn FnMut(&str, &[&str], &str)) {
            $(each(stringify!($name), &[$(stringify!($type)),*], concat!($(stringify!($result))?));)*
        }
    };
}

macro_rules! numbers {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(pub const $name: $type = $value;)*

        /// Each number: its name and its value.
        #[doc(hidden)]
        pub fn numbers(each: &mut dyn FnMut(&str, i64)) {
            $(each(stringify!($name), $name as i64);)*
        }
    };
}

opaque! {
    perfring_file perfring_format_set perfring_maps perfring_session perfring_set perfring_soft_event perfring_stacks
    perfring_symbol_object perfring_symbols perfring_target perfring_writer perf_event_mmap_page
}

structs! {
    struct perf_event_header {
        r#type: u32,
        misc: u16,
        size: u16,
    }

    /// Larger than the kernel's, so that a library with a newer header may write its members; `size` says how many bytes count.
    struct perf_event_attr {
        r#type: u32,
        size: u32,
        config: u64,
        sample_period: u64, // or sample_freq
        sample_type: u64,
        read_format: u64,
        flags: u64, // perfring_attr_set_flag
        wakeup_events: u32, // or wakeup_watermark
        bp_type: u32,
        config1: u64, // or bp_addr
        config2: u64, // or bp_len
        branch_sample_type: u64,
        sample_regs_user: u64,
        sample_stack_user: u32,
        clockid: i32,
        sample_regs_intr: u64,
        aux_watermark: u32,
        sample_max_stack: u16,
        reserved_2: u16,
        aux_sample_size: u32,
        aux_action: u32,
        sig_data: u64,
        config3: u64,
        config4: u64,
        reserve: [u64; 14],
    }

    struct perfring_fault {
        at: i64,
        what: *const c_char,
    }

    struct perfring_item {
        record: *const perf_event_header,
        format: *const perfring_format,
        time: u64,
    }

    struct perfring_format {
        sample_type: u64,
        read_format: u64,
        branch_sample_type: u64,
        sample_regs_user: u64,
        sample_regs_intr: u64,
        flags: u64,
        index: u32,
        least: u16,
        trailer: u16,
        sample_id_at: u16,
        sample_time_at: u16,
        trailer_id_back: u16,
        trailer_time_back: u16,
        sample_regs_user_nr: u8,
        sample_regs_intr_nr: u8,
        arch: u16,
        sample_stack_user: u32,
        reserved: [u64; 3],
    }

    struct perfring_read {
        entries: *const perfring_word,
        nr: u64,
        enabled: u64,
        running: u64,
        read_format: u64,
    }

    struct perfring_list {
        words: *const perfring_word,
        nr: u64,
    }

    struct perfring_raw {
        data: *const c_void,
        size: u32,
        padding: u32,
    }

    struct perfring_branch_stack {
        entries: *const perfring_word,
        counters: *const perfring_word,
        nr: u64,
        hw_idx: u64,
        has_hw_idx: bool,
    }

    struct perfring_regs {
        values: *const perfring_word,
        abi: u64,
        mask: u64,
        nr: u32,
        arch: u32,
    }

    struct perfring_stack {
        data: *const c_void,
        size: u64,
        dyn_size: u64,
    }

    struct perfring_weight {
        var1: u32,
        var2: u16,
        var3: u16,
    }

    struct perfring_aux {
        data: *const c_void,
        size: u64,
    }

    struct perfring_sample {
        present: u64,
        trailing: *const c_void,
        trailing_size: u32,
        misc: u16,
        padding: u16,
        identifier: u64,
        ip: u64,
        pid: u32,
        tid: u32,
        time: u64,
        addr: u64,
        id: u64,
        stream_id: u64,
        cpu: u32,
        cpu_reserved: u32,
        period: u64,
        read: perfring_read,
        callchain: perfring_list,
        raw: perfring_raw,
        branch_stack: perfring_branch_stack,
        regs_user: perfring_regs,
        stack_user: perfring_stack,
        weight: u64,
        weight_struct: perfring_weight,
        data_src: u64,
        transaction: u64,
        regs_intr: perfring_regs,
        phys_addr: u64,
        cgroup: u64,
        data_page_size: u64,
        code_page_size: u64,
        aux: perfring_aux,
        reserved: [u64; 4],
    }

    struct perfring_frame {
        ip: u64,
        context: u64,
    }

    struct perfring_callchain {
        words: *const perfring_word,
        nr: u64,
        at: u64,
        context: u64,
        cookie: u64,
        is_deferred: bool,
        is_user: bool,
    }

    struct perfring_string {
        data: *const c_char,
        size: u32,
        space: u32,
    }

    struct perfring_file_id {
        maj: u32,
        min: u32,
        ino: u64,
        ino_generation: u64,
        build_id: [u8; 20],
        build_id_size: u8,
        has_build_id: bool,
    }

    struct perfring_trailer {
        present: u64,
        identifier: u64,
        pid: u32,
        tid: u32,
        time: u64,
        id: u64,
        stream_id: u64,
        cpu: u32,
        cpu_reserved: u32,
        reserved: [u64; 2],
    }

    /// `is`: a perfring_record_ struct, by `type`.
    struct perfring_record {
        r#type: u32,
        misc: u16,
        size: u16,
        trailing: *const c_void,
        trailing_size: u32,
        padding: u32,
        trailer: perfring_trailer,
        is: [u64; 24],
    }

    struct perfring_record_mmap {
        reserved_: u32,
        pid: u32,
        tid: u32,
        addr: u64,
        len: u64,
        pgoff: u64,
        filename: perfring_string,
    }

    struct perfring_record_lost {
        reserved_: u32,
        id: u64,
        lost: u64,
    }

    struct perfring_record_comm {
        reserved_: u32,
        pid: u32,
        tid: u32,
        comm: perfring_string,
    }

    struct perfring_record_exit {
        reserved_: u32,
        pid: u32,
        ppid: u32,
        tid: u32,
        ptid: u32,
        time: u64,
    }

    struct perfring_record_fork {
        reserved_: u32,
        pid: u32,
        ppid: u32,
        tid: u32,
        ptid: u32,
        time: u64,
    }

    struct perfring_record_mmap2 {
        reserved_: u32,
        pid: u32,
        tid: u32,
        addr: u64,
        len: u64,
        pgoff: u64,
        file: perfring_file_id,
        prot: u32,
        flags: u32,
        filename: perfring_string,
    }

    struct perfring_ring {
        page: *mut perf_event_mmap_page,
        data: *mut u8,
        size: u64,
        span: u64,
        mapping: *mut c_void,
        mapping_size: u64,
        flags: u64,
        fd: i32,
        padding: u32,
    }

    struct perfring_ring_options {
        pages: u32,
        flags: u32,
        file: *const c_char,
        wakeup: u32,
        watermark: bool,
        owners: u32,
        chunk: u32,
        aux_pages: u32,
        id: u64,
        attr: *const perf_event_attr,
        reserved: [u64; 2],
    }

    struct perfring_reader {
        page: *mut perf_event_mmap_page,
        data: *const u8,
        mask: u64,
        span: u64,
        position: u64,
        observed: u64,
        returned: u64,
        joint: *mut u8,
        fault: perfring_fault,
        flags: u32,
        padding: u32,
        reserved: [u64; 4],
    }

    struct perfring_output {
        id: u64,
        lost: u64,
        wakeup_events: u32,
        trailer_size: u32,
        trailer: Option<unsafe extern "C" fn(*const perfring_output, *mut c_void)>,
        data: *mut c_void,
        reserved: [u64; 2],
    }

    struct perfring_writer_options {
        policy: u32,
        stamp: u32,
        clockid: i32,
        wake_fd: i32,
        wait_ns: u64,
        output: perfring_output,
        reserved: [u64; 2],
    }

    struct perfring_claim {
        end: u64,
        size: u64,
        taken: u64,
        time: u64,
        output: *mut perfring_output,
        space: *mut u8,
        state: u64,
    }

    struct perfring_feature_build_id {
        name: *const c_char,
        name_size: usize,
        id: *const u8,
        id_size: usize,
    }

    /// Its members are the library's.
    struct perfring_layout_walk {
        own: [u64; 46],
    }

    struct perfring_maps_object {
        name: *const c_char,
        file: perfring_file_id,
        kind: u32,
        reserved: u32,
    }

    struct perfring_mapping {
        addr: u64,
        end: u64,
        pgoff: u64,
        object: *const perfring_maps_object,
        pid: u32,
        prot: u32,
    }

    struct perfring_symbols_options {
        flags: u32,
        reserved_word: u32,
        symfs: *const c_char,
        progress: *mut c_void,
        to: *mut c_void,
        reserved: [u64; 12],
    }

    struct perfring_symbol_file {
        path: *const c_char,
        build_id: *const u8,
        build_id_size: u32,
        pid: i32,
        ino: u64,
        ino_generation: u64,
        reserved: [u64; 2],
    }

    struct perfring_symbol {
        name: *const c_char,
        module: *const c_char,
        start: u64,
        end: u64,
        address: u64,
        why: c_uint,
        reserved: u32,
    }

    struct perfring_symbol_kernel {
        kallsyms: *const c_char,
        vmlinux: *const c_char,
        release: *const c_char,
        build_id: *const u8,
        build_id_size: u32,
        reserved_word: u32,
        reference: *const c_char,
        address: u64,
        reserved: [u64; 4],
    }

    struct perfring_totals {
        records: u64,
        samples: u64,
        bytes: u64,
        lost: u64,
        lost_samples: u64,
        throttles: u64,
        unthrottles: u64,
        late: u64,
        unknown_ids: u64,
        corrupt: u64,
        skipped: u64,
        first_time: u64,
        last_time: u64,
        aux: u64,
        aux_truncated: u64,
        aux_partial: u32,
        aux_collisions: u32,
    }
}

functions! {
    fn perfring_version() -> *const c_char;

    fn perfring_file_open(file: *mut *mut perfring_file, path: *const c_char) -> c_int;
    fn perfring_file_close(file: *mut perfring_file);
    fn perfring_file_next(file: *mut perfring_file, item: *mut perfring_item) -> c_int;
    fn perfring_file_position(file: *const perfring_file) -> i64;
    fn perfring_file_fault(file: *const perfring_file) -> perfring_fault;
    fn perfring_file_is_finished(file: *const perfring_file) -> bool;
    fn perfring_file_formats(file: *const perfring_file) -> *const perfring_format_set;
    fn perfring_file_attr(file: *const perfring_file, index: u32) -> *const perf_event_attr;
    fn perfring_file_event_name(file: *const perfring_file, index: u32) -> *const c_char;
    fn perfring_file_string(file: *const perfring_file, feature: u32) -> *const c_char;

    fn perfring_file_feature(file: *const perfring_file, feature: u32, size: *mut u64) -> *const c_void;

    fn perfring_feature_open(
        walk: *mut perfring_layout_walk,
        feature: u32,
        payload: *const c_void,
        size: u64,
        cpus: u32
    );
    fn perfring_feature_next_build_id(walk: *mut perfring_layout_walk, build_id: *mut perfring_feature_build_id) -> c_int;

    fn perfring_format_plan(format: *mut perfring_format);
    fn perfring_format_from_attr(format: *mut perfring_format, attr: *const perf_event_attr) -> c_int;
    fn perfring_format_time_of(format: *const perfring_format, record: *const perf_event_header) -> u64;
    fn perfring_format_set_count(set: *const perfring_format_set) -> u32;
    fn perfring_attr_set_flag(attr: *mut perf_event_attr, flag: u32, set: bool);

    fn perfring_sample_decode_any(
        format: *const perfring_format,
        record: *const perf_event_header,
        sample: *mut perfring_sample,
        fault: *mut perfring_fault
    ) -> c_int;
    fn perfring_sample_size_any(format: *const perfring_format, sample: *const perfring_sample) -> i64;
    fn perfring_sample_encode_any(
        format: *const perfring_format,
        sample: *const perfring_sample,
        buffer: *mut c_void,
        size: usize
    ) -> i64;
    fn perfring_raw_of(data: *const c_void, size: u32) -> perfring_raw;
    fn perfring_callchain_init(list: *const perfring_list) -> perfring_callchain;
    fn perfring_callchain_next(chain: *mut perfring_callchain, frame: *mut perfring_frame) -> c_int;

    fn perfring_record_name(kind: u32) -> *const c_char;
    fn perfring_record_decode(
        format: *const perfring_format,
        record: *const perf_event_header,
        decoded: *mut perfring_record,
        fault: *mut perfring_fault
    ) -> c_int;

    fn perfring_ring_create(ring: *mut perfring_ring, options: *const perfring_ring_options) -> c_int;
    fn perfring_ring_attach(ring: *mut perfring_ring, fd: c_int, flags: c_uint, fault: *mut perfring_fault) -> c_int;
    fn perfring_ring_close(ring: *mut perfring_ring);

    fn perfring_reader_open(reader: *mut perfring_reader, ring: *const perfring_ring, flags: c_uint) -> c_int;
    fn perfring_reader_close(reader: *mut perfring_reader);
    fn perfring_reader_observe(reader: *mut perfring_reader) -> i64;
    fn perfring_reader_next(reader: *mut perfring_reader, record: *mut *const perf_event_header) -> c_int;
    fn perfring_reader_return(reader: *mut perfring_reader);
    fn perfring_reader_skip(reader: *mut perfring_reader) -> u64;

    fn perfring_writer_open(
        writer: *mut *mut perfring_writer,
        ring: *mut perfring_ring,
        options: *const perfring_writer_options
    ) -> c_int;
    fn perfring_writer_close(writer: *mut perfring_writer);
    fn perfring_writer_reserve(
        writer: *mut perfring_writer,
        output: *mut perfring_output,
        size: u64,
        claim: *mut perfring_claim
    ) -> *mut c_void;
    fn perfring_writer_commit(writer: *mut perfring_writer, claim: *const perfring_claim);
    fn perfring_writer_discard(writer: *mut perfring_writer, claim: *const perfring_claim);
    fn perfring_writer_write(
        writer: *mut perfring_writer,
        output: *mut perfring_output,
        record: *const c_void,
        size: u64
    ) -> bool;
    fn perfring_writer_flush(writer: *mut perfring_writer);

    fn perfring_event_parse(text: *const c_char, attr: *mut perf_event_attr, fault: *mut perfring_fault) -> c_int;

    fn perfring_target_open(target: *mut *mut perfring_target) -> c_int;
    fn perfring_target_close(target: *mut perfring_target);
    fn perfring_target_add_cpus(target: *mut perfring_target, list: *const c_char) -> c_int;
    fn perfring_target_add_process(target: *mut perfring_target, pid: i32) -> c_int;
    fn perfring_target_add_thread(target: *mut perfring_target, tid: i32) -> c_int;

    fn perfring_session_open(session: *mut *mut perfring_session, pages: u32) -> c_int;
    fn perfring_session_close(session: *mut perfring_session);
    fn perfring_session_configure(session: *mut perfring_session, options: u32, allowed: u64) -> c_int;
    fn perfring_session_add(
        session: *mut perfring_session,
        attr: *const perf_event_attr,
        target: *const perfring_target
    ) -> c_int;
    fn perfring_session_describe_ring(session: *mut perfring_session, ring: *const perfring_ring) -> c_int;
    fn perfring_session_add_ring(
        session: *mut perfring_session,
        ring: *const perfring_ring,
        wake_fd: c_int,
        flags: u32
    ) -> c_int;
    fn perfring_session_add_set(session: *mut perfring_session, set: *mut perfring_set, wake_fd: c_int, flags: u32) -> c_int;
    fn perfring_session_refusal(session: *const perfring_session) -> *const c_char;
    fn perfring_session_enable(session: *mut perfring_session) -> c_int;
    fn perfring_session_disable(session: *mut perfring_session) -> c_int;
    fn perfring_session_wait(session: *mut perfring_session, timeout_ms: c_int) -> c_int;
    fn perfring_session_fd(session: *const perfring_session) -> c_int;
    fn perfring_session_is_over(session: *const perfring_session) -> bool;
    fn perfring_session_flush(session: *mut perfring_session);
    fn perfring_session_next(session: *mut perfring_session, item: *mut perfring_item) -> c_int;
    fn perfring_session_return(session: *mut perfring_session);
    fn perfring_session_fault(session: *const perfring_session, ring: *mut u32) -> perfring_fault;
    fn perfring_session_totals(session: *const perfring_session, totals: *mut perfring_totals);

    fn perfring_soft_open(
        event: *mut *mut perfring_soft_event,
        attr: *const perf_event_attr,
        scope: c_uint,
        leader: *mut perfring_soft_event
    ) -> c_int;
    fn perfring_soft_close(event: *mut perfring_soft_event);
    fn perfring_soft_map(event: *mut perfring_soft_event, pages: u32, wake_fd: i32) -> c_int;
    fn perfring_soft_rings(event: *mut perfring_soft_event) -> *mut perfring_set;
    fn perfring_soft_enable(event: *mut perfring_soft_event, group: bool);
    fn perfring_soft_disable(event: *mut perfring_soft_event, group: bool);

    // In libperfring-profile: with the feature `profile`.
    fn perfring_maps_open(maps: *mut *mut perfring_maps) -> c_int;
    fn perfring_maps_close(maps: *mut perfring_maps);
    fn perfring_maps_take(maps: *mut perfring_maps, item: *const perfring_item) -> c_int;
    fn perfring_maps_find(maps: *const perfring_maps, cpumode: c_uint, pid: u32, ip: u64) -> *const perfring_mapping;
    fn perfring_maps_comm(maps: *const perfring_maps, tid: u32) -> *const c_char;
    fn perfring_mapping_offset(mapping: *const perfring_mapping, ip: u64) -> u64;
    fn perfring_symbols_flags_for(file: *const perfring_file) -> u32;
    fn perfring_symbols_open(symbols: *mut *mut perfring_symbols, options: *const perfring_symbols_options) -> c_int;
    fn perfring_symbols_close(symbols: *mut perfring_symbols);
    fn perfring_symbols_expect(
        symbols: *mut perfring_symbols,
        path: *const c_char,
        build_id: *const u8,
        build_id_size: u32
    ) -> c_int;
    fn perfring_symbols_get(
        symbols: *mut perfring_symbols,
        file: *const perfring_symbol_file,
        object: *mut *mut perfring_symbol_object
    ) -> c_int;
    fn perfring_symbols_get_kernel(
        symbols: *mut perfring_symbols,
        kernel: *const perfring_symbol_kernel,
        object: *mut *mut perfring_symbol_object
    ) -> c_int;
    fn perfring_symbol_find(object: *mut perfring_symbol_object, offset: u64, symbol: *mut perfring_symbol) -> bool;
    fn perfring_stacks_open(
        stacks: *mut *mut perfring_stacks,
        maps: *const perfring_maps,
        symbols: *mut perfring_symbols
    ) -> c_int;
    fn perfring_stacks_close(stacks: *mut perfring_stacks);
    fn perfring_stacks_chain(
        stacks: *mut perfring_stacks,
        sample: *const perfring_sample,
        most: u32,
        chain: *mut perfring_list,
        end: *mut c_uint
    ) -> c_int;
}

const IS_MIPS: bool = cfg!(any(target_arch = "mips64", target_arch = "mips64r6"));
const IS_SPARC: bool = cfg!(target_arch = "sparc64");

numbers! {
    ENOMEM: c_int = 12;
    EBUSY: c_int = 16;
    EINVAL: c_int = 22;
    ENOSPC: c_int = 28;
    EBADMSG: c_int = if IS_MIPS { 77 } else if IS_SPARC { 76 } else { 74 };
    EOPNOTSUPP: c_int = if IS_MIPS { 122 } else if IS_SPARC { 45 } else { 95 };
    PERFRING_RECORD_MAX: usize = 65528;
    PERFRING_SAMPLE_IP: u64 = 1 << 0;
    PERFRING_SAMPLE_TID: u64 = 1 << 1;
    PERFRING_SAMPLE_TIME: u64 = 1 << 2;
    PERFRING_SAMPLE_ADDR: u64 = 1 << 3;
    PERFRING_SAMPLE_READ: u64 = 1 << 4;
    PERFRING_SAMPLE_CALLCHAIN: u64 = 1 << 5;
    PERFRING_SAMPLE_ID: u64 = 1 << 6;
    PERFRING_SAMPLE_CPU: u64 = 1 << 7;
    PERFRING_SAMPLE_PERIOD: u64 = 1 << 8;
    PERFRING_SAMPLE_STREAM_ID: u64 = 1 << 9;
    PERFRING_SAMPLE_RAW: u64 = 1 << 10;
    PERFRING_SAMPLE_BRANCH_STACK: u64 = 1 << 11;
    PERFRING_SAMPLE_REGS_USER: u64 = 1 << 12;
    PERFRING_SAMPLE_STACK_USER: u64 = 1 << 13;
    PERFRING_SAMPLE_WEIGHT: u64 = 1 << 14;
    PERFRING_SAMPLE_DATA_SRC: u64 = 1 << 15;
    PERFRING_SAMPLE_IDENTIFIER: u64 = 1 << 16;
    PERFRING_SAMPLE_TRANSACTION: u64 = 1 << 17;
    PERFRING_SAMPLE_REGS_INTR: u64 = 1 << 18;
    PERFRING_SAMPLE_PHYS_ADDR: u64 = 1 << 19;
    PERFRING_SAMPLE_AUX: u64 = 1 << 20;
    PERFRING_SAMPLE_CGROUP: u64 = 1 << 21;
    PERFRING_SAMPLE_DATA_PAGE_SIZE: u64 = 1 << 22;
    PERFRING_SAMPLE_CODE_PAGE_SIZE: u64 = 1 << 23;
    PERFRING_SAMPLE_WEIGHT_STRUCT: u64 = 1 << 24;
    PERFRING_RECORD_MMAP: u32 = 1;
    PERFRING_RECORD_LOST: u32 = 2;
    PERFRING_RECORD_COMM: u32 = 3;
    PERFRING_RECORD_EXIT: u32 = 4;
    PERFRING_RECORD_FORK: u32 = 7;
    PERFRING_RECORD_SAMPLE: u32 = 9;
    PERFRING_RECORD_MMAP2: u32 = 10;
    PERFRING_RECORD_MISC_USER: u16 = 2;
    PERFRING_RECORD_MISC_KERNEL: u16 = 1;
    PERFRING_RECORD_MISC_HYPERVISOR: u16 = 3;
    PERFRING_RECORD_MISC_GUEST_KERNEL: u16 = 4;
    PERFRING_RECORD_MISC_GUEST_USER: u16 = 5;
    PERFRING_CONTEXT_HV: i64 = -32;
    PERFRING_CONTEXT_KERNEL: i64 = -128;
    PERFRING_CONTEXT_USER: i64 = -512;
    PERFRING_CONTEXT_USER_DEFERRED: i64 = -640;
    PERFRING_CONTEXT_GUEST_KERNEL: i64 = -2176;
    PERFRING_CONTEXT_GUEST_USER: i64 = -2560;
    PERFRING_FEATURE_BUILD_ID: u32 = 2;
    PERFRING_FEATURE_OSRELEASE: u32 = 4;
    PERFRING_MAPS_KERNEL: u32 = 4;
    PERFRING_MAPS_MODULE: u32 = 5;
    PERFRING_MAPS_KSYMBOL: u32 = 6;
    PERFRING_ATTR_FLAG_disabled: u32 = 0;
    PERFRING_ATTR_FLAG_inherit: u32 = 1;
    PERFRING_ATTR_FLAG_exclude_kernel: u32 = 5;
    PERFRING_ATTR_FLAG_mmap: u32 = 8;
    PERFRING_ATTR_FLAG_comm: u32 = 9;
    PERFRING_ATTR_FLAG_freq: u32 = 10;
    PERFRING_ATTR_FLAG_enable_on_exec: u32 = 12;
    PERFRING_ATTR_FLAG_task: u32 = 13;
    PERFRING_ATTR_FLAG_sample_id_all: u32 = 18;
    PERFRING_ATTR_FLAG_mmap2: u32 = 23;
    PERFRING_READER_COPY: u32 = 1;
    PERFRING_RING_OVERWRITE: u32 = 1;
    PERFRING_RING_BACKWARD: u32 = 2;
    PERFRING_RING_REPLACE: u32 = 128;
    PERFRING_WRITER_DROP: u32 = 0;
    PERFRING_WRITER_WAIT: u32 = 1;
    PERFRING_FALLBACK_EXCLUDE_KERNEL: u64 = 16;
    PERFRING_FALLBACK_ALL: u64 = 255;
    PERFRING_SOFT_THREAD: u32 = 0;
    PERFRING_SOFT_PROCESS: u32 = 1;
}
