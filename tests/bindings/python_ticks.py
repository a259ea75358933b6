# python_ticks.py - a thread that uses its CPU, and meets the timers' ticks.
import time


def ticks(seconds):
    """CPU time of this thread.  Its clock is looked at seldom (docs/abi.md 9.4)."""
    end = time.thread_time() + seconds
    while (left := end - time.thread_time()) > 0:
        until = time.monotonic() + left
        while time.monotonic() < until:
            sum(range(1000))
