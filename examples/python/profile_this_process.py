# profile_this_process.py - where this process spends its CPU time: by the kernel's event, or, where that is refused, by samples that
# the process raises itself.
import ctypes
import sys
import zlib
from collections import Counter

import perfring


class Symbol(ctypes.Structure):
    _fields_ = [("object", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]


def place_of(address):
    """The object at an address of this process, and its function where the object exports it."""
    symbol = Symbol()
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(symbol)):
        return "(elsewhere)" if address < 1 << 63 else "(kernel)"
    where = symbol.object.decode().rpartition("/")[2]
    return f"{symbol.name.decode()} ({where})" if symbol.name else where


def work():
    text = repr([i * 7919 % 100003 for i in range(100000)]).encode()
    for _ in range(8):
        zlib.compress(text)


with perfring.profile("cpu-clock", frequency=1000, source=sys.argv[1] if len(sys.argv) > 1 else None) as session:
    work()
    session.disable()
    times = Counter()
    for sample in session.samples(["ip", "period"]):
        times[place_of(sample.ip)] += sample.period  # ns
    for note in session.notes:
        print(note)
    total = sum(times.values())
    print(f"{total / 1e9:.2f} s of CPU time, by {session.source}")
    for place, time in times.most_common(10):
        print(f"{100 * time / total:6.2f} %  {place}")
