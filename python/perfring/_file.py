# _file.py - perf.data files, pipes and directories.
"""perf.data files."""

import ctypes
import errno
import os
import struct
import sys
import threading
from collections import namedtuple
from itertools import chain

from ._items import Reader
from ._library import NUMBERS, Item, encoded, error_of, library, sentence_of
from ._rows import BATCH, Comms, Filler, call_on, choose

#: An event of a file: its number, name, and what its samples have (bits of attr.sample_type).
Event = namedtuple("Event", "index name sample_type")

_STRINGS = {name: NUMBERS["FEATURE_" + name.upper()]
            for name in ("hostname", "osrelease", "version", "arch", "cpudesc", "cpuid")}


class Handle:
    """What holds an object of the library: closed by `with`, used by one thread at a time."""

    def __init__(self):
        self._handle = None
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self, is_ending=sys.is_finalizing):
        if getattr(self, "_handle", None):
            try:
                self.close()
            except (AttributeError, TypeError):  # at the interpreter's end names of modules may be None already
                if not is_ending():
                    raise

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} cannot be pickled or copied: it is open in this process")

    def _turn(self):
        """The lock: calls of several threads follow one another.  A call inside a call of the same thread, a signal handler's or a
        finalizer's, is a RuntimeError; so is one in a fork's child if another thread was in a call at the fork."""
        if self._lock._is_owned():
            raise RuntimeError(f"{self} is in a call of this thread: a signal handler or a finalizer cannot call it now")
        if self._process != os.getpid():
            if not self._lock.acquire(blocking=False):
                raise RuntimeError(f"{self} was in a call of another thread when this process was forked")
            self._lock.release()
            self._process = os.getpid()
        return self._lock

    def _check(self):
        if not self._handle:
            raise ValueError(f"{self} is closed")


class Source(Handle):
    """What a file and a session have in common: records, as items or as rows."""

    def __init__(self):
        super().__init__()
        self._comms = Comms()
        self._names = []  # of events, by their numbers
        self._reader = Reader(self._comms)

    def _know_events(self):
        """Their names as they are now: an EVENT_UPDATE record may change them."""
        count = library.perfring_format_set_count(self._formats())
        self._names[:] = map(self._name_of, range(count))

    @property
    def events(self):
        """Its events, by their numbers.  Of a stream (perf's pipe mode) those known so far."""
        with self._turn():
            self._check()
            self._know_events()
            formats = self._formats()
            return [Event(index, name, library.perfring_format_set_at(formats, index).contents.sample_type)
                    for index, name in enumerate(self._names)]

    def _choose(self, fields):
        return choose(fields, [event.sample_type for event in self.events], self)

    def _fill(self, filler, call, whole=False):
        """Returns an error, or None, and whether there may be more."""
        with self._turn():
            self._check()
            filler.item.record = None
            result = filler.fill(call_on(call, self._handle), self._reader.take, whole)
            self._know_events()
            return (self._error(result) if result < 0 else None), result == 1

    def _columns(self, fields, call):
        filler = Filler(self._choose(fields), BATCH, self._comms, for_batch=True)
        error, _ = self._fill(filler, call, whole=True)
        batch = filler.batch(self._names)
        if error:
            error.batch = batch
            raise error
        return batch

    def _items(self, call):
        """All records that `call` returns: perfring.Item."""
        item = Item()
        while True:
            with self._turn():
                self._check()
                item.record = None
                result = call(self._handle, ctypes.byref(item))
                if result == 0:
                    return
                if result < 0:
                    raise self._error(result)
                made, error, fault = self._reader.item(item, self)
                if error:
                    raise self._error(error, fault)
            yield made

    def _tuples(self, filler, call):
        """Iterators of named tuples, one for each batch."""
        is_more = True
        while is_more:
            error, is_more = self._fill(filler, call)
            yield filler.tuples(self._names)
            if error:
                raise error


class Batches:
    """Batches of samples in time order, one after the other: an iterable, and a stream of Arrow's C interface
    (`pyarrow.table(file.batches())`)."""

    def __init__(self, file, fields, rows):
        self._file = file
        self._fields = fields
        self._rows = rows

    def __iter__(self):
        is_more = True
        while is_more:
            filler = Filler(self._fields, self._rows, self._file._comms, for_batch=True)
            error, is_more = self._file._fill(filler, library.perfring_file_fill)
            if filler.rows.count:
                yield filler.batch(self._file._names)
            if error:
                raise error

    def __arrow_c_stream__(self, requested_schema=None):
        from . import _arrow
        return _arrow.stream_of(Filler(self._fields, 1, self._file._comms, for_batch=True).batch(self._file._names), self)


