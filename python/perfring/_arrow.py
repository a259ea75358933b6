# _arrow.py - batches by the Arrow C data interface: structs of pointers to the batch's own memory, in capsules.
#
# A consumer may move any struct, also a child, out of where it was made: so each keeps what it points to by a key of its
# own, and its release frees that alone.  It may release them when the interpreter ends: what releases them stays.
"""Arrow without a library of Arrow's.  Nothing in here is public."""

import ctypes
import errno
import itertools
import sys
from array import array
from collections import deque
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p


class Schema(Structure):
    pass


class Array(Structure):
    pass


class Stream(Structure):
    pass


Schema._fields_ = [
    ("format", c_char_p), ("name", c_char_p), ("metadata", c_char_p), ("flags", c_int64), ("n_children", c_int64),
    ("children", POINTER(POINTER(Schema))), ("dictionary", POINTER(Schema)), ("release", CFUNCTYPE(None, POINTER(Schema))),
    ("private_data", c_void_p),
]
Array._fields_ = [
    ("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64), ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(Array))), ("dictionary", POINTER(Array)),
    ("release", CFUNCTYPE(None, POINTER(Array))), ("private_data", c_void_p),
]
Stream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(Stream), POINTER(Schema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(Stream), POINTER(Array))),
    ("get_last_error", CFUNCTYPE(c_void_p, POINTER(Stream))), ("release", CFUNCTYPE(None, POINTER(Stream))),
    ("private_data", c_void_p),
]

_CODES = {"Q": b"L", "I": b"I", "i": b"i", "H": b"S", "B": b"C"}
_keys = itertools.count(1)
_kept = {}  # key -> what is there until it is released


def _keep(struct, kept):
    key = next(_keys)
    _kept[key] = kept
    struct.private_data = key


def _release(pointer, kept=_kept):
    """Of a schema and of an array: first what it is made of, unless it was moved."""
    struct = pointer.contents
    parts = [struct.children[i] for i in range(struct.n_children)] + ([struct.dictionary] if struct.dictionary else [])
    for part in parts:
        if part.contents.release:
            part.contents.release(part)
    kept.pop(struct.private_data, None)
    struct.release = type(struct.release)()


