# _session.py - live rings: events of the kernel, software events of this process, rings in files.
"""Live rings as one stream in time order."""

import ctypes
import errno
import operator
import os
import sys
import threading
import time
from ctypes import byref
from itertools import chain

from ._file import Source
from ._library import (
    ATTR_SIZE, CALLCHAIN_BIT, COLUMNS, NUMBERS, RAW_BIT, SAMPLE_ID_ALL_BITS, Attr, Fault, Ring, Totals, encoded, error_of,
    library, sentence_of, text_of,
)
from ._rows import BATCH, Filler

_BITS = {name: bit for bit, name, _ in COLUMNS if name != "cpu_reserved"}
_BITS.update(callchain=CALLCHAIN_BIT, raw=RAW_BIT)

_NO_RING = 0xFFFFFFFF  # the fault is a sample's
_INT_MAX = (1 << 31) - 1


def _check_number(name, number, least, most):
    """C would take as many of its bits as fit."""
    if number is not None and not least <= operator.index(number) <= most:
        raise ValueError(f"{name} is {number}, and not from {least} to {most}")


def _attr(event, frequency, period, fields, flags):
    attr = Attr(size=ATTR_SIZE)
    fault = Fault()
    error = library.perfring_event_parse(encoded(event), byref(attr), byref(fault))
    if error:
        what = f"character {fault.at}: {fault.what.decode()}" if fault.what else os.strerror(-error)
        raise error_of(error, f"event {event!r}: {what}")
    attr.sample_type |= SAMPLE_ID_ALL_BITS
    for field in fields:
        if field not in _BITS:
            raise ValueError(f"there is no field {field!r} to record; there are {', '.join(_BITS)}")
        attr.sample_type |= 1 << _BITS[field]
    if period is not None:
        attr.sample_period = period
    elif not attr.sample_period or frequency is not None:
        attr.sample_period = 1000 if frequency is None else frequency
        attr.set_flag("freq")
    for flag in ("sample_id_all", "comm", "task", "mmap", "mmap2", "comm_exec") + flags:
        attr.set_flag(flag)
    attr.set_flag("use_clockid")
    attr.clockid = time.CLOCK_MONOTONIC
    return attr


