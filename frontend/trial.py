"""onnxruntime and ONNX's inference on trial: what they say of a model, without the risk that they end this process.

    outputs = TRIAL.outputs(model)     # names, types, extents; HostError if onnxruntime refuses the model, or crashes

Both crash on some files that break ONNX's rules, and take years over others, so a child of this process asks them, with
so much processor time for an answer. It is forked at the first question, and anew after a crash; it ends with this
process, or, if that was large when it was forked, with the import.
Where processes cannot be forked, the questions are answered in this one.
"""

import atexit
import contextlib
import faulthandler
import gc
import math
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import onnx
from onnx.shape_inference import InferenceError

from ..dialects.graph.op import InferError
from ..runtime.cpu import HostError, compiled

FORKS = sys.platform == "linux"
"""Whether processes are forked; elsewhere, libraries do not allow it, or the system does not."""
PATIENCE = 20.0
"""Seconds in which a new child answers: one that was forked while another thread held a lock may never."""
MOST_HELD = 2**30
"""Bytes of this process that a child may hold beyond an import: it shares them, also when they are freed here."""
LOOK = 1.0
"""Seconds from one look whether the child is alive to the next."""
MOST_SECONDS = 10
"""Of processor time that an answer takes, and one more for each of"""
BYTES_A_SECOND = 2**27
"""of what is asked."""

LARGE = 2**16
"""Bytes of a model that is not copied into a message."""

Output = tuple[str, str, list[Any]]
"""Name, type and extents, as onnxruntime gives them."""


class CrashError(HostError):
    """A model ended the process that asked about it."""


class SlowError(HostError):
    """A model takes more time than an import has."""


class _DeathError(Exception):
    """The child is no more."""

    def __init__(self, code: int | None) -> None:
        self.code = code
        """Of its exit; minus a signal, None if not known."""

    def __str__(self) -> str:
        if self.code is None:
            return "signal unknown"
        return f"signal {-self.code}" if self.code < 0 else f"exit {self.code}"


@dataclass(slots=True)
class _Child:
    """A process that answers, one question after the other."""

    pid: int
    connection: Connection
    held: int
    """Bytes of memory that it shares with the parent."""
    is_new: bool = True
    """It has not answered a question yet: if it dies, no earlier one is to blame."""

    def ask(self, kind: str, text: bytes, values: Any) -> Any:
        """The answer to a question. Raises `_DeathError`."""
        try:
            _send(self.connection, (kind, values), text)
            return self.answer(None)
        except (EOFError, OSError):
            raise _DeathError(self.end(kill=False)) from None

    def answer(self, patience: float | None) -> Any:
        """What it sends next. Raises `EOFError` if it dies, `TimeoutError`."""
        waited = 0.0
        while not self.connection.poll(LOOK):
            waited += LOOK
            if patience is not None and waited >= patience:
                raise TimeoutError
            if _is_dead(self.pid) and not self.connection.poll(0):
                raise EOFError
        return self.connection.recv()

    def end(self, kill: bool = True) -> int | None:
        """Ends it, or waits for its end; its exit code, minus a signal, None if not known."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError):
            if kill:
                os.kill(self.pid, signal.SIGKILL)
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # someone else waited for it
            return None


def _is_dead(pid: int) -> bool:
    """Whether a child has ended; it stays to be waited for."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