def _stays(kept):
    """Never freed: names of this module are None before the last object of another is."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept


_release_schema = _stays(dict(Schema._fields_)["release"](_release))
_release_array = _stays(dict(Array._fields_)["release"](_release))


def _parts(struct, kind, children, dictionary, kept):
    struct.n_children = len(children)
    if children:
        pointers = (POINTER(kind) * len(children))(*map(ctypes.pointer, children))
        struct.children = ctypes.cast(pointers, POINTER(POINTER(kind)))
        kept += [pointers, children]
    if dictionary is not None:
        struct.dictionary = ctypes.pointer(dictionary)
        kept.append(dictionary)
    _keep(struct, kept)


def _schema(struct, code, name, children=(), dictionary=None):
    struct.format, struct.name, struct.flags = code, name, 2  # ARROW_FLAG_NULLABLE
    _parts(struct, Schema, list(children), dictionary, [code, name])
    struct.release = _release_schema
    return struct


def _fill_schema(struct, batch):
    children = []
    for field in batch.fields:
        code = _CODES[batch[field].format]
        if field in batch.offsets:
            item = _schema(Schema(), code, b"item")
            children.append(_schema(Schema(), b"+L" if field == "callchain" else b"Z", field.encode(),
                                    [item] if field == "callchain" else []))
        elif field in batch.texts:
            children.append(_schema(Schema(), code, field.encode(), dictionary=_schema(Schema(), b"u", b"")))
        else:
            children.append(_schema(Schema(), code, field.encode()))
    return _schema(struct, b"+s", b"", children)


def _address(values):
    """Of the first byte of a view of an array; 0 of an empty one."""
    if not len(values):
        return None
    view = _Buffer()
    _get_buffer(values, ctypes.byref(view), 0)
    try:
        return view.buf
    finally:
        _release_buffer(ctypes.byref(view))


def _array(struct, length, buffers, children=(), dictionary=None, nulls=0):
    pointers = (c_void_p * len(buffers))(*(None if values is None else _address(values) for values in buffers))
    struct.length, struct.n_buffers, struct.null_count = length, len(buffers), nulls
    struct.buffers = ctypes.cast(pointers, POINTER(c_void_p))
    _parts(struct, Array, list(children), dictionary, [pointers, list(buffers)])
    struct.release = _release_array
    return struct


def _texts(texts):
    encoded = [text.encode("utf-8", "replace") for text in texts]
    offsets = array("i", itertools.accumulate(map(len, encoded), initial=0))
    return _array(Array(), len(texts), [None, memoryview(offsets), memoryview(array("B", b"".join(encoded)))])


def _fill_array(struct, batch):
    children = []
    for field in batch.fields:
        values = batch[field]
        bitmap, nulls = batch._nulls(field)
        buffers, parts, dictionary = [bitmap, values], [], None
        if field == "callchain":
            buffers, parts = [bitmap, batch.offsets[field]], [_array(Array(), len(values), [None, values])]
        elif field in batch.offsets:
            buffers = [bitmap, batch.offsets[field], values]
        elif field in batch.texts:
            dictionary = _texts(batch.texts[field])
        children.append(_array(Array(), len(batch), buffers, parts, dictionary, nulls))
    return _array(struct, len(batch), [None], children)


# ---- streams ----


class _Reading:
    def __init__(self, first, batches):
        self.first = first  # a batch with the schema
        self.batches = iter(batches)
        self.error = b""


def _guarded(step):
    """A callback of a stream: 0, or the errno of what it raised."""

    def call(pointer, out):
        reading = _kept[pointer.contents.private_data]
        try:
            step(reading, out.contents)
            return 0
        except BaseException as error:  # a callback has no other way to report it
            reading.error = (str(error) or type(error).__name__).encode("utf-8", "backslashreplace")
            return getattr(error, "errno", None) or (errno.EIO if isinstance(error, Exception) else errno.EINTR)

    return call


def _next(reading, out):
    batch = next(reading.batches, None)
    if batch is None:
        ctypes.memset(ctypes.byref(out), 0, ctypes.sizeof(out))
    else:
        _fill_array(out, batch)


def _release_stream(pointer, kept=_kept):
    kept.pop(pointer.contents.private_data, None)
    pointer.contents.release = type(pointer.contents.release)()


def _last_error(pointer):
    reading = _kept[pointer.contents.private_data]
    reading.shown = ctypes.create_string_buffer(reading.error)
    return ctypes.addressof(reading.shown) if reading.error else None


_stream_calls = {name: _stays(dict(Stream._fields_)[name](call)) for name, call in (
    ("get_schema", _guarded(lambda reading, out: _fill_schema(out, reading.first))), ("get_next", _guarded(_next)),
    ("get_last_error", _last_error), ("release", _release_stream))}

# ---- capsules ----
#
# A capsule without a consumer has to be released.  Not by its destructor: it runs while an exception is raised too, when no Python may
# run.  Nor by a callback of the garbage collector: a KeyboardInterrupt that arrives in one is lost.  So capsules are kept here until
# another one is made.


class _Buffer(Structure):  # Py_buffer
    _fields_ = [
        ("buf", c_void_p), ("obj", c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", c_int), ("ndim", c_int), ("format", c_void_p), ("shape", c_void_p), ("strides", c_void_p),
        ("suboffsets", c_void_p), ("internal", c_void_p),
    ]


_get_buffer = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, POINTER(_Buffer), c_int)(("PyObject_GetBuffer", ctypes.pythonapi))
_release_buffer = ctypes.PYFUNCTYPE(None, POINTER(_Buffer))(("PyBuffer_Release", ctypes.pythonapi))
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_NAMES = {Schema: b"arrow_schema", Array: b"arrow_array", Stream: b"arrow_array_stream"}
_made = _stays(deque())  # pairs: a capsule, its struct


def _references(pair):
    return sys.getrefcount(pair[0])


_ALONE = _references((object(), None))  # if the pair has the only one


def _look():
    """Drops capsules that are referenced only here, and releases what no consumer has taken.

    Wherever an interrupt leaves it, a capsule in use stays in _made; other threads may look at the same time.
    """
    for _ in range(len(_made)):
        try:
            pair = _made[0]
            if _references(pair) > _ALONE:
                _made.rotate(-1)
                continue
            _made.remove(pair)
        except (IndexError, ValueError):  # another thread has removed it
            continue
        if pair[1].release:
            pair[1].release(ctypes.pointer(pair[1]))


def _capsule(struct):
    _look()
    capsule = _new_capsule(ctypes.addressof(struct), _NAMES[type(struct)], None)
    _made.append((capsule, struct))
    return capsule


def schema_of(batch):
    return _capsule(_fill_schema(Schema(), batch))


def array_of(batch):
    return schema_of(batch), _capsule(_fill_array(Array(), batch))


def stream_of(first, batches):
    stream = Stream(**_stream_calls)
    _keep(stream, _Reading(first, batches))
    return _capsule(stream)