class Session(Source):
    """Rings as one stream: what `profile` and `open_ring` return.

    `samples` and `items` return what is in the rings: with `timeout` (seconds) they wait for it; with None, the default,
    they take all that is there now.  Times are ns of CLOCK_MONOTONIC (time.monotonic_ns()) for events that were added here.
    Calls from several threads follow one another.  A fork's child has no rings: there each call is a ValueError."""

    def __init__(self, pages=0):
        super().__init__()
        _check_number("pages", pages, 0, _INT_MAX)
        self._home = os.getpid()
        self._events = []  # software events, closed after the session
        self._given = {}   # number of an event -> the name it was asked for by
        self.notes = []    # what is otherwise than it was asked for, a sentence each
        self.source = "rings"
        handle = ctypes.c_void_p()
        error = library.perfring_session_open(byref(handle), pages)
        if error:
            raise error_of(error, f"a session: {os.strerror(-error)}")
        self._handle = handle.value

    def __repr__(self):
        return f"this session of {self.source}"

    def close(self):
        """In a fork's child it does nothing: something else may be where the rings were, and another thread may have had the lock."""
        if self._home != os.getpid():
            self._handle = None
            return
        with self._turn():
            handle, self._handle = self._handle, None
            if handle:
                library.perfring_session_close(handle)
            while self._events:
                library.perfring_soft_close(self._events.pop())

    def _check(self):
        if self._handle and self._home != os.getpid():
            raise ValueError(f"{self} is of process {self._home}, which has forked this one")
        super()._check()

    def _formats(self):
        return library.perfring_session_formats(self._handle)

    def _release(self):
        return os.fsencode(os.uname().release)

    def _builds(self):
        return ()

    def _name_of(self, index):
        attr = library.perfring_format_set_attr(self._formats(), index)
        return self._given.get(index) or text_of(library.perfring_event_name, attr)

    def _error(self, result, fault=None):
        """fault: of a damaged sample; else the library's last."""
        sentence, ring = "", ctypes.c_uint32(_NO_RING)
        if not fault and result == -errno.EBADMSG:
            fault = library.perfring_session_fault(self._handle, byref(ring))
        if fault:
            sentence = f"{'a sample' if ring.value == _NO_RING else f'ring {ring.value}'}, {sentence_of(fault)}"
        return error_of(result, sentence)

    # ---- what is observed ----

    def add_kernel(self, event, frequency, period, fields, pid=None, tid=None):
        """Opens the event for all threads of a process, present and future, or for one thread."""
        target = ctypes.c_void_p()
        error = library.perfring_target_open(byref(target))
        if error:
            raise error_of(error, "")
        try:
            attr = _attr(event, frequency, period, fields, ("disabled", "exclude_hv") + (() if tid else ("inherit",)))
            error = library.perfring_target_add_thread(target, tid) if tid else (
                library.perfring_target_add_cpus(target, None) or library.perfring_target_add_process(target, pid))
            if error:
                raise error_of(error, f"thread {tid}: {os.strerror(-error)}" if tid else f"process {pid}: {os.strerror(-error)}")
            with self._turn():
                self._check()
                if not self._given:
                    library.perfring_session_configure(self._handle, NUMBERS["SESSION_SHRINK"] | NUMBERS["SESSION_RAISE_FILES"],
                                                       NUMBERS["FALLBACK_ALL"])
                number = library.perfring_session_add(self._handle, byref(attr), target)
                if number < 0:
                    raise error_of(number, library.perfring_session_refusal(self._handle).decode(errors="replace"))
                self._given[number] = event
                taken = library.perfring_session_given_up(self._handle, number)
                if taken:
                    self.notes.append(text_of(library.perfring_fallback_explain, taken, byref(attr),
                                              library.perfring_session_attr(self._handle, number)))
        finally:
            library.perfring_target_close(target)
        self._know_comms(pid or tid)
        self.source = "the kernel's events"

    def _know_comms(self, process):
        """Names of the threads that are there: records name later ones."""
        try:
            threads = os.listdir(f"/proc/{process}/task")
        except OSError:
            return  # the process has ended meanwhile
        for thread in threads:
            try:
                with open(f"/proc/{process}/task/{thread}/comm", "rb") as file:
                    self._comms.name(int(thread), os.fsdecode(file.read()[:-1]))
            except OSError:
                pass  # so has the thread

    def add_soft(self, event, frequency, period, fields, pages=64, file=None):
        """Raises the event in this process, in this thread and each that calls perfring.join."""
        if not library.has_soft:
            raise error_of(-errno.EOPNOTSUPP, "software events: this libperfring was built without liburcu")
        attr = _attr(event, frequency, period, fields, ("disabled",))
        handle = ctypes.c_void_p()
        error = library.perfring_soft_open(byref(handle), byref(attr), NUMBERS["SOFT_PROCESS"], None)
        if error:
            raise error_of(error, text_of(library.perfring_soft_explain, byref(attr)) or f"event {event!r}: {os.strerror(-error)}")
        error = library.perfring_soft_map(handle, pages, -1) if file is None else (
            library.perfring_soft_map_files(handle, pages, encoded(file), -1))
        if not error and file is None:
            with self._turn():
                error = -errno.EBADF if not self._handle else (
                    library.perfring_session_add_set(self._handle, library.perfring_soft_rings(handle), -1, 0))
        if error:
            library.perfring_soft_close(handle)
            raise error_of(error, f"rings of {event!r}: {os.strerror(-error)}")
        self._events.append(handle)
        error = library.perfring_soft_put_state(handle)
        if error < 0:
            self.notes.append(f"names of threads and objects are not recorded: {os.strerror(-error)}")
        self.source = "software events of this process"

    def add_ring(self, path):
        """A ring of perfring's in a file, which holds what its records are (`perfring ring` shows it)."""
        ring, fault = Ring(), Fault()
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            error = library.perfring_ring_attach(byref(ring), fd, 0, byref(fault))
        finally:
            os.close(fd)
        if error:
            raise error_of(error, sentence_of(fault) if error == -errno.EBADMSG else "", path)
        try:
            with self._turn():
                self._check()
                error = library.perfring_session_describe_ring(self._handle, byref(ring))
                if error == -errno.ENODATA:
                    raise error_of(error, "the ring does not say what its records are", path)
                if error >= 0:
                    error = library.perfring_session_add_ring(self._handle, byref(ring), -1, NUMBERS["READER_COPY"])
                if error < 0:
                    raise error_of(error, library.perfring_session_refusal(self._handle).decode(errors="replace"), path)
        finally:
            library.perfring_ring_close(byref(ring))

    def enable(self):
        with self._turn():
            self._check()
            if self._given:
                error = library.perfring_session_enable(self._handle)
                if error < 0:
                    raise error_of(error, "")
            for event in self._events:
                library.perfring_soft_enable(event, False)

    def disable(self):
        with self._turn():
            self._check()
            if self._given:
                error = library.perfring_session_disable(self._handle)
                if error < 0:
                    raise error_of(error, "")
            for event in self._events:
                library.perfring_soft_disable(event, False)

    # ---- what comes of it ----

    def _begin(self, timeout):
        with self._turn():
            self._check()
            if timeout is None:
                library.perfring_session_flush(self._handle)
                return
            error = library.perfring_session_wait(self._handle, round(min(max(0, timeout * 1000), _INT_MAX)))
            if error < 0 and error != -errno.EINTR:
                raise error_of(error, "")

    def _end(self, is_ending=sys.is_finalizing):
        if is_ending() or self._home != os.getpid():
            return
        try:
            with self._turn():
                if self._handle:
                    library.perfring_session_return(self._handle)
        except RuntimeError:  # a forgotten generator is collected in the middle of another call, which returns all
            pass

    def items(self, timeout=None):
        """All records: perfring.Item, of one round."""
        self._begin(timeout)
        try:
            yield from self._items(library.perfring_session_next)
        finally:
            self._end()

    def samples(self, fields=None, timeout=None, batch=BATCH):
        """The samples of one round as named tuples: see File.samples."""
        self._begin(timeout)
        try:
            if self.events:
                filler = Filler(self._choose(fields), batch, self._comms)
                yield from chain.from_iterable(self._tuples(filler, library.perfring_session_fill))
        finally:
            self._end()

    def columns(self, fields=None, timeout=None):
        """The samples of one round as one batch: see File.columns."""
        self._begin(timeout)
        try:
            return self._columns(fields, library.perfring_session_fill)
        finally:
            self._end()

    def fileno(self):
        """An epoll fd that is readable when a ring has something: for select and asyncio.  Not of rings in files."""
        self._check()
        return library.perfring_session_fd(self._handle)

    @property
    def is_over(self):
        """Whether all observed threads and their descendants have exited: nothing more will come.  Never of software events and rings in
        files."""
        with self._turn():
            self._check()
            return library.perfring_session_is_over(self._handle)

    @property
    def totals(self):
        """A dict: records, samples, lost, late ... of all rings so far."""
        with self._turn():
            self._check()
            totals = Totals()
            library.perfring_session_totals(self._handle, byref(totals))
            return {name: getattr(totals, name) for name, _ in Totals._fields_}


