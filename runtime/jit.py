"""How the runtime compiles its inner loops: one configuration of numba, and one disk cache that cannot be stale.

Three decorators, by who calls the function:

| decorator | called from | compiled | cached on disk |
|---|---|---|---|
| `kernel` | Python and compiled code | once, on the first call | yes |
| `jit` | Python and compiled code | once per set of argument types | yes |
| `inline` | compiled code only | into each caller | with its callers |

A `kernel` is entered through a pointer in memory, so its callers neither contain nor recompile it, and a cached caller
works before its kernels are loaded: the pointer leads to a loader first. `intrinsic` defines an operation by its LLVM
IR.
"""

import ctypes
import hashlib
import inspect
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

KEPT_DIGESTS = 8
OPTIONS: dict[str, Any] = {"error_model": "numpy", "boundscheck": False, "fastmath": False}

if os.environ.get("NUMBA_CPU_NAME"):
    # Without this numba adds the features of the host to the named CPU, so that x86-64-v2 would have FMA.
    os.environ.setdefault("NUMBA_CPU_FEATURES", "")

import llvmlite.binding as llvm  # noqa: E402
import numba  # noqa: E402
import numba.extending  # noqa: E402
from llvmlite import ir  # noqa: E402
from numba.core import compiler, compiler_machinery, typed_passes, types, untyped_passes  # noqa: E402
from numba.core.typing.templates import infer_global, make_intrinsic_template  # noqa: E402

_numba: Any = numba
_llvm: Any = llvm
_types: Any = types
_ir: Any = ir
_compiler: Any = compiler
_machinery: Any = compiler_machinery
_typed: Any = typed_passes
_untyped: Any = untyped_passes

if os.environ.get("NUMBA_CPU_NAME") and _numba.config.CPU_FEATURES is None:
    _numba.config.CPU_FEATURES = os.environ["NUMBA_CPU_FEATURES"]


def cpu_name() -> str:
    """The CPU that code is compiled for."""
    return cast(str, _numba.config.CPU_NAME or _llvm.get_host_cpu_name())


def cpu_features() -> str:
    """The features added to `cpu_name`, in LLVM's form `+f16c,-avx512f`."""
    named = _numba.config.CPU_FEATURES
    return cast(str, _llvm.get_host_cpu_features().flatten() if named is None else named)


def has_feature(feature: str, *levels: str) -> bool:
    """Whether compiled code may use `feature`, which the generic CPUs `levels` (such as `x86-64-v3`) imply."""
    return f"+{feature}" in cpu_features().split(",") or cpu_name() in levels


HAS_F16C = has_feature("f16c", "x86-64-v3", "x86-64-v4")
HAS_FMA = has_feature("fma", "x86-64-v3", "x86-64-v4")
HAS_AVX512 = has_feature("avx512f", "x86-64-v4")


def _digest() -> str:
    """Of all that compiled code depends on: the sources of the runtime, numba, the CPU."""
    root = Path(__file__).parent
    digest = hashlib.sha256(f"{_numba.__version__} {sys.version} {cpu_name()} {cpu_features()}".encode())
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _prune(root: Path, keep: Path) -> None:
    """Removes all but the most recently used digests."""
    others = sorted((p for p in root.iterdir() if p.is_dir() and p != keep), key=lambda p: p.stat().st_mtime)
    for old in others[: max(0, len(others) - KEPT_DIGESTS + 1)]:
        shutil.rmtree(old, ignore_errors=True)


def _make_cache() -> Path:
    root = Path(os.environ.get("STEPWELL_CACHE") or Path.home() / ".cache" / "stepwell") / "jit"
    cache = root / _digest()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        os.utime(cache)
        _prune(root, cache)
    except OSError:  # a read-only home: numba falls back to compiling each time
        pass
    return cache


CACHE = _make_cache()


@contextmanager
def _cached_here() -> Generator[None]:
    """Functions decorated inside use `CACHE`; functions of other packages keep their own place."""
    before = _numba.config.CACHE_DIR
    _numba.config.CACHE_DIR = str(CACHE)
    try:
        yield
    finally:
        _numba.config.CACHE_DIR = before


class _LeanCompiler(_compiler.CompilerBase):
    """numba's pipeline without the passes for what our kernels do not use (closures, object mode, parallel loops,
    array expressions): half the time of the front end."""

    def define_pipelines(self) -> list[Any]:
        """The passes in order."""
        manager = _machinery.PassManager("stepwell")
        for step in (
            _untyped.TranslateByteCode,
            _untyped.FixupArgs,
            _untyped.IRProcessing,
            _untyped.ReconstructSSA,
            _typed.NopythonTypeInference,
            _typed.PreLowerStripPhis,
            _typed.IRLegalization,
            _typed.AnnotateTypes,
            _typed.NativeLowering,
            _typed.NoPythonBackend,
        ):
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


