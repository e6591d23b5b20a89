"""Streams and events: work that is queued now, runs later, and takes virtual time.

Nothing that is queued has happened before its stream is synchronised: a copy out leaves the old bytes in the caller's
array, a launch leaves them in the device's memory. An error stops its stream; the next `synchronise` raises it, with
the lines that queued the work. An interrupt drops what is queued. Times are cycles of the device's clock, worked out
when somebody asks.
"""

import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .cpu import HostError
from .faults import DeadlockFault, DeviceFault, IndexFault, TokenFault
from .problem import Kind, Problem, UserError

COMPUTE, COPY_IN, COPY_OUT, HOST = "compute", "copy in", "copy out", "host"
_OWN_FILES = Path(__file__).parent
_LEDGER = 4096


class StreamError(UserError, RuntimeError):
    """Queued work failed: `<what>: <the error>`, and where it was queued. The stream has dropped all behind it."""

    KIND: ClassVar[Kind] = Kind.IR

    def __init__(self, name: str, error: Exception, stack: str) -> None:
        super().__init__(f"{name}: {error}\nqueued at:\n{stack}")
        self.name = name
        self.error = error
        self.stack = stack

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong, without the place in the caller's code."""
        match self.error:
            case UserError():
                return self.error.problems
            case IndexFault(index=index, rows=rows, place=place):
                where = ", ".join(place.nodes) or self.name
                # The compiler writes `rows` for every tuple of indices of which one is outside of its axis.
                found = f"{index}, or a tuple with an index outside of its axis" if index == rows else f"{index}"
                rule = f"{where}: an index names one of {rows} rows, {-rows} to {rows - 1} (found {found})"
                return (Problem(f"{rule}; give indices in this range", Kind.DTYPE, where),)
            case DeviceFault(kind=kind, expected=expected, found=found, place=place):
                line = f"{self.name}: {kind}: {expected} (found {found}, {place})"
                if isinstance(self.error, TokenFault | DeadlockFault):
                    return (Problem(f"{line}; ask stepwell check which instructions do not wait", Kind.IR),)
                return (Problem(f"{line}; mend the row as docs/isa.md says, or report what compiled to it", Kind.IR),)
            case HostError():
                told = "; ".join((str(self.error), "look at the values that go in"))
                return (Problem(told, Kind.OPERATOR),)
            case _:
                return (Problem.of_ir(f"{self.name}: {self.error}", self.name),)


class Clock:
    """Until when each part of a device is busy: of two streams only one computes at a time, while the other copies."""

    def __init__(self) -> None:
        self._busy = {COMPUTE: 0.0, COPY_IN: 0.0, COPY_OUT: 0.0, HOST: 0.0}
        self._ledger: deque[Callable[[], None]] = deque()

    def post(self, entry: Callable[[], None]) -> None:
        """Notes work that has run; `entry` accounts for its time."""
        self._ledger.append(entry)
        if len(self._ledger) > _LEDGER:
            self.settle()

    def settle(self) -> None:
        """Works out all times that are not known yet. (An entry that asks for a time finds all before it settled.)"""
        entries, self._ledger = self._ledger, deque()
        for entry in entries:
            entry()

    def spend(self, part: str, start: float, cycles: float) -> float:
        """When work ends that may begin at `start`."""
        self._busy[part] = max(start, self._busy[part]) + cycles
        return self._busy[part]


@dataclass(frozen=True, slots=True)
class _Work:
    """An entry of a stream."""

    name: str
    action: Callable[[], None]
    account: Callable[[], None]
    stack: list[traceback.FrameSummary]


class Stream:
    """Work in order. Streams of one device are independent of each other but for events."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._queue: deque[_Work] = deque()
        self._error: StreamError | None = None
        self._time = 0.0

    @property
    def pending(self) -> int:
        """Entries that have not run."""
        return len(self._queue)

    @property
    def time(self) -> float:
        """Cycles at which the work that has run ended."""
        self.clock.settle()
        return self._time

    def add(self, name: str, part: str, action: Callable[[], None], cycles: Callable[[], float]) -> None:
        """Queues `action`, which occupies a part of the device for `cycles`."""

        def account() -> None:
            self._time = self.clock.spend(part, self._time, cycles())

        self._queue.append(_Work(name, action, account, _callers()))

    def record(self) -> "Event":
        """An event that happens when all work queued so far is done."""
        event = Event(self)
        self._queue.append(_Work("event", event.happen, lambda: event.settle(self._time), []))
        return event

    def wait(self, event: "Event") -> None:
        """Work queued from now on begins after the event."""

        def account() -> None:
            self._time = max(self._time, event.time)

        self._queue.append(_Work("wait for an event", event.synchronise, account, _callers()))

    def synchronise(self) -> None:
        """Runs all that is queued. Raises `StreamError` for the first entry that failed; the rest is dropped."""
        self.run_until(lambda: False)

    def run_until(self, reached: Callable[[], bool]) -> None:
        """As `synchronise`, but stops as soon as `reached`."""
        while self._queue and self._error is None and not reached():
            self._run(self._queue.popleft())
        if self._error is not None:
            error, self._error = self._error, None
            self._queue.clear()
            raise error

    def _run(self, work: _Work) -> None:
        try:
            work.action()
        except Exception as error:  # noqa: BLE001 - kept for the next synchronise
            cause = error.error if isinstance(error, StreamError) else error
            self._error = StreamError(work.name, cause, "".join(traceback.format_list(work.stack)))
            self._error.__cause__ = cause
            return
        except BaseException:  # an interrupt: what is queued behind counts on this work
            self._queue.clear()
            raise
        self.clock.post(work.account)


class Event:
    """A point in a stream; see `Stream.record`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._time = 0.0
        self.happened = False

    def happen(self) -> None:
        """For the stream: all work before the event has run."""
        self.happened = True

    def settle(self, time: float) -> None:
        """For the clock: the cycles at which that was."""
        self._time = time

    @property
    def time(self) -> float:
        """Cycles at which it happened. Raises `ValueError` before that."""
        if not self.happened:
            raise ValueError("the event has not happened: synchronise it, or its stream, first")
        self._stream.clock.settle()
        return self._time

    def synchronise(self) -> None:
        """Runs its stream as far as the event. Raises `StreamError`."""
        self._stream.run_until(lambda: self.happened)
        if not self.happened:
            raise ValueError("the event will not happen: the work before it failed and was dropped")

    def since(self, earlier: "Event") -> float:
        """Cycles from an earlier event to this one."""
        return self.time - earlier.time


def _callers() -> list[traceback.FrameSummary]:
    """The stack of whoever queued the work, without the runtime's own frames."""
    frames = traceback.extract_stack()
    return [frame for frame in frames if _OWN_FILES not in Path(frame.filename).parents][-8:]