class File(Source):
    """A perf.data file of either byte order, plain or compressed; a stream of perf's pipe mode, "-" for standard input; or a
    directory.

    Its records are read once, in time order, by iterating over it, by `samples`, `batches` or `columns`.  Calls from several
    threads follow one another.  Damage is an OSError with errno EBADMSG, after all that came before it."""

    def __init__(self, path="perf.data"):
        super().__init__()
        self.path = os.fspath(path)
        handle = ctypes.c_void_p()
        error = library.perfring_file_open(ctypes.byref(handle), encoded(self.path))
        self._handle = handle.value
        if error:
            raised = self._error(error)
            self.close()
            raise raised

    def __repr__(self):
        return os.fsdecode(self.path)

    def close(self):
        with self._turn():
            handle, self._handle = self._handle, None
            if handle:
                library.perfring_file_close(handle)

    def _formats(self):
        return library.perfring_file_formats(self._handle)

    def _release(self):
        return library.perfring_file_string(self._handle, NUMBERS["FEATURE_OSRELEASE"])

    def _builds(self):
        """(name, build id) of the objects that the writer looked at: the feature BUILD_ID (docs/abi.md 11.3)."""
        size = ctypes.c_uint64()
        at = library.perfring_file_feature(self._handle, NUMBERS["FEATURE_BUILD_ID"], ctypes.byref(size))
        payload = ctypes.string_at(at, size.value) if at else b""
        while len(payload) >= 36:
            _, misc, length = struct.unpack_from("=IHH", payload)
            if length < 36:
                return
            most = NUMBERS["BUILD_ID_SIZE"]
            yield payload[36:length].partition(b"\0")[0], payload[12:12 + (min(payload[32], most) if misc & 0x8000 else most)]
            payload = payload[length:]

    def _name_of(self, index):
        name = library.perfring_file_event_name(self._handle, index)
        return os.fsdecode(name) if name else ""

    def _error(self, result, fault=None):
        """fault: of the last item, a damaged sample; else the library's last."""
        sentence = ""
        if fault:
            fault.at += library.perfring_file_position(self._handle)
        elif self._handle and -result in (errno.EBADMSG, errno.EOPNOTSUPP):
            fault = library.perfring_file_fault(self._handle)
        if fault:
            sentence = sentence_of(fault)
            part = library.perfring_file_part(self._handle)
            if sentence and part:
                sentence = f"data.{part - 1}: {sentence}"
        return error_of(result, sentence, self.path)

    def __iter__(self):
        """All records: perfring.Item.  Several microseconds each: `samples` is the fast way to samples."""
        return self._items(library.perfring_file_next)

    def samples(self, fields=None, batch=BATCH):
        """The samples as named tuples, some tenths of a microsecond each.  fields: names of perfring.FIELDS, by default the usual
        ones that an event of the file has.  A callchain is a tuple of addresses and markers (perfring.addresses); what a sample's
        event does not have is 0 or empty."""
        return chain.from_iterable(
            self._tuples(Filler(self._choose(fields), batch, self._comms), library.perfring_file_fill))

    def batches(self, fields=None, rows=1 << 16):
        """The samples as batches of at most `rows` rows."""
        return Batches(self, self._choose(fields), rows)

    def columns(self, fields=None):
        """All samples that are left, as one batch: memory for all of them.  Those before damage are `batch` of the OSError."""
        return self._columns(fields, library.perfring_file_fill)

    def _ask(self, function, *arguments):
        with self._turn():
            self._check()
            return function(self._handle, *arguments)

    @property
    def is_finished(self):
        """False: its writer was killed, and records may be missing."""
        return self._ask(library.perfring_file_is_finished)

    @property
    def is_pipe(self):
        return self._ask(library.perfring_file_is_pipe)

    @property
    def is_foreign(self):
        """Whether it was written in the other byte order."""
        return self._ask(library.perfring_file_is_foreign)

    @property
    def late(self):
        """The number of records so far that came after one with a later time."""
        return self._ask(library.perfring_file_late)

    @property
    def lost(self):
        """The number of records, samples or others, that were lost when it was recorded: as the LOST records so far say."""
        return self._reader.lost

    @property
    def lost_samples(self):
        """The number of samples that were lost, or left out by a filter: as the LOST_SAMPLES records so far say, which may count those
        of `lost` again, for each event."""
        return self._reader.lost_samples

    def describe(self, name):
        """What the file says of the machine, or None.  name: hostname, osrelease, version (of perf), arch, cpudesc, cpuid."""
        if name not in _STRINGS:
            raise ValueError(f"there is no {name!r}; there are {', '.join(_STRINGS)}")
        text = self._ask(library.perfring_file_string, _STRINGS[name])
        return None if text is None else os.fsdecode(text)


def columns(path="perf.data", fields=None):
    """All samples of a file as one batch: `columns("perf.data", ["time", "ip"])["ip"]` is a memoryview."""
    with File(path) as file:
        return file.columns(fields)
