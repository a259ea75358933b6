# _library.py - libperfring.so.0 by ctypes: where it is, its structs, its functions.
#
# The structs and numbers are those of the C headers; tests/bindings/python_test holds each member's offset against C's.
"""The C library that the package calls.  Nothing in here is public."""

import ctypes
import os
from ctypes import (
    POINTER, Structure, c_bool, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint8, c_uint16, c_uint32,
    c_uint64, c_void_p,
)

VERSION = "0.9.0"  # of this package; the library has the same major and minor number
SONAME = "libperfring.so.0"
PROFILE_SONAME = "libperfring-profile.so.0"

# ---- numbers ----

# (bit of sample_type, column, bytes): every field of one word, in the order of struct perfring_columns.
COLUMNS = (
    (16, "identifier", 8), (0, "ip", 8), (1, "pid", 4), (1, "tid", 4), (2, "time", 8), (3, "addr", 8), (6, "id", 8),
    (9, "stream_id", 8), (7, "cpu", 4), (7, "cpu_reserved", 4), (8, "period", 8), (14, "weight", 8),
    (15, "data_src", 8), (17, "transaction", 8), (19, "phys_addr", 8), (21, "cgroup", 8), (22, "data_page_size", 8),
    (23, "code_page_size", 8),
)
COLUMN_WORDS = 24  # pointers in struct perfring_columns, with its reserve
CALLCHAIN_BIT = 5
RAW_BIT = 10

# Words of a callchain from CONTEXT_MAX on are markers, not addresses.
CONTEXT_MAX = (1 << 64) - 4095
CONTEXT_KERNEL = (1 << 64) - 128
CONTEXT_USER = (1 << 64) - 512
CONTEXT_USER_DEFERRED = (1 << 64) - 640

# Bits of attr's word of flags.
FLAGS = {
    "disabled": 0, "inherit": 1, "exclude_kernel": 5, "exclude_hv": 6, "mmap": 8, "comm": 9, "freq": 10, "task": 13,
    "sample_id_all": 18, "mmap2": 23, "comm_exec": 24, "use_clockid": 25,
}

SAMPLE_ID_ALL_BITS = 0x10000 | 2 | 4  # IDENTIFIER, TID, TIME

NUMBERS = {
    "RECORD_MMAP": 1, "RECORD_LOST": 2, "RECORD_LOST_SAMPLES": 13, "RECORD_COMM": 3, "RECORD_EXIT": 4, "RECORD_FORK": 7, "RECORD_SAMPLE": 9, "RECORD_MISC_FORK_EXEC": 0x2000, "RECORD_MMAP2": 10,
    "RECORD_OF_PERF": 64, "RECORD_MAX": 65528, "ROWS_CHAIN_MIN": 8191, "ROWS_RAW_MIN": 65528, "READER_COPY": 1,
    "SESSION_SHRINK": 1, "SESSION_RAISE_FILES": 2, "FALLBACK_ALL": 255, "SOFT_PROCESS": 1, "FEATURE_BUILD_ID": 2, "FEATURE_HOSTNAME": 3,
    "FEATURE_OSRELEASE": 4, "SYMBOLS_ELSEWHERE": 32, "FEATURE_VERSION": 5, "FEATURE_ARCH": 6, "FEATURE_CPUDESC": 8, "FEATURE_CPUID": 9,
    "RECORD_MISC_KERNEL": 1, "RECORD_MISC_USER": 2, "MAPS_FILE": 0, "MAPS_VDSO": 2, "MAPS_KERNEL": 4, "BUILD_ID_SIZE": 20,
}

# ---- structs ----


class Fault(Structure):
    _fields_ = [("at", c_int64), ("what", c_char_p)]


class Format(Structure):
    _fields_ = [
        ("sample_type", c_uint64), ("read_format", c_uint64), ("branch_sample_type", c_uint64),
        ("sample_regs_user", c_uint64), ("sample_regs_intr", c_uint64), ("flags", c_uint64), ("index", c_uint32),
        ("least", c_uint16), ("trailer", c_uint16), ("sample_id_at", c_uint16), ("sample_time_at", c_uint16),
        ("trailer_id_back", c_uint16), ("trailer_time_back", c_uint16), ("sample_regs_user_nr", c_uint8),
        ("sample_regs_intr_nr", c_uint8), ("arch", c_uint16), ("sample_stack_user", c_uint32),
        ("reserved", c_uint64 * 3),
    ]


