# python_misuse.py - the Python package where it is used as it should not be: in forks, in signal handlers, when the interpreter ends,
# by threads that close what others read, with numbers and paths that are none.
#
#     python_misuse.py CASE FILE     a process for each case, as the wrong answer to some is a crash or a deadlock
#     python_misuse.py               the cases' names
import copy
import ctypes
import errno
import gc
import mmap
import os
import pickle
import re
import shutil
import signal
import sys
import threading
import time

import perfring
from perfring import _arrow
from python_ticks import ticks

path = sys.argv[2] if len(sys.argv) > 2 else None


def raises(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert text in str(error), str(error)
        return error
    raise AssertionError(f"no {kind.__name__}: {text}")


def observed(**named):
    """A session of this process that has samples, by software events: they need no privilege."""
    session = perfring.profile(source="soft", frequency=250, **named)
    ticks(0.2)
    session.disable()
    return session


def child(run):
    """The exit status of a fork's child that calls `run`."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            run()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def session_in_a_forks_child():
    session = observed()

    def reads():
        for call in (session.columns, lambda: list(session.samples()), lambda: list(session.items()), session.enable,
                     lambda: session.totals, lambda: session.is_over, session.fileno, lambda: session.events):
            raises(ValueError, f"is of process {os.getppid()}, which has forked this one", call)

    def closes():
        # What the child maps now lies where the rings were.
        memory = [mmap.mmap(-1, 1 << size) for size in range(12, 22) for _ in range(16)]
        session.close()
        for one in memory:
            one[0] = one[-1] = 1
        raises(ValueError, "is closed", session.columns)

    assert child(reads) == 0
    assert child(closes) == 0
    assert len(list(session.samples())) > 4  # the parent's are as they were


def generator_in_a_forks_child():
    session = observed()
    rows = session.samples(batch=1)
    next(rows)

    def reads():
        raises(ValueError, "forked", lambda: list(rows))

    assert child(reads) == 0
    assert child(rows.close) == 0
    assert len(list(rows)) > 3


def file_in_a_forks_child():
    file = perfring.open(path)
    whole = len(perfring.columns(path, ["time"]))
    next(iter(file.samples(["time"], batch=1)))
    stop = threading.Event()
    thread = threading.Thread(target=lambda: [file.is_pipe for _ in iter(stop.is_set, True)])
    thread.start()  # it has the lock at some of the forks

    def reads():
        try:
            assert len(file.columns(["time"])) == whole - 1
        except RuntimeError as error:
            assert "was in a call of another thread" in str(error)

    try:
        for _ in range(30):
            assert child(reads) == 0
    finally:
        stop.set()
        thread.join()
    assert len(file.columns(["time"])) == whole - 1


def signal_handlers():
    """Calls of handlers inside other calls, and generators that are collected there."""
    session = observed()
    generators = [session.samples(batch=1) for _ in range(50)]
    for generator in generators:
        next(generator, None)
    inside, outside = [], []

    def handler(*_):
        if generators:
            cycle = [generators.pop()]
            cycle.append(cycle)
            del cycle
            gc.collect()
        try:
            outside.append(session.totals["samples"])
        except RuntimeError as error:
            assert "is in a call of this thread" in str(error)
            inside.append(1)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    end = time.monotonic() + 60
    while time.monotonic() < end and (len(inside) < 20 or generators):
        session.columns()
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(inside) >= 20 and not generators, (len(inside), len(outside))
    assert session.totals["samples"] > 4


def interrupts():
    """Each KeyboardInterrupt arrives, also in the garbage collector; nothing is left locked."""
    session = observed()
    threshold = gc.get_threshold()
    gc.set_threshold(10)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for _ in range(100):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            while True:
                session.columns()
        except KeyboardInterrupt:
            pass
    gc.set_threshold(*threshold)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(session.totals), daemon=True)
    thread.start()
    thread.join(10)
    assert seen


def closes_while_others_read():
    sys.setswitchinterval(1e-6)
    for _ in range(100):
        file = perfring.open(path)
        item = next(iter(file))
        wrong = []

        def reads(call):
            try:
                while True:
                    call()
            except ValueError:
                pass
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=reads, args=(call,)) for call in
                   (lambda: file.is_finished, lambda: file.describe("arch"), lambda: file.late, item.text)]
        for thread in threads:
            thread.start()
        file.close()
        for thread in threads:
            thread.join()
        assert not wrong, wrong


class Last:
    """Ends after all modules."""

    def __init__(self, call):
        self.call = call

    def __del__(self):
        self.call()


def end_of_the_interpreter():
    """What lives longer than the package's modules, in another one: nothing is said, nothing crashes (the exit status)."""
    file, session = perfring.open(path), observed()
    os.items = (file, session, next(iter(file)), file.samples(), session.samples())
    next(os.items[3])
    next(os.items[4])
    batch = perfring.columns(path)
    capsules = batch.__arrow_c_array__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = get_pointer(capsules[1], b"arrow_array")
    release = ctypes.cast(ctypes.c_void_p.from_address(at + 64).value, ctypes.CFUNCTYPE(None, ctypes.c_void_p))
    os.array = Last(lambda release=release, at=at, capsules=capsules: release(at))
    os.forgotten = batch.__arrow_c_stream__()


def exceptions_beside_capsules():
    """Capsules that are freed while an exception is raised: it arrives, and what was in them is freed."""
    batch = perfring.columns(path)
    _arrow._look()
    before = len(_arrow._kept)
    for _ in range(10):
        raises(ZeroDivisionError, "", lambda: print(batch.__arrow_c_array__(), 1 / 0))
        raises(ZeroDivisionError, "", lambda: print(batch.__arrow_c_stream__(), 1 / 0))
    _arrow._look()
    assert len(_arrow._kept) == before, (len(_arrow._kept), before)


def stream_of(batches):
    """Calls get_next of a stream to its end or its error: the errno and its sentence."""
    capsule = _arrow.stream_of(perfring.columns(path, ["time"]), batches)
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    stream = _arrow.Stream.from_address(get_pointer(capsule, b"arrow_array_stream"))
    while True:
        array = _arrow.Array(length=-1)
        error = stream.get_next(stream, array)
        if error:
            return error, ctypes.string_at(stream.get_last_error(stream)).decode()
        assert array.length != -1, "success, and no array"
        if not array.release:
            return 0, ""
        array.release(array)


def errors_of_arrow_streams():
    assert stream_of(perfring.open(path).batches(["time"])) == (0, "")
    with open(path, "rb") as file:
        whole = file.read()
    with open(b"\xff.data", "wb") as file:
        file.write(whole[:len(whole) // 2])
    error, said = stream_of(perfring.open(b"\xff.data").batches(["time"]))
    assert error == errno.EBADMSG and "\\xff.data" in said, (error, said)

    def interrupted():
        signal.raise_signal(signal.SIGINT)
        yield None

    assert stream_of(interrupted()) == (errno.EINTR, "KeyboardInterrupt")


def pickles():
    file, session = perfring.open(path), perfring.Session()
    samples = list(perfring.open(path).samples())
    assert pickle.loads(pickle.dumps(samples)) == samples and copy.copy(samples[0]) == samples[0]
    assert type(pickle.loads(pickle.dumps(samples[0]))) is type(samples[0])
    for item in perfring.open(path):
        for other in (pickle.loads(pickle.dumps(item)), copy.deepcopy(item)):
            assert {**vars(other), "_source": None, "_format": None} == {**vars(item), "_source": None, "_format": None}
            raises(ValueError, "a copy of an item has no text", other.text)
    for one, text in ((file, "a File"), (session, "a Session"), (file.batches(), "a File"), (perfring.columns(path), "a Batch")):
        raises(TypeError, f"{text} cannot be pickled or copied", pickle.dumps, one)
        raises(TypeError, f"{text} cannot be pickled or copied", copy.deepcopy, one)


def numbers_and_paths():
    raises(ValueError, "a NUL is in", perfring.open, path + "\0.old")
    raises(ValueError, "a NUL is in", perfring.open, path.encode() + b"\0.old")
    raises(ValueError, "a NUL is in", perfring.profile, "cpu-clock\0nonsense", source="soft")
    raises(ValueError, "embedded null", perfring.open_ring, "ring\0x")
    raises(TypeError, "", perfring.open, 0)
    for named, text in (
            (dict(pid=os.getpid() + (1 << 32)), "pid is "), (dict(pid=0), "pid is 0"), (dict(pid=-1), "pid is -1"),
            (dict(tid=0), "tid is 0"), (dict(tid=threading.get_native_id() + (1 << 32)), "tid is "),
            (dict(frequency=0), "frequency is 0"), (dict(frequency=-1), "frequency is -1"), (dict(period=0), "period is 0"),
            (dict(period=(1 << 64) + 1000), "period is "), (dict(period=1000, frequency=1000), "exclude each other"),
            (dict(pages=-1), "pages is -1"), (dict(pages=(1 << 32) + 1), "pages is ")):
        raises(ValueError, text, perfring.profile, **named)
    raises(TypeError, "", perfring.profile, frequency=1000.5)
    session = observed()
    assert len(list(session.samples(timeout=float("inf")))) + len(session.columns(timeout=1e300)) + len(list(session.items(timeout=-1))) > 4


def damage_in_a_directory():
    """A damaged sample's sentence is the same by items and by rows: its file of the directory, its place in that, and what."""
    with perfring.open(path) as file:
        record = min((item.record for item in file if item.kind == "SAMPLE"), key=len)
    shutil.rmtree("folder", ignore_errors=True)
    os.mkdir("folder")
    shutil.copy(path, "folder/data")
    cut = len(record) - 8
    with open("folder/data.0", "wb") as file:
        file.write(record[:6] + cut.to_bytes(2, sys.byteorder) + record[8:cut])
    file = perfring.open("folder")
    by_item = raises(OSError, "data.0: at 0x", list, file)
    rest = len([item for item in file if item.kind == "SAMPLE"])  # it goes on after it
    file = perfring.open("folder")
    by_row = raises(OSError, "data.0: at 0x", list, file.samples())
    assert (by_item.errno, by_item.strerror, by_item.filename) == (by_row.errno, by_row.strerror, "folder")
    assert rest == len(list(file.samples())) > 0
    whole = len(perfring.columns(path))
    rows = perfring.open("folder").samples()
    before = 0
    try:
        for _ in rows:
            before += 1
    except OSError:
        pass
    assert before + rest == whole, (before, rest, whole)


def losses():
    """What was lost is counted, whichever way the records are read; and columns that end in damage leave what came before it."""
    with perfring.open("losses.data") as file:
        texts = [(item.kind, item.text()) for item in file]
    expected = [sum(int(re.search(r" lost=(\d+)", text)[1]) for kind, text in texts if kind == wanted)
                for wanted in ("LOST", "LOST_SAMPLES")]
    assert all(expected), expected
    for read in (list, lambda file: list(file.samples(["time"], batch=7)), lambda file: file.columns(["time"]),
                 lambda file: list(file.batches(rows=10))):
        with perfring.open("losses.data") as file:
            read(file)
            assert [file.lost, file.lost_samples] == expected, (file.lost, file.lost_samples, expected)
    with open(path, "rb") as whole, open("half.data", "wb") as half:
        half.write(whole.read()[:400000])
    error = raises(OSError, "ends inside", perfring.columns, "half.data")
    rows = perfring.open("half.data").samples()
    before = []
    raises(OSError, "ends inside", lambda: before.extend(iter(rows.__next__, None)))
    assert list(error.batch.tuples()) == before and len(before) > 100


cases = (session_in_a_forks_child, generator_in_a_forks_child, file_in_a_forks_child, signal_handlers, interrupts,
         closes_while_others_read, end_of_the_interpreter, exceptions_beside_capsules, errors_of_arrow_streams, pickles,
         numbers_and_paths, damage_in_a_directory, losses)
if path:
    {case.__name__: case for case in cases}[sys.argv[1]]()
else:
    for case in cases:
        print(case.__name__)
