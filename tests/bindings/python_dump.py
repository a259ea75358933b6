# python_dump.py - the lines of conformance.c that are for Python, those of python_calls.cc, by the Python package; and python_calls.h.
#
#     python_dump.py items|samples=ROWS|batches=ROWS|columns FILE...     python_dump.py ring FILE     python_dump.py layout|calls|names
import ctypes
import sys

import perfring
from perfring import _library, _rows


def number(value):
    return value if isinstance(value, (int, str)) else f"{len(value)}/{total(value)}"


def total(words):
    result = 0
    for word in words:
        result = (result * 31 + word) & 0xFFFFFFFFFFFFFFFF
    return result


def line_of(item):
    line = f"{item.kind} at={item.time} size={len(item.record)}"
    if item.kind == "SAMPLE" and item.event is not None:
        fields = [f" {field}={number(getattr(item, field))}" for field in perfring.FIELDS
                  if getattr(item, field) is not None and (field != "time" or item.present & 4)]
        return line + "".join(fields)
    for name in ("pid", "tid", "cpu", "event"):
        if getattr(item, name) is not None:
            line += f" {name}={getattr(item, name)}"
    return f"{line} {item.text()}"


def print_samples(file, way):
    """The same lines for samples, from rows or columns, which do not have at= and size=."""
    has = 0
    for event in file.events:
        has |= event.sample_type
    bits = {field: _rows.bit_of(field) for field in perfring.FIELDS}
    fields = [field for field, bit in bits.items() if bit is None or has >> bit & 1]
    way, _, rows = way.partition("=")
    if way == "samples":
        samples = file.samples(fields, batch=int(rows))
    elif way == "batches":
        samples = (sample for batch in file.batches(fields, int(rows)) for sample in batch.tuples())
    else:
        samples = file.columns(fields).tuples()
    for sample in samples:
        print("SAMPLE" + "".join(f" {field}={number(getattr(sample, field))}" for field in fields
                                 if bits[field] is None or sample.present >> bits[field] & 1))


def print_file(path, print_them):
    try:
        with perfring.open(path) as file:
            print_them(file)
    except OSError as error:
        print(error.strerror)


def print_items(file):
    for item in file:
        print(line_of(item))


def print_layout():
    for bit, name, size in _library.COLUMNS:
        print("COLUMN", bit, name, size)
    for name, struct in {**_library.STRUCTS}.items():
        print(name, ctypes.sizeof(struct))
        for member, _ in struct._fields_:
            field = getattr(struct, member)
            print(f"{name}.{member}", field.offset, field.size)
    for member, _ in _library.Attr._fields_:
        if not member.startswith("reserved") and member not in ("flags", "sig_data", "config3", "config4"):
            field = getattr(_library.Attr, member)
            print(f"attr.{member}", field.offset, field.size)
    for name, bit in _library.FLAGS.items():
        print("FLAG", name, bit)
    for name, value in _library.NUMBERS.items():
        print(name, value)
    print("CALLCHAIN", _library.CALLCHAIN_BIT)
    print("RAW", _library.RAW_BIT)


def kind_of(kind):
    if kind is None:
        return "void"
    if issubclass(kind, (ctypes.c_char_p, ctypes.c_void_p, ctypes._Pointer)):
        return "pointer"
    if issubclass(kind, ctypes.Structure):
        return f"struct{ctypes.sizeof(kind)}"
    if kind is ctypes.c_bool:
        return "bool"
    return f"{'i' if kind(-1).value < 0 else 'u'}{8 * ctypes.sizeof(kind)}"


calls = {**_library._FUNCTIONS, **_library._SOFT_FUNCTIONS, **_library._PROFILE_FUNCTIONS}
sys.stdout.reconfigure(errors="surrogateescape")
if sys.argv[1] == "layout":
    print_layout()
elif sys.argv[1] == "calls":
    for name, (result, arguments) in calls.items():
        print(name, *map(kind_of, (result, *arguments)))
elif sys.argv[1] == "names":
    print("#define ATTR_SPACE", ctypes.sizeof(_library.Attr))
    for name in calls:
        print(f"OF({name})")
elif sys.argv[1] == "ring":
    with perfring.open_ring(sys.argv[2]) as session:
        for one in session.items():
            print(line_of(one))
else:
    kind, *paths = sys.argv[1:]
    for one in paths:
        if len(paths) > 1:
            print("==", one)
        print_file(one, print_items if kind == "items" else lambda file: print_samples(file, kind))
