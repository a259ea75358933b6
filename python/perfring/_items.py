# _items.py - one record of any kind, copied: what iterating over a file or a session returns.
"""Records as objects.  Nothing in here is public but Item."""

import ctypes

from . import _library
from ._library import NUMBERS, Fault, Record, library, text_of
from ._rows import FIELDS, Filler, bit_of

_NAMES = {}


def name_of(kind):
    name = _NAMES.get(kind)
    if name is None:
        text = library.perfring_record_name(kind)
        name = _NAMES[kind] = text.decode() if text else str(kind)
    return name


class Item:
    """A record.  Everything in it is a copy.

    kind       "SAMPLE", "COMM", "MMAP2" ...; the number of a kind that has no name, as a text
    type misc  of its header
    time       ns of the event's clock; 0: none
    event      the name of its event; None: it belongs to none
    record     its bytes, with the header, in native byte order

    A sample has the fields of its event (perfring.FIELDS); another record pid, tid and cpu where its trailer or it itself
    has them, and COMM has comm; FORK and EXIT ppid and ptid; MMAP and MMAP2 addr, len, pgoff and filename.  What a record
    does not have is None.  Items can be pickled; what comes of that has no text().
    """

    _OTHERS = ("ppid", "ptid", "len", "pgoff", "filename")

    def __init__(self, item, source):
        header = item.record.contents
        self.type = header.type
        self.misc = header.misc
        self.kind = name_of(header.type)
        self.time = item.time
        self.record = ctypes.string_at(item.record, header.size)
        self.event = source._name_of(item.format.contents.index) if item.format else None
        self._source = source
        self._format = item.format

    def __getattr__(self, name):
        if name in FIELDS or name in self._OTHERS:
            return None
        raise AttributeError(f"an item has no {name!r}")

    def __repr__(self):
        return f"<perfring.Item {self.kind} time={self.time} tid={self.tid}>"

    def __getstate__(self):
        return {**self.__dict__, "_source": None, "_format": None}

    def text(self):
        """One line that says all of it, as `perfring dump`: while its file or session is open."""
        if not self._source:
            raise ValueError("a copy of an item has no text: its file or session has")
        with self._source._turn():
            self._source._check()
            return text_of(library.perfring_record_text, self._format, self.record)


class Reader:
    """Makes items, follows the names of threads, and counts what was lost."""

    def __init__(self, comms):
        self.comms = comms
        self.decoded = Record()
        self.fillers = {}  # sample_type -> a filler of one row
        self.lost = self.lost_samples = 0

    def take(self, item):
        """Learns what a COMM or FORK record says, or one of a loss."""
        decoded = self._decode(item)
        if decoded:
            self._learn(decoded)

    def _decode(self, item):
        error = library.perfring_record_decode(item.format, item.record, ctypes.byref(self.decoded), None)
        return None if error else self.decoded

    def _learn(self, decoded):
        if decoded.type == NUMBERS["RECORD_COMM"]:
            self.comms.name(_signed(decoded.is_.comm.tid), decoded.is_.comm.comm.text())
        elif decoded.type == NUMBERS["RECORD_FORK"]:
            fork = decoded.is_.fork
            is_old = bool(decoded.misc & NUMBERS["RECORD_MISC_FORK_EXEC"]) or not fork.time
            self.comms.fork(_signed(fork.tid), _signed(fork.ptid), is_old)
        elif decoded.type == NUMBERS["RECORD_LOST"]:
            self.lost += decoded.is_.lost.lost
        elif decoded.type == NUMBERS["RECORD_LOST_SAMPLES"]:
            self.lost_samples += decoded.is_.lost_samples.lost

    def item(self, item, source):
        """An Item of the library's item, which is of a file or a session.  Returns it, and an error with its place in the record: a
        sample may be damaged."""
        made = Item(item, source)
        fault = Fault()
        if made.type == NUMBERS["RECORD_SAMPLE"]:
            return made, self._sample(made, item, fault) if item.format else 0, fault
        decoded = self._decode(item)
        if decoded:
            self._learn(decoded)
            self._members(made, decoded)
        return made, 0, fault

    def _sample(self, made, item, fault):
        sample_type = item.format.contents.sample_type
        filler = self.fillers.get(sample_type)
        if filler is None:
            if len(self.fillers) >= 16:  # a file may have any number of different events
                self.fillers.clear()
            fields = tuple(field for field in FIELDS if field not in ("event", "comm") and _has(field, sample_type))
            filler = self.fillers[sample_type] = Filler(fields, 1, self.comms)
        filler.rows.count = 0  # an exception may have left one
        error = library.perfring_rows_put(ctypes.byref(filler.rows), ctypes.byref(item), ctypes.byref(fault))
        if error < 0:
            return error
        for row in filler.tuples(()):
            for field, value in zip(filler.fields, row):
                if field not in ("misc", "time"):
                    made.__dict__[field] = value
        if made.tid is not None:
            made.comm = self.comms.of(made.tid)
        return 0

    def _members(self, made, decoded):
        trailer = decoded.trailer
        if trailer.present & 2:
            made.pid, made.tid = _signed(trailer.pid), _signed(trailer.tid)
        if trailer.present & 128:
            made.cpu = _signed(trailer.cpu)
        members = {
            NUMBERS["RECORD_COMM"]: decoded.is_.comm, NUMBERS["RECORD_FORK"]: decoded.is_.fork,
            NUMBERS["RECORD_EXIT"]: decoded.is_.exit, NUMBERS["RECORD_MMAP"]: decoded.is_.mmap,
            NUMBERS["RECORD_MMAP2"]: decoded.is_.mmap2,
        }.get(decoded.type)
        if members is None:
            return
        for name, _ in members._fields_:
            value = getattr(members, name)
            if isinstance(value, _library.String):
                made.__dict__[name] = value.text()
            elif name in ("pid", "tid", "ppid", "ptid"):
                made.__dict__[name] = _signed(value)
            elif name in ("addr", "len", "pgoff"):
                made.__dict__[name] = value


def _has(field, sample_type):
    bit = bit_of(field)
    return bit is None or bool(sample_type >> bit & 1)


def _signed(value):
    return value - (1 << 32) if value >= 1 << 31 else value