class Header(Structure):
    _fields_ = [("type", c_uint32), ("misc", c_uint16), ("size", c_uint16)]


class Item(Structure):
    _fields_ = [("record", POINTER(Header)), ("format", POINTER(Format)), ("time", c_uint64)]


class Columns(Structure):
    _fields_ = [(name, c_void_p) for _, name, _ in COLUMNS] + [("reserved", c_void_p * (COLUMN_WORDS - len(COLUMNS)))]


class Rows(Structure):
    _fields_ = [
        ("columns", Columns), ("present", c_void_p), ("event", c_void_p), ("misc", c_void_p), ("chain_at", c_void_p),
        ("chain", c_void_p), ("raw_at", c_void_p), ("raw", c_void_p), ("capacity", c_size_t),
        ("chain_capacity", c_size_t), ("raw_capacity", c_size_t), ("count", c_size_t), ("stops", c_uint64),
        ("reserved", c_uint64 * 4),
    ]


ATTR_SIZE = 144


class Attr(Structure):
    """struct perf_event_attr up to its size 144; older headers have less of it.  A library whose headers have more of it copies more."""

    _fields_ = [
        ("type", c_uint32), ("size", c_uint32), ("config", c_uint64), ("sample_period", c_uint64),
        ("sample_type", c_uint64), ("read_format", c_uint64), ("flags", c_uint64), ("wakeup_events", c_uint32),
        ("bp_type", c_uint32), ("config1", c_uint64), ("config2", c_uint64), ("branch_sample_type", c_uint64),
        ("sample_regs_user", c_uint64), ("sample_stack_user", c_uint32), ("clockid", c_int32),
        ("sample_regs_intr", c_uint64), ("aux_watermark", c_uint32), ("sample_max_stack", c_uint16),
        ("reserved_2", c_uint16), ("aux_sample_size", c_uint32), ("reserved_3", c_uint32), ("sig_data", c_uint64),
        ("config3", c_uint64), ("config4", c_uint64), ("reserved", c_uint64 * 14),
    ]

    def set_flag(self, name, is_set=True):
        library.perfring_attr_set_flag(ctypes.byref(self), FLAGS[name], bool(is_set))


class Trailer(Structure):
    _fields_ = [
        ("present", c_uint64), ("identifier", c_uint64), ("pid", c_uint32), ("tid", c_uint32), ("time", c_uint64),
        ("id", c_uint64), ("stream_id", c_uint64), ("cpu", c_uint32), ("cpu_reserved", c_uint32),
        ("reserved", c_uint64 * 2),
    ]


class String(Structure):
    _fields_ = [("data", c_void_p), ("size", c_uint32), ("space", c_uint32)]

    def text(self):
        return os.fsdecode(ctypes.string_at(self.data, self.size)) if self.size else ""


class FileId(Structure):
    _fields_ = [
        ("maj", c_uint32), ("min", c_uint32), ("ino", c_uint64), ("ino_generation", c_uint64),
        ("build_id", c_uint8 * 20), ("build_id_size", c_uint8), ("has_build_id", c_bool),
    ]


class RecordComm(Structure):
    _fields_ = [("reserved_", c_uint32), ("pid", c_uint32), ("tid", c_uint32), ("comm", String)]


class RecordFork(Structure):  # and EXIT
    _fields_ = [
        ("reserved_", c_uint32), ("pid", c_uint32), ("ppid", c_uint32), ("tid", c_uint32), ("ptid", c_uint32),
        ("time", c_uint64),
    ]


class RecordLost(Structure):
    _fields_ = [("reserved_", c_uint32), ("id", c_uint64), ("lost", c_uint64)]


class RecordLostSamples(Structure):
    _fields_ = [("reserved_", c_uint32), ("lost", c_uint64)]


class RecordMmap(Structure):
    _fields_ = [
        ("reserved_", c_uint32), ("pid", c_uint32), ("tid", c_uint32), ("addr", c_uint64), ("len", c_uint64),
        ("pgoff", c_uint64), ("filename", String),
    ]


class RecordMmap2(Structure):
    _fields_ = [
        ("reserved_", c_uint32), ("pid", c_uint32), ("tid", c_uint32), ("addr", c_uint64), ("len", c_uint64),
        ("pgoff", c_uint64), ("file", FileId), ("prot", c_uint32), ("flags", c_uint32), ("filename", String),
    ]