Listener = Callable[[str, float | None], None]
_listeners: list[Listener] = []


def on_compile(listener: Listener) -> None:
    """Calls `listener(name, None)` when the first-ever compilation of a kernel starts and `listener(name, seconds)`
    when it ends; loading from the cache is silent."""
    _listeners.append(listener)


@contextmanager
def _announced(name: str, function: Callable[..., Any]) -> Generator[None]:
    module = Path(inspect.getfile(function)).stem
    if any(CACHE.glob(f"*/{module}.{function.__qualname__}-*.nbi")):
        yield
        return
    start = time.perf_counter()
    for listener in _listeners:
        listener(name, None)
    yield
    for listener in _listeners:
        listener(name, time.perf_counter() - start)


def jit(function: F) -> F:
    """Compiles once per set of argument types; callable from Python and from compiled code."""
    with _cached_here():
        return cast(F, _numba.njit(cache=True, nogil=True, **OPTIONS)(function))


def inline(function: F) -> F:
    """A function that exists only inside its callers: they contain it, and are cached with it."""
    return cast(
        F,
        _numba.njit(
            forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_LeanCompiler, **OPTIONS
        )(function),
    )


def intrinsic(definition: Callable[..., tuple[Any, Callable[..., Any]]]) -> Any:
    """An operation of compiled code given by its LLVM IR; `definition` is as in `numba.extending.intrinsic`."""
    return cast(Any, numba.extending).intrinsic(definition)


_NUMBA_TYPES = {int: _types.int64, float: _types.float32, None: _types.void}
_C_TYPES: dict[Any, Any] = {int: ctypes.c_int64, float: ctypes.c_float, None: None}


class Kernel(Generic[P, R]):
    """A compiled function with the C signature that its annotations give (`int` is 64 bits, `float` is f32).

    `name` is the module and the function; `load` compiles it, or takes it from the cache."""

    def __init__(self, function: Callable[P, R]) -> None:
        hints = inspect.get_annotations(function)
        result = hints.pop("return")
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self.__doc__ = function.__doc__
        self._function = function
        self._signature = _NUMBA_TYPES[result](*(_NUMBA_TYPES[hint] for hint in hints.values()))
        self._prototype = ctypes.CFUNCTYPE(_C_TYPES[result], *(_C_TYPES[hint] for hint in hints.values()))
        self._entry: Any = None
        self._compiled: Any = None
        self._loader = self._prototype(lambda *args: cast(Any, self.load())(*args))
        self._cell = ctypes.c_void_p(ctypes.cast(self._loader, ctypes.c_void_p).value)
        symbol = f"stepwell.kernel.{function.__module__}.{function.__qualname__}"
        _llvm.add_symbol(symbol, ctypes.addressof(self._cell))
        _register_call(self, symbol, self._signature, list(hints))

    def load(self) -> Callable[P, R]:
        """The entry point, after which compiled callers reach it directly."""
        if self._entry is None:
            with _cached_here():
                build = _numba.cfunc(self._signature, cache=True, pipeline_class=_LeanCompiler, **OPTIONS)
                with _announced(self.name, self._function):
                    self._compiled = build(self._function)
            self._cell.value = self._compiled.address
            self._entry = self._prototype(self._compiled.address)
        return cast(Callable[P, R], self._entry)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """From Python, by position. In compiled code the same call is a jump through the pointer."""
        return (self._entry or self.load())(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Makes a `Kernel`. The parameters are annotated with `int` and `float`, and the result may be None."""
    return Kernel(function)


def _register_call(handle: Kernel[..., Any], symbol: str, signature: Any, parameters: list[str]) -> None:
    """Teaches numba that calling `handle` is an indirect call through the pointer stored at `symbol`."""

    def call(context: Any, builder: Any, _: Any, args: Any) -> Any:
        result = context.get_value_type(signature.return_type)
        result = _ir.VoidType() if signature.return_type == _types.void else result
        function_type = _ir.FunctionType(result, [context.get_value_type(t) for t in signature.args])
        cell = builder.module.globals.get(symbol)
        if cell is None:
            cell = _ir.GlobalVariable(builder.module, function_type.as_pointer(), symbol)
        value = builder.call(builder.load(cell), args)
        return context.get_dummy_value() if signature.return_type == _types.void else value

    def definition(*_: Any) -> Any:
        return signature, call

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [inspect.Parameter(name, kind) for name in ("typing_context", *parameters)]
    definition.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    template = cast(Any, make_intrinsic_template)(handle, definition, symbol)
    cast(Any, infer_global)(handle, _types.Function(template))