def profile(event="cpu-clock", frequency=None, period=None, fields=("ip", "cpu", "period"), pid=None, tid=None, source=None,
            pages=0):
    """A session that observes this process, another, or one thread, from now on:

        with perfring.profile(frequency=1000) as session:
            work()
            session.disable()
            for sample in session.samples(): ...

    event: in perf's syntax.  fields: what is recorded beside identifier, pid, tid and time.  source: "kernel" for
    perf_event_open, "soft" for events that this process raises itself, without any privilege (cpu-clock, task-clock; at most one
    sample for each tick of the kernel; threads that call perfring.join); None: the kernel's, and soft ones where it refuses them and
    this process is observed: session.notes says why.  An OSError has the library's sentence: what forbids it, and what would allow it."""
    if source not in (None, "kernel", "soft"):
        raise ValueError(f"there is no source {source!r}; there are 'kernel' and 'soft'")
    is_self = pid in (None, os.getpid()) and tid is None
    if source == "soft" and not is_self:
        raise ValueError("software events are of this process alone")
    if None not in (frequency, period):
        raise ValueError("a frequency and a period exclude each other")
    for name, number, most in (("frequency", frequency, _INT_MAX), ("period", period, (1 << 63) - 1), ("pid", pid, _INT_MAX), ("tid", tid, _INT_MAX)):
        _check_number(name, number, 1, most)
    session = Session(pages)
    try:
        try:
            if source != "soft":
                session.add_kernel(event, frequency, period, fields, pid or os.getpid(), tid)
        except OSError as error:
            if source or not is_self or error.errno not in (errno.EACCES, errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOENT):
                raise
            session.notes.append(error.strerror)
            session.add_soft(event, frequency, period, fields, pages or 64)
        if source == "soft":
            session.add_soft(event, frequency, period, fields, pages or 64)
        session.enable()
    except BaseException:
        session.close()
        raise
    return session


def open_ring(path):
    """A session of one ring of perfring's in a file."""
    session = Session()
    try:
        session.add_ring(path)
    except BaseException:
        session.close()
        raise
    return session


def join():
    """Makes the calling thread one of those that raise software events: threads other than that which opened them."""
    if library.has_soft:
        error = library.perfring_soft_join()
        if error:
            raise error_of(error, "")


class Thread(threading.Thread):
    """A thread that has joined."""

    def run(self):
        join()
        super().run()