class RecordUnion(ctypes.Union):
    _fields_ = [
        ("comm", RecordComm), ("fork", RecordFork), ("exit", RecordFork), ("mmap", RecordMmap), ("mmap2", RecordMmap2),
        ("lost", RecordLost), ("lost_samples", RecordLostSamples),
        ("reserved", c_uint64 * 24),
    ]


class Record(Structure):
    _fields_ = [
        ("type", c_uint32), ("misc", c_uint16), ("size", c_uint16), ("trailing", c_void_p),
        ("trailing_size", c_uint32), ("padding", c_uint32), ("trailer", Trailer), ("is_", RecordUnion),
    ]


class Ring(Structure):
    _fields_ = [
        ("page", c_void_p), ("data", c_void_p), ("size", c_uint64), ("span", c_uint64), ("mapping", c_void_p),
        ("mapping_size", c_uint64), ("flags", c_uint64), ("fd", c_int32), ("padding", c_uint32),
    ]


class Totals(Structure):
    _fields_ = [
        ("records", c_uint64), ("samples", c_uint64), ("bytes", c_uint64), ("lost", c_uint64),
        ("lost_samples", c_uint64), ("throttles", c_uint64), ("unthrottles", c_uint64), ("late", c_uint64),
        ("unknown_ids", c_uint64), ("corrupt", c_uint64), ("skipped", c_uint64), ("first_time", c_uint64),
        ("last_time", c_uint64), ("aux", c_uint64), ("aux_truncated", c_uint64), ("aux_partial", c_uint32),
        ("aux_collisions", c_uint32),
    ]


class MapsObject(Structure):
    _fields_ = [("name", c_char_p), ("file", FileId), ("kind", c_uint32), ("reserved", c_uint32)]


class Mapping(Structure):
    _fields_ = [
        ("addr", c_uint64), ("end", c_uint64), ("pgoff", c_uint64), ("object", POINTER(MapsObject)), ("pid", c_uint32),
        ("prot", c_uint32),
    ]


class SymbolFile(Structure):
    _fields_ = [
        ("path", c_char_p), ("build_id", c_void_p), ("build_id_size", c_uint32), ("pid", c_int32), ("ino", c_uint64),
        ("ino_generation", c_uint64), ("reserved", c_uint64 * 2)]


class Symbol(Structure):
    _fields_ = [
        ("name", c_char_p), ("module", c_char_p), ("start", c_uint64), ("end", c_uint64), ("address", c_uint64),
        ("why", c_int), ("reserved", c_uint32),
    ]


class SymbolKernel(Structure):
    _fields_ = [
        ("kallsyms", c_char_p), ("vmlinux", c_char_p), ("release", c_char_p), ("build_id", c_char_p),
        ("build_id_size", c_uint32), ("reserved_word", c_uint32), ("reference", c_char_p), ("address", c_uint64),
        ("reserved", c_uint64 * 4),
    ]


STRUCTS = {
    "maps_object": MapsObject, "mapping": Mapping, "symbol_file": SymbolFile, "symbol": Symbol, "symbol_kernel": SymbolKernel,
    "fault": Fault, "format": Format, "item": Item, "columns": Columns, "rows": Rows, "trailer": Trailer,
    "string": String, "file_id": FileId, "record": Record, "record_comm": RecordComm, "record_fork": RecordFork,
    "record_lost": RecordLost, "record_lost_samples": RecordLostSamples, "record_exit": RecordFork, "record_mmap": RecordMmap, "record_mmap2": RecordMmap2, "ring": Ring, "totals": Totals,
}

# ---- functions: result, arguments ----

