"""Runs a function in a process of its own, which may crash or hang without taking this one with it.

The process is forked, so the function sees this one's state, and starts at once; its result comes back pickled.
"""

import faulthandler
import os
import pickle
import resource
import select
import signal
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
_CHUNK = 1 << 20


class CrashError(RuntimeError):
    """The process died: `signal` says of what (0: it ended without a result)."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the process died of {_name(number)}")
        self.signal = number


class HangError(RuntimeError):
    """The process did not end in the time it had."""


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "no signal"


def isolated(work: Callable[[], Result], seconds: float) -> Result:
    """What `work` returns; its standard output and error are dropped. Raises `CrashError` and `HangError`.

    `work` must not raise: an exception counts as a crash.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child starts none of what they hold
        child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    ended = False
    try:
        content = _read(reading, time.monotonic() + seconds)
        ended = content is not None
    finally:
        os.close(reading)
        if not ended:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if content is None:
        raise HangError(f"no end after {seconds:g} s")
    if not content or status:
        raise CrashError(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
    return pickle.loads(content)


def _work(work: Callable[[], object], writing: int) -> None:
    """The child's part; it never returns."""
    code = 1
    try:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        content = memoryview(pickle.dumps(work(), protocol=pickle.HIGHEST_PROTOCOL))
        while content:
            content = content[os.write(writing, content) :]
        code = 0
    finally:
        os._exit(code)  # without what this process has registered for its own end


def _read(reading: int, until: float) -> bytes | None:
    """All that is written; None if it does not end in time."""
    parts = list[bytes]()
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        parts.append(os.read(reading, _CHUNK))
        if not parts[-1]:
            return b"".join(parts)