class Trial:
    """Asks in a process of its own; see the module. Threads ask one after the other."""

    def __init__(self) -> None:
        self._can_fork = FORKS
        self.child: _Child | None = None
        """The process that answers, if there is one now."""
        self._users = 0
        self._lock = threading.RLock()

    def forget(self) -> None:
        """In a process that was forked from this one: the child is not its own."""
        if self.child is not None:
            self.child.connection.close()
        self.child = None
        self._users = 0
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def open(self) -> Generator[None]:
        """An import: with the last of them ends a child that holds much."""
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users = max(0, self._users - 1)
                if not self._users and self.child is not None and self.child.held > MOST_HELD:
                    self.close()

    def close(self) -> None:
        """Ends the child; the next question forks another."""
        child, self.child = self.child, None
        if child is not None:
            child.end()

    def outputs(self, model: bytes) -> list[Output]:
        """The outputs of a model. Raises `HostError` for one that onnxruntime does not run."""
        return self._ask("outputs", model, None)

    def run(self, model: bytes, values: Sequence[Any]) -> list[Any]:
        """What a model gives for inputs in order. Raises `HostError`."""
        return self._ask("run", model, values)

    def infer(self, model: onnx.ModelProto, data_prop: bool = False) -> onnx.ModelProto:
        """The model with the types and shapes that ONNX infers. Raises `InferenceError` if its rules do not allow it,
        `InferError` if they crash."""
        try:
            return onnx.load_from_string(self._ask("infer", model.SerializeToString(), data_prop))
        except CrashError as error:
            raise InferError(f"types and shapes follow by ONNX's rules (found {error})", broken=True) from None
        except HostError as error:
            raise InferenceError(str(error)) from None

    def _ask(self, kind: str, text: bytes, values: Any) -> Any:
        with self.open(), self._lock:
            try:
                refused, found = self._answer(kind, text, values)
            except HostError:
                raise
            except BaseException:
                self.close()  # it may be in the middle of a question
                raise
        if refused:
            raise HostError(found)
        return found

    def _answer(self, kind: str, text: bytes, values: Any) -> tuple[bool, Any]:
        """Whether the question was refused, and the answer or why. Raises `CrashError`, `SlowError`."""
        while (child := self.child or self._start()) is not None:
            try:
                answer = child.ask(kind, text, values)
            except _DeathError as death:
                self.child = None
                if death.code == -signal.SIGXCPU:
                    raise SlowError("it takes more time than an import has") from None
                if child.is_new:
                    library = "ONNX's inference" if kind == "infer" else "onnxruntime"
                    raise CrashError(f"{library} crashed on it: {death}") from None
                continue
            child.is_new = False
            return answer
        return _answer(kind, text, values)

    def _start(self) -> _Child | None:
        """A new child, or None where there can be none."""
        if not self._can_fork:
            return None
        import onnxruntime  # noqa: F401 # pyright: ignore[reportUnusedImport] - once, for all children

        first = _smallest()
        ours, theirs = Pipe()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # other threads' locks: see PATIENCE
                pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            return None
        if pid == 0:
            try:
                _serve(theirs, first)
            finally:
                os._exit(1)
        theirs.close()
        child = _Child(pid, ours, _resident())
        try:
            child.answer(PATIENCE)
        except (EOFError, OSError):
            child.end()
            self._can_fork = False
            return None
        except BaseException:
            child.end()
            raise
        self.child = child
        return child


def _resident() -> int:
    """Bytes of this process in memory, without what files hold."""
    _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text(encoding="ascii").split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


TRIAL = Trial()
"""That of this process."""
if FORKS:
    os.register_at_fork(after_in_child=TRIAL.forget)
    atexit.register(TRIAL.close)


# in the child ---------------------------------------------------------------------------------------------------------
def _serve(connection: Connection, first: bytes) -> None:
    """Answers questions until the other side closes the connection."""
    _isolate(connection.fileno())
    connection.send(_answer("outputs", first, None))
    while True:
        try:
            (kind, values), text, nbytes = _receive(connection)
            _limit_time(MOST_SECONDS + nbytes // BYTES_A_SECOND)
            connection.send(_answer(kind, text, values))
        except (EOFError, OSError):
            os._exit(0)


def _isolate(kept: int) -> None:
    """Leaves all that belongs to the parent: files, signals, garbage. A crash is silent."""
    gc.disable()
    faulthandler.disable()
    for number, action in ((signal.SIGINT, signal.SIG_IGN), (signal.SIGTERM, signal.SIG_DFL)):
        signal.signal(number, action)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        if standard != kept:
            os.dup2(null, standard)
    for file in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if file > 2 and file != kept:
            with contextlib.suppress(OSError):
                os.close(file)


def _limit_time(seconds: int) -> None:
    """Lets this process take that much processor time from now on; then it ends with a signal."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(usage.ru_utime + usage.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _answer(kind: str, text: bytes, values: Any) -> tuple[bool, Any]:
    """Whether a question is refused, and why; else the answer."""
    try:
        if kind == "infer":
            return False, onnx.shape_inference.infer_shapes(text, data_prop=values).SerializeToString()
        model = compiled(text)
        if kind == "run":
            return False, model.run(values)
        return False, [(output.name, output.type, output.shape) for output in model.session.get_outputs()]
    except (HostError, InferenceError) as error:
        return True, str(error)


# messages -------------------------------------------------------------------------------------------------------------
def _send(connection: Connection, values: Any, text: bytes) -> None:
    """Large arrays and a large model go as they are, without a copy."""
    buffers: list[pickle.PickleBuffer] = []
    model = pickle.PickleBuffer(text) if len(text) > LARGE else text
    head = pickle.dumps((values, model), 5, buffer_callback=buffers.append)
    connection.send_bytes(len(buffers).to_bytes(4, "big") + head)
    for buffer in buffers:
        connection.send_bytes(buffer.raw())


def _receive(connection: Connection) -> tuple[Any, bytes, int]:
    """The inverse of `_send`, and the bytes that came. Raises `EOFError`."""
    head = connection.recv_bytes()
    buffers = [connection.recv_bytes() for _ in range(int.from_bytes(head[:4], "big"))]
    values, text = pickle.loads(memoryview(head)[4:], buffers=buffers)
    return values, text, sum(map(len, (head, *buffers)))


@cache
def _smallest() -> bytes:
    """A model that onnxruntime runs."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "smallest", [x], [y])
    opsets = [onnx.helper.make_opsetid("", 13)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=7).SerializeToString()