_FUNCTIONS = {
    "perfring_attr_set_flag": (None, (POINTER(Attr), c_uint32, c_bool)),
    "perfring_event_name": (c_int64, (c_void_p, c_char_p, c_size_t)),
    "perfring_event_parse": (c_int, (c_char_p, POINTER(Attr), POINTER(Fault))),
    "perfring_fallback_explain": (c_int64, (c_uint64, POINTER(Attr), c_void_p, c_char_p, c_size_t)),
    "perfring_file_close": (None, (c_void_p,)),
    "perfring_file_event_name": (c_char_p, (c_void_p, c_uint32)),
    "perfring_file_fault": (Fault, (c_void_p,)),
    "perfring_file_feature": (c_void_p, (c_void_p, c_uint32, POINTER(c_uint64))),
    "perfring_file_fill": (c_int, (c_void_p, POINTER(Rows), POINTER(Item))),
    "perfring_file_formats": (c_void_p, (c_void_p,)),
    "perfring_file_is_finished": (c_bool, (c_void_p,)),
    "perfring_file_is_foreign": (c_bool, (c_void_p,)),
    "perfring_file_is_pipe": (c_bool, (c_void_p,)),
    "perfring_file_late": (c_uint64, (c_void_p,)),
    "perfring_file_next": (c_int, (c_void_p, POINTER(Item))),
    "perfring_file_open": (c_int, (POINTER(c_void_p), c_char_p)),
    "perfring_file_part": (c_uint32, (c_void_p,)),
    "perfring_file_position": (c_int64, (c_void_p,)),
    "perfring_file_string": (c_char_p, (c_void_p, c_uint32)),
    "perfring_format_set_at": (POINTER(Format), (c_void_p, c_uint32)),
    "perfring_format_set_attr": (c_void_p, (c_void_p, c_uint32)),
    "perfring_format_set_count": (c_uint32, (c_void_p,)),
    "perfring_record_decode": (c_int, (POINTER(Format), POINTER(Header), POINTER(Record), POINTER(Fault))),
    "perfring_record_name": (c_char_p, (c_uint32,)),
    "perfring_record_text": (c_int64, (POINTER(Format), c_void_p, c_char_p, c_size_t)),
    "perfring_ring_attach": (c_int, (POINTER(Ring), c_int, c_uint, POINTER(Fault))),
    "perfring_ring_close": (None, (POINTER(Ring),)),
    "perfring_rows_is_full": (c_bool, (POINTER(Rows),)),
    "perfring_rows_put": (c_int, (POINTER(Rows), POINTER(Item), POINTER(Fault))),
    "perfring_session_add": (c_int, (c_void_p, POINTER(Attr), c_void_p)),
    "perfring_session_add_ring": (c_int, (c_void_p, POINTER(Ring), c_int, c_uint32)),
    "perfring_session_add_set": (c_int, (c_void_p, c_void_p, c_int, c_uint32)),
    "perfring_session_attr": (c_void_p, (c_void_p, c_uint32)),
    "perfring_session_close": (None, (c_void_p,)),
    "perfring_session_configure": (c_int, (c_void_p, c_uint32, c_uint64)),
    "perfring_session_describe_ring": (c_int, (c_void_p, POINTER(Ring))),
    "perfring_session_disable": (c_int, (c_void_p,)),
    "perfring_session_enable": (c_int, (c_void_p,)),
    "perfring_session_fault": (Fault, (c_void_p, POINTER(c_uint32))),
    "perfring_session_fd": (c_int, (c_void_p,)),
    "perfring_session_fill": (c_int, (c_void_p, POINTER(Rows), POINTER(Item))),
    "perfring_session_flush": (None, (c_void_p,)),
    "perfring_session_formats": (c_void_p, (c_void_p,)),
    "perfring_session_given_up": (c_uint64, (c_void_p, c_uint32)),
    "perfring_session_is_over": (c_bool, (c_void_p,)),
    "perfring_session_next": (c_int, (c_void_p, POINTER(Item))),
    "perfring_session_open": (c_int, (POINTER(c_void_p), c_uint32)),
    "perfring_session_refusal": (c_char_p, (c_void_p,)),
    "perfring_session_return": (None, (c_void_p,)),
    "perfring_session_totals": (None, (c_void_p, POINTER(Totals))),
    "perfring_session_wait": (c_int, (c_void_p, c_int)),
    "perfring_target_add_cpus": (c_int, (c_void_p, c_char_p)),
    "perfring_target_add_process": (c_int, (c_void_p, c_int32)),
    "perfring_target_add_thread": (c_int, (c_void_p, c_int32)),
    "perfring_target_close": (None, (c_void_p,)),
    "perfring_target_open": (c_int, (POINTER(c_void_p),)),
}

# A library that was built without liburcu has none of these.
_SOFT_FUNCTIONS = {
    "perfring_soft_close": (None, (c_void_p,)),
    "perfring_soft_disable": (None, (c_void_p, c_bool)),
    "perfring_soft_enable": (None, (c_void_p, c_bool)),
    "perfring_soft_explain": (c_int64, (POINTER(Attr), c_char_p, c_size_t)),
    "perfring_soft_join": (c_int, ()),
    "perfring_soft_map": (c_int, (c_void_p, c_uint32, c_int32)),
    "perfring_soft_map_files": (c_int, (c_void_p, c_uint32, c_char_p, c_int32)),
    "perfring_soft_open": (c_int, (POINTER(c_void_p), POINTER(Attr), c_uint, c_void_p)),
    "perfring_soft_put_state": (c_int, (c_void_p,)),
    "perfring_soft_rings": (c_void_p, (c_void_p,)),
}


