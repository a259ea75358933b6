# _names.py - names of the functions that samples were in, by libperfring-profile.so.0.
"""Names of functions."""

import ctypes
import errno
import os
from collections import namedtuple

from ._file import File, Handle
from ._library import (
    CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER, CONTEXT_USER_DEFERRED, NUMBERS, Header, Item, Symbol, SymbolFile, SymbolKernel,
    error_of, load_profile,
)

#: One frame of a sample: its address, the name of the function and how far into it that is (None, None: not known), and the object.
Frame = namedtuple("Frame", "address name offset object")

_KERNEL, _USER = NUMBERS["RECORD_MISC_KERNEL"], NUMBERS["RECORD_MISC_USER"]


def _places(item):
    """(address, whether it is the kernel's or user space's), innermost first."""
    mode = item.misc & 7
    if not item.callchain:
        if item.ip is not None:
            yield item.ip, mode
        return
    is_user = False
    for word in item.callchain:
        if word < CONTEXT_MAX:
            yield word, mode
        elif word == CONTEXT_USER_DEFERRED and not is_user:
            return  # its cookie follows
        else:
            mode = {CONTEXT_KERNEL: _KERNEL, CONTEXT_USER: _USER}.get(word, 0)
            is_user |= word == CONTEXT_USER


class Names(Handle):
    """Names of the functions of samples.  It is given all items of a file or a session in their order, while that is open:

        with perfring.open() as file, perfring.Names() as names:
            for item in file:
                for frame in names.frames(item):
                    print(frame.name, frame.object)

    Objects are read where they were recorded, or the same builds of them in the caches that symbol.h names.  Inlined functions, and
    stacks that were copied (record --call-graph dwarf), are not looked into: `perfring script` does."""

    def __init__(self):
        super().__init__()
        self._library = load_profile()
        self._symbols = ctypes.c_void_p()
        self._known = {}      # address of an object; None: the kernel -> what was read of it; None: no file
        self._builds = None   # name -> build id, of the file
        handle = ctypes.c_void_p()
        error = self._library.perfring_symbols_open(ctypes.byref(self._symbols), None)
        error = error or self._library.perfring_maps_open(ctypes.byref(handle))
        self._handle = handle.value
        if error:
            self.close()
            raise error_of(error, "")

    def __repr__(self):
        return "names of functions"

    def close(self):
        with self._turn():
            handle, self._handle = self._handle, None
            symbols, self._symbols = self._symbols, None
            self._library.perfring_maps_close(handle)
            self._library.perfring_symbols_close(symbols)

    def frames(self, item):
        """The frames of a sample, innermost first.  Of another record, which is remembered, there are none."""
        source = item._source
        if not source:
            raise ValueError("a copy of an item has no names: its file or session has")
        with self._turn():
            self._check()
            if item.type == NUMBERS["RECORD_SAMPLE"]:
                return [self._frame(source, item.pid or 0, *place) for place in _places(item)]
            with source._turn():
                source._check()
                record = ctypes.create_string_buffer(item.record, len(item.record))
                made = Item(ctypes.cast(record, ctypes.POINTER(Header)), item._format, item.time)
                error = self._library.perfring_maps_take(self._handle, ctypes.byref(made))
        if error == -errno.ENOMEM:
            raise MemoryError
        return []

    def _frame(self, source, pid, address, mode):
        mapping = self._library.perfring_maps_find(self._handle, mode, pid & 0xFFFFFFFF, address)
        if not mapping:
            return Frame(address, None, None, None)
        place = mapping.contents.object.contents
        name = os.fsdecode(place.name)
        key = None if mode == _KERNEL else ctypes.addressof(place)
        if key not in self._known:
            with source._turn():
                source._check()
                self._known[key] = self._read(source, pid, place, mapping.contents, mode)
        symbols = self._known[key]
        symbol = Symbol()
        at = address if mode == _KERNEL else self._library.perfring_mapping_offset(mapping, address)
        if symbols and self._library.perfring_symbol_find(symbols, at, ctypes.byref(symbol)):
            return Frame(address, os.fsdecode(symbol.name), symbol.address - symbol.start, name)
        return Frame(address, None, None, name)

    def _read(self, source, pid, place, mapping, mode):
        """What the library knows of an object; None: it is no file."""
        if self._builds is None:
            self._builds = {}
            flags = self._library.perfring_symbols_flags_for(source._handle) if isinstance(source, File) else 0
            self._is_elsewhere = flags & NUMBERS["SYMBOLS_ELSEWHERE"]
            for name, build in source._builds():  # the first of a name counts
                self._builds.setdefault(name, build)
                self._library.perfring_symbols_expect(self._symbols, name, build, len(build))
        by = ctypes.byref
        symbols, error = ctypes.c_void_p(), 0
        if mode == _KERNEL:
            build = self._builds.get(b"[kernel.kallsyms]", b"")
            kernel = SymbolKernel(release=source._release(), build_id=build, build_id_size=len(build))
            if place.kind == NUMBERS["MAPS_KERNEL"]:
                kernel.reference, kernel.address = place.name.rpartition(b"]")[2], mapping.pgoff
            error = self._library.perfring_symbols_get_kernel(self._symbols, by(kernel), by(symbols))
        elif place.kind == NUMBERS["MAPS_FILE"] or (
                place.kind == NUMBERS["MAPS_VDSO"] and source._release() == os.fsencode(os.uname().release)):
            file = SymbolFile(place.name, ctypes.addressof(place.file.build_id), place.file.build_id_size,
                              0 if isinstance(source, File) else pid,
                              0 if self._is_elsewhere else place.file.ino, place.file.ino_generation)
            error = self._library.perfring_symbols_get(self._symbols, by(file), by(symbols))
        if error == -errno.ENOMEM:
            raise MemoryError
        return symbols if symbols and error >= 0 else None
