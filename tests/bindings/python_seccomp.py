# python_seccomp.py - runs a command in which perf_event_open is refused (EACCES), as in most containers.
#
#     python_seccomp.py COMMAND [ARGUMENT...]
import ctypes
import os
import platform
import struct
import sys

AUDIT, NUMBER = {"x86_64": (0xC000003E, 298), "aarch64": (0xC00000B7, 241)}[platform.machine()]


def step(code, jt, jf, k):
    return struct.pack("=HBBI", code, jt, jf, k)


program = b"".join((
    step(0x20, 0, 0, 4), step(0x15, 0, 2, AUDIT),     # the machine
    step(0x20, 0, 0, 0), step(0x15, 1, 0, NUMBER),    # the call
    step(0x06, 0, 0, 0x7FFF0000),                     # allow
    step(0x06, 0, 0, 0x00050000 | 13),                # EACCES
))
steps = ctypes.create_string_buffer(program, len(program))
filter = struct.pack("@HP", len(program) // 8, ctypes.addressof(steps))
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, 2, ctypes.create_string_buffer(filter), 0, 0):
    sys.exit(f"SKIP-ENV: prctl: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
