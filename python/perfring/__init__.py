# __init__.py - perf's records for Python: files, live rings, columns.
"""perf.data files and perf's rings: samples as iterators, as columns, as Arrow arrays.

    import perfring

    with perfring.open("perf.data") as file:
        for sample in file.samples():                  # named tuples, some tenths of a microsecond each
            print(sample.comm, sample.time, hex(sample.ip))

    columns = perfring.columns("perf.data", ["time", "ip", "period"])
    print(sum(columns["period"]))                      # memoryviews; pyarrow.record_batch(columns)

    with perfring.profile(frequency=1000) as session:  # this process
        work()
        print(len(list(session.samples())))

It is ctypes over libperfring.so.0, which it looks for where the linker does, or at the path in PERFRING_LIBRARY.
"""

from ._file import Batches, Event, File, columns
from ._items import Item
from ._library import CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER, CONTEXT_USER_DEFERRED
from ._library import VERSION as __version__
from ._names import Frame, Names
from ._rows import FIELDS, Batch
from ._session import Session, Thread, join, open_ring, profile


def addresses(callchain):
    """The addresses of a callchain, innermost first, without its markers (and without the cookie of a deferred chain)."""
    if CONTEXT_USER_DEFERRED in callchain and CONTEXT_USER not in callchain:
        callchain = callchain[:callchain.index(CONTEXT_USER_DEFERRED)]
    return [word for word in callchain if word < CONTEXT_MAX]


def open(path="perf.data"):
    """A perf.data file: see File."""
    return File(path)


__all__ = [
    "Batch", "Batches", "CONTEXT_KERNEL", "CONTEXT_MAX", "CONTEXT_USER", "CONTEXT_USER_DEFERRED", "Event", "FIELDS", "File",
    "Frame", "Item", "Names", "Session", "Thread", "addresses", "columns", "join", "open", "open_ring", "profile",
]
