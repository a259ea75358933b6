# _rows.py - arrays that the library fills with samples, and what becomes of them: named tuples, columns.
"""Rows of samples.  Nothing in here is public but what __init__.py names."""

import ctypes
from array import array
from collections import namedtuple
from functools import partial
from itertools import repeat

from ._library import CALLCHAIN_BIT, COLUMNS, NUMBERS, RAW_BIT, Item, Rows, library

CHAIN_MIN = NUMBERS["ROWS_CHAIN_MIN"]
RAW_MIN = NUMBERS["ROWS_RAW_MIN"]
BATCH = 16384  # rows of a batch, unless the caller wants others

# name -> (bit of sample_type, code of array); the bit is None for what every sample has.
_NUMBERS = {name: (bit, "Q" if size == 8 else "i" if name in ("pid", "tid", "cpu") else "I")
            for bit, name, size in COLUMNS if name != "cpu_reserved"}
_NUMBERS["present"] = (None, "Q")
_NUMBERS["misc"] = (None, "H")
_LISTS = {"callchain": (CALLCHAIN_BIT, "Q", "chain"), "raw": (RAW_BIT, "B", "raw")}
_TEXTS = ("event", "comm")

#: Every field that `samples`, `batches` and `columns` know, the usual ones first.
FIELDS = ("event", "comm", "pid", "tid", "cpu", "time", "ip", "addr", "period", "callchain") + tuple(
    name for name in (*_NUMBERS, "raw") if name not in ("pid", "tid", "cpu", "time", "ip", "addr", "period"))

_USUAL = FIELDS[:10]


def bit_of(field):
    """Its bit of sample_type; None: every sample has it."""
    if field == "comm":
        return _NUMBERS["tid"][0]
    if field == "event":
        return None
    return (_NUMBERS.get(field) or _LISTS[field])[0]


def choose(fields, sample_types, where):
    """The fields that were asked for, or by default the usual ones that an event has.  ValueError: one that there is not."""
    present = 0
    for sample_type in sample_types:
        present |= sample_type

    def has(field):
        bit = bit_of(field)
        return bit is None or bool(present >> bit & 1)

    if fields is None:
        return tuple(field for field in _USUAL if has(field))
    fields = tuple(fields)
    if len(set(fields)) < len(fields):
        raise ValueError(f"a field stands twice in {fields}")
    for field in fields:
        if field not in FIELDS:
            raise ValueError(f"there is no field {field!r}; there are {', '.join(FIELDS)}")
        if not has(field):
            raise ValueError(f"no event of {where} has the field {field!r}")
    return fields


class Comms:
    """Names of threads, by COMM and FORK records in time order."""

    MAX = 1 << 20  # threads; beyond it, all are forgotten

    def __init__(self):
        self.clear()
        self.version = 0  # changes with the names

    def clear(self):
        self.names = {}
        self.old = set()  # threads that were there when the recording began

    def _make_space(self, tid):
        self.version += 1
        if len(self.names) + len(self.old) >= self.MAX and tid not in self.names:
            self.clear()

    def name(self, tid, name):
        """COMM."""
        self._make_space(tid)
        self.names[tid] = name

    def fork(self, tid, parent, is_old):
        """FORK.  is_old: it describes a thread that was there, which a COMM names, before or after it: as maps.h says."""
        self._make_space(tid)
        was_old = tid in self.old
        name = self.names.get(parent, "swapper" if parent == 0 else None)
        if is_old:
            self.old.add(tid)
        else:
            self.old.discard(tid)
        if (is_old and tid not in self.names) or not (is_old or was_old):
            if name is None:
                self.names.pop(tid, None)
            else:
                self.names[tid] = name

    def of(self, tid):
        """As perf says it: ":TID" where no record has named the thread."""
        name = self.names.get(tid)
        if name is None:
            return f":{tid}" if tid else "swapper"
        return name


