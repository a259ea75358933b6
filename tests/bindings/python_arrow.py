# python_arrow.py - a consumer of the Arrow C data interface, laid out by hand from its specification: what it takes of a batch
# must be what the batch's views and tuples hold, and everything must be freed by the releases that the specification asks for.
#
#     python_arrow.py FILE
import ctypes
import gc
import struct
import sys

import perfring
from perfring import _arrow

get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

# By the specification: 9 words and 10 words.  format name metadata flags n_children children dictionary release private;
# length null_count offset n_buffers n_children buffers children dictionary release private.
SCHEMA, ARRAY, STREAM = 9 * 8, 10 * 8, 5 * 8


def words(at, count):
    return struct.unpack(f"={count}Q", ctypes.string_at(at, 8 * count)) if count else ()


def text(at):
    return ctypes.string_at(at).decode()


def moved(at, size, release_at):
    """As the specification says: the bytes are copied, and the release of the source is made NULL."""
    copy = ctypes.create_string_buffer(ctypes.string_at(at, size), size)
    ctypes.memset(at + release_at, 0, 8)
    return copy, ctypes.addressof(copy)


def schema_of(at):
    """(format, name, children, dictionary)"""
    form, name, metadata, flags, nr, children, dictionary, release, _ = words(at, 9)
    assert release and not metadata and flags == 2
    return (text(form), text(name) if name else "", [schema_of(child) for child in words(children, nr)],
            schema_of(dictionary) if dictionary else None)


def numbers(form, at, count):
    code = {"L": "Q", "I": "I", "i": "i", "S": "H", "C": "B"}[form]
    return struct.unpack(f"={count}{code}", ctypes.string_at(at, count * struct.calcsize("=" + code))) if count else ()


def values_of(schema, at):
    """A list of what the array holds."""
    length, nulls, offset, nr_buffers, nr, buffers, children, dictionary, release, _ = words(at, 10)
    buffers = words(buffers, nr_buffers)
    assert release and offset == 0 and bool(buffers[0]) == (nulls > 0)
    found = valid_of(schema, length, buffers, nr, children, dictionary)
    if nulls:
        bits = ctypes.string_at(buffers[0], (length + 7) // 8)
        found = [value if bits[i // 8] >> i % 8 & 1 else None for i, value in enumerate(found)]
        assert found.count(None) == nulls
    return found


def valid_of(schema, length, buffers, nr, children, dictionary):
    form, _, parts, names = schema
    if form == "+s":
        assert nr == len(parts)
        return [values_of(part, child) for part, child in zip(parts, words(children, nr))]
    if form == "+L":
        ends = numbers("L", buffers[1], length + 1)
        inner = values_of(parts[0], words(children, 1)[0])
        assert len(inner) == ends[-1]
        return [tuple(inner[a:b]) for a, b in zip(ends, ends[1:])]
    if form == "Z":
        ends = numbers("L", buffers[1], length + 1)
        return [ctypes.string_at(buffers[2] + a, b - a) if b > a else b"" for a, b in zip(ends, ends[1:])]
    if form == "u":
        ends = numbers("i", buffers[1], length + 1)
        return [ctypes.string_at(buffers[2] + a, b - a).decode() if b > a else "" for a, b in zip(ends, ends[1:])]
    found = list(numbers(form, buffers[1], length))
    if names:
        texts = values_of(names, dictionary)
        return [texts[number] for number in found]
    return found


def release(at, release_at):
    Release(words(at + release_at, 1)[0])(at)
    assert words(at + release_at, 1) == (0,)


def kept():
    gc.collect()
    _arrow._look()
    return len(_arrow._kept)


def samples_of(path, fields):
    """The samples of the items, one by one: None for what a sample's event does not have."""
    with perfring.open(path) as file:
        fields = fields or file.columns().fields
    with perfring.open(path) as file:
        return [tuple(getattr(item, field) for field in fields) for item in file if item.kind == "SAMPLE"]


def check_array(path):
    file = perfring.open(path)
    batch = file.columns()
    expected = [list(column) for column in zip(*samples_of(path, batch.fields))]
    schema_capsule, array_capsule = batch.__arrow_c_array__()
    schema = schema_of(get_pointer(schema_capsule, b"arrow_schema"))
    assert schema[0] == "+s" and [part[1] for part in schema[2]] == list(batch.fields), schema
    alone = batch.__arrow_c_schema__()
    assert schema == schema_of(get_pointer(alone, b"arrow_schema"))
    del alone
    # The whole is moved, then one of its children: that stays when the whole is released, and the batch is gone.
    whole, at = moved(get_pointer(array_capsule, b"arrow_array"), ARRAY, 64)
    assert values_of(schema, at) == expected
    children = words(words(at, 10)[6], len(batch.fields))
    i = batch.fields.index("callchain" if "callchain" in batch.fields else "ip")
    child, child_at = moved(children[i], ARRAY, 64)
    release(at, 64)
    count = len(batch)
    del batch, file, schema_capsule, array_capsule, whole
    gc.collect()
    assert values_of(schema[2][i], child_at) == expected[i]
    release(child_at, 64)
    return count, len(expected)


def check_stream(path):
    expected = samples_of(path, None)
    capsule = perfring.open(path).batches(rows=1000).__arrow_c_stream__()
    at = get_pointer(capsule, b"arrow_array_stream")
    get_schema, get_next, get_last_error, _, _ = words(at, 5)
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    schema = ctypes.create_string_buffer(SCHEMA)
    assert call(get_schema)(at, ctypes.addressof(schema)) == 0
    layout = schema_of(ctypes.addressof(schema))
    found, batches = [], 0
    while True:
        array = ctypes.create_string_buffer(ARRAY)
        assert call(get_next)(at, ctypes.addressof(array)) == 0
        if not words(ctypes.addressof(array), 10)[8]:
            break
        found += zip(*values_of(layout, ctypes.addressof(array)))
        release(ctypes.addressof(array), 64)
        batches += 1
    assert found == expected
    assert batches == -(-len(expected) // 1000), batches
    assert not ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(get_last_error)(at)
    release(ctypes.addressof(schema), 56)
    release(at, 24)
    return batches


def check_damaged(path):
    """A stream that ends in damage: the batches before it, then its errno and its sentence."""
    with open(path, "rb") as file:
        whole = file.read()
    with open("cut.data", "wb") as file:
        file.write(whole[:len(whole) // 2])
    capsule = perfring.open("cut.data").batches(["time"], rows=100).__arrow_c_stream__()
    at = get_pointer(capsule, b"arrow_array_stream")
    _, get_next, get_last_error, _, _ = words(at, 5)
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    batches = 0
    while True:
        array = ctypes.create_string_buffer(ARRAY)
        error = call(get_next)(at, ctypes.addressof(array))
        if error:
            break
        assert words(ctypes.addressof(array), 10)[8], "the end, and no error"
        release(ctypes.addressof(array), 64)
        batches += 1
    said = text(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(get_last_error)(at))
    assert error == 74 and "cut.data" in said and "at 0x" in said, (error, said)
    assert batches > 0
    return said


before = kept()
print("arrays:", *check_array(sys.argv[1]))
assert kept() == before, "an array was not freed"
print("streams:", check_stream(sys.argv[1]))
assert kept() == before, "a stream was not freed"
print("damage:", check_damaged(sys.argv[1]))
assert kept() == before, "a stream with an error was not freed"
perfring.columns(sys.argv[1], ["ip", "comm"]).__arrow_c_array__()
assert kept() == before, "capsules that no consumer took were not freed"