# Of libperfring-profile.
_PROFILE_FUNCTIONS = {
    "perfring_mapping_offset": (c_uint64, (POINTER(Mapping), c_uint64)),
    "perfring_maps_close": (None, (c_void_p,)),
    "perfring_maps_find": (POINTER(Mapping), (c_void_p, c_uint, c_uint32, c_uint64)),
    "perfring_maps_open": (c_int, (POINTER(c_void_p),)),
    "perfring_maps_take": (c_int, (c_void_p, POINTER(Item))),
    "perfring_symbol_find": (c_bool, (c_void_p, c_uint64, POINTER(Symbol))),
    "perfring_symbols_close": (None, (c_void_p,)),
    "perfring_symbols_expect": (c_int, (c_void_p, c_char_p, c_char_p, c_uint32)),
    "perfring_symbols_flags_for": (c_uint32, (c_void_p,)),
    "perfring_symbols_get": (c_int, (c_void_p, POINTER(SymbolFile), POINTER(c_void_p))),
    "perfring_symbols_get_kernel": (c_int, (c_void_p, POINTER(SymbolKernel), POINTER(c_void_p))),
    "perfring_symbols_open": (c_int, (POINTER(c_void_p), c_void_p)),
}


def _find():
    path = os.environ.get("PERFRING_LIBRARY")
    try:
        return ctypes.CDLL(path or SONAME)
    except OSError as error:  # it, or a library that it needs, is not where the loader looks
        if path:
            raise ImportError(f"perfring: PERFRING_LIBRARY={path}: {error}") from None
        raise ImportError(f"perfring: {error}: install perfring's libraries, or set PERFRING_LIBRARY to the path of {SONAME}") from None


def _declare(loaded, functions):
    for name, (result, arguments) in functions.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments


def _load():
    loaded = _find()
    try:
        loaded.perfring_version.restype = c_char_p
        version = loaded.perfring_version().decode()
    except AttributeError:
        raise ImportError(f"perfring: {loaded._name}: not a libperfring (no perfring_version)") from None
    if version.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(f"perfring: {loaded._name} is version {version}, and this package is for "
                          f"{VERSION.rpartition('.')[0]}: install the same version of both, or set PERFRING_LIBRARY "
                          "to the path of another library")
    try:
        _declare(loaded, _FUNCTIONS)
    except AttributeError as error:
        raise ImportError(f"perfring: {loaded._name}: older than this package: {error}") from None
    try:
        _declare(loaded, _SOFT_FUNCTIONS)
        loaded.has_soft = True
    except AttributeError:
        loaded.has_soft = False
    return loaded


def load_profile():
    """libperfring-profile, from where libperfring is.  ImportError: it is not there, or of another version."""
    folder, _, _ = (os.environ.get("PERFRING_LIBRARY") or "").rpartition("/")
    path = f"{folder}/{PROFILE_SONAME}" if folder else PROFILE_SONAME
    try:
        loaded = ctypes.CDLL(path)
        _declare(loaded, _PROFILE_FUNCTIONS)
    except (OSError, AttributeError) as error:
        raise ImportError(f"perfring: {path}: {error}: names of functions need libperfring-profile of version {VERSION}") from None
    return loaded


library = _load()


def encoded(text):
    """The bytes of a path or a name, for C."""
    result = os.fsencode(text)
    if b"\0" in result:
        raise ValueError(f"a NUL is in {text!r}")
    return result


def text_of(function, *arguments):
    """The whole text of a function that is like snprintf: its last two arguments are a buffer and its size."""
    size = 512
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = function(*arguments, buffer, size)
        if length < size:
            return os.fsdecode(buffer.value)
        size = length + 1


def error_of(result, sentence, filename=None):
    """An OSError: its errno is -result, its sentence the library's, or that of errno."""
    sentence = sentence or os.strerror(-result)
    return OSError(-result, sentence, filename) if filename is not None else OSError(-result, sentence)


def sentence_of(fault):
    what = fault.what.decode() if fault.what else ""
    return f"at 0x{fault.at:x}: {what}" if what and fault.at >= 0 else what
