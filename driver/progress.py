"""Progress on standard error, for whatever takes longer than a second; quick work stays silent."""

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

PATIENCE = 1.0
"""Seconds before a step is shown."""
_TICK = 0.2


class Progress:
    """Shows the step that is going on. On a terminal the line is drawn over; elsewhere each step is one line."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._terminal = self._stream.isatty()
        self._drawn = False
        self.detail = ""
        """What the step is at, such as `12/96`; may change while it runs."""

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """Shows `name` while the body takes its time."""
        self.detail = ""
        if self._quiet:
            yield
            return
        done = threading.Event()
        start = time.perf_counter()
        thread = threading.Thread(target=self._watch, args=(name, start, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self._finish(name, time.perf_counter() - start)

    def at(self, done: int, total: int) -> None:
        """How far the step is."""
        self.detail = f"{done}/{total}"

    def _watch(self, name: str, start: float, done: threading.Event) -> None:
        if done.wait(PATIENCE):
            return
        if not self._terminal:
            self._write(f"{name} …\n")
            return
        while not done.wait(_TICK):
            self._draw(f"{name} … {self.detail} {time.perf_counter() - start:.0f} s")

    def _finish(self, name: str, seconds: float) -> None:
        if self._terminal and self._drawn:
            self._draw("")
        if seconds >= PATIENCE:
            self._write(f"{name}: {seconds:.1f} s\n")

    def _draw(self, text: str) -> None:
        self._drawn = True
        self._write(f"\r\x1b[K{text}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