class Batch:
    """Samples as columns: `batch["time"]` is a memoryview of numbers, one for each sample.

    `callchain` and `raw` are lists: `batch["callchain"]` has all their words one after the other, and
    `batch.offsets["callchain"]` where each begins, and the end of the last: sample i has the words from offsets[i] to
    offsets[i + 1].  `event` and `comm` are numbers of texts in `batch.texts`.  A number whose field a sample's event does
    not have is 0 (`present` has the bits of sample_type); of Arrow it is null.  The memory is the batch's own, for as long as a view of it is
    used.

    A batch is a struct array of Arrow (the C data interface): `pyarrow.record_batch(batch)`, `polars.DataFrame(batch)`.
    """

    def __init__(self, fields, count, views, offsets, texts, present):
        self._present = present  # the bits of each sample's event
        self.fields = fields
        self.offsets = offsets
        self.texts = texts
        self._count = count
        self._views = views

    def __reduce__(self):
        raise TypeError("a Batch cannot be pickled or copied: its columns are views of memory; list(batch.tuples()) can")

    def __len__(self):
        return self._count

    def __iter__(self):
        return iter(self.fields)

    def __contains__(self, field):
        return field in self._views

    def __getitem__(self, field):
        return self._views[field]

    def keys(self):
        return self.fields

    def _nulls(self, field):
        """Arrow's bitmap of the samples that have the field, and the number of those that have not; None: all have it."""
        bit = bit_of(field)
        if bit is None:
            return None, 0
        has = {sample_type: sample_type >> bit & 1 for sample_type in set(self._present)}
        if all(has.values()):
            return None, 0
        digits = bytes(map(has.__getitem__, self._present)).translate(b"01" + bytes(254))
        # The first sample is the lowest bit.
        bitmap = int(digits[::-1], 2).to_bytes((self._count + 7) // 8, "little")
        return memoryview(bitmap), digits.count(b"0")

    def tuples(self):
        """The samples as named tuples."""
        return rows_of(self.fields, self._count, self._views, self.offsets, self.texts)

    def __arrow_c_schema__(self):
        from . import _arrow
        return _arrow.schema_of(self)

    def __arrow_c_array__(self, requested_schema=None):
        from . import _arrow
        return _arrow.array_of(self)

    def __arrow_c_stream__(self, requested_schema=None):
        from . import _arrow
        return _arrow.stream_of(self, (self,))


_types = {}


def _type_of(fields):
    kind = _types.get(fields)
    if kind is None:
        kind = _types[fields] = namedtuple("Sample", fields)
        kind.__reduce__ = lambda sample: (_sample_of, (fields, tuple(sample)))  # pickle finds no type that has no name of its own
    return kind


def _sample_of(fields, values):
    return tuple.__new__(_type_of(fields), values)


def rows_of(fields, count, views, offsets, texts):
    """An iterator of named tuples that costs no step of the interpreter for a row."""
    kind = _type_of(fields)
    columns = []
    if not count:
        return iter(())
    for field in fields:
        values = views[field]
        if field in texts:
            columns.append(map(texts[field].__getitem__, values) if len(texts[field]) > 1 else repeat(*texts[field], count))
        elif field in offsets:
            whole = bytes(values) if field == "raw" else tuple(values)
            at = offsets[field].tolist()
            columns.append(map(whole.__getitem__, map(slice, at, at[1:])))
        else:
            columns.append(values)
    return map(partial(tuple.__new__, kind), zip(*columns)) if columns else iter([kind()] * count)


class _Numbers(dict):
    """thread -> the number of its name, as long as no name changes."""

    def __init__(self, comms, texts, number_of):
        super().__init__()
        self.comms, self.texts, self.number_of = comms, texts, number_of
        self.version = comms.version

    def __missing__(self, tid):
        text = self.comms.of(tid)
        number = self.number_of.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        self[tid] = number
        return number


class Filler:
    """Memory for `capacity` rows of these fields; it grows on demand."""

    def __init__(self, fields, capacity, comms, for_batch=False):
        if capacity < 1:
            raise ValueError("a batch has at least one row")
        self.fields = fields
        self.comms = comms
        self.rows = Rows(stops=1 << NUMBERS["RECORD_LOST"] | 1 << NUMBERS["RECORD_LOST_SAMPLES"])
        self.item = Item()
        self.arrays = {}
        self.comm_numbers = {}  # name -> its place in comm_texts
        self.comm_texts = []
        self.numbers = _Numbers(comms, self.comm_texts, self.comm_numbers)
        self.named = 0  # rows whose comm is known
        for field in fields:
            if field in _NUMBERS:
                self.arrays[field] = array(_NUMBERS[field][1])
            elif field in _LISTS:
                self.arrays[field] = array(_LISTS[field][1])
                self.arrays[field + "_at"] = array("Q")
        if "event" in fields:
            self.arrays["event"] = array("I")
        if "comm" in fields:
            self.arrays.setdefault("tid", array("i"))
            self.arrays["comm"] = array("I")
            self.rows.stops |= 1 << NUMBERS["RECORD_COMM"] | 1 << NUMBERS["RECORD_FORK"]
        if for_batch:
            self.arrays.setdefault("present", array("Q"))
        self._resize(capacity)

    def _reserve(self, name, length):
        values = self.arrays[name]
        if len(values) < length:
            values.frombytes(bytes((length - len(values)) * values.itemsize))
        return values.buffer_info()[0]

    def _resize(self, capacity):
        """All arrays to `capacity` rows, and lists to the space that one more row needs at least."""
        rows = self.rows
        rows.capacity = capacity
        for name in self.arrays:
            if name in _LISTS or name.endswith("_at") or name == "comm":
                continue
            at = self._reserve(name, capacity)
            if name in ("event", "misc", "present"):
                setattr(rows, name, at)
            else:
                setattr(rows.columns, name, at)
        for name, (_, _, member) in _LISTS.items():
            if name in self.arrays:
                setattr(rows, member + "_at", self._reserve(name + "_at", capacity + 1))
                least = CHAIN_MIN if name == "callchain" else RAW_MIN
                self._resize_list(name, member, 2 * least if capacity == 1 else max(2 * least, 16 * capacity))

    def _resize_list(self, name, member, least):
        length = max(len(self.arrays[name]), least)
        setattr(self.rows, member, self._reserve(name, length))
        setattr(self.rows, member + "_capacity", length)

    def _grow(self):
        """What is full gets twice the space."""
        rows = self.rows
        if rows.count >= rows.capacity:
            self._resize(2 * rows.capacity)
        for name, (_, _, member) in _LISTS.items():
            if name in self.arrays:
                least = CHAIN_MIN if name == "callchain" else RAW_MIN
                if len(self.arrays[name]) - self.arrays[name + "_at"][rows.count] < least:
                    self._resize_list(name, member, 2 * len(self.arrays[name]))

    def _name_comms(self):
        """The comm of the rows since the last call: names have not changed among them."""
        if self.numbers.version != self.comms.version or len(self.numbers) > self.comms.MAX:
            self.numbers = _Numbers(self.comms, self.comm_texts, self.comm_numbers)
        tids = self.arrays["tid"][self.named:self.rows.count]
        self.arrays["comm"].extend(map(self.numbers.__getitem__, tids))
        self.named = self.rows.count

    def fill(self, call, take, whole):
        """Calls `call(rows, item)` until the rows are full, or, if `whole`, until the end.  take: for COMM and FORK items, and those of losses.

        Returns what the last call returned: 1 (full), 0 (the end), -errno."""
        while True:
            result = call(self.rows, self.item)
            if "comm" in self.arrays and self.named < self.rows.count:
                self._name_comms()
            if result != 1:
                return result
            if self.item.record:
                take(self.item)
                if not library.perfring_rows_is_full(self.rows):
                    continue
            if not whole:
                return 1
            self._grow()

    def batch(self, event_names):
        """What was filled, as a batch.  Its memory is the filler's: it is not to be filled again."""
        count = self.rows.count
        views, offsets, texts = {}, {}, {}
        for field in self.fields:
            values = memoryview(self.arrays[field])
            if field in _LISTS:
                at = memoryview(self.arrays[field + "_at"])
                end = at[count] if count else 0
                offsets[field] = at[:count + 1].toreadonly()
                values = values[:end]
            views[field] = values[:count].toreadonly() if field not in _LISTS else values.toreadonly()
        if "event" in self.fields:
            texts["event"] = list(event_names)
        if "comm" in self.fields:
            texts["comm"] = self.comm_texts
        return Batch(self.fields, count, views, offsets, texts, memoryview(self.arrays["present"])[:count])

    def tuples(self, event_names):
        """What was filled, as named tuples: copies; then begins anew."""
        count = self.rows.count
        views, offsets, texts = {}, {}, {}
        for field in self.fields:
            if field in _LISTS:
                at = self.arrays[field + "_at"][:count + 1] if count else array("Q", (0,))
                offsets[field] = at
                views[field] = self.arrays[field][:at[count]]
            else:
                views[field] = self.arrays[field][:count]
        if "event" in self.fields:
            texts["event"] = event_names
        if "comm" in self.fields:
            texts["comm"] = self.comm_texts
            self.arrays["comm"] = array("I")
        self.rows.count = 0
        self.named = 0
        return rows_of(self.fields, count, views, offsets, texts)


def call_on(function, handle):
    """function(handle, rows, item), of rows and an item that are passed by reference."""
    by = ctypes.byref
    return lambda rows, item: function(handle, by(rows), by(item))
