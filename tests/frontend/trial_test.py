"""onnxruntime and ONNX's inference on trial: a model that crashes them ends no compilation, and the child that they
crash in is a tidy one."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import stepwell
from stepwell.dialects.graph.op import InferError
from stepwell.frontend import trial
from stepwell.frontend.onnx import ImportProblems
from stepwell.frontend.trial import TRIAL, CrashError, SlowError, Trial
from stepwell.runtime.cpu import HostError, compiled

pytestmark = pytest.mark.skipif(not trial.FORKS, reason="processes are not forked here")


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    """A trial of this test's own, whose child stays however much this process holds."""
    monkeypatch.setattr(trial, "MOST_HELD", 1 << 60)
    made = Trial()
    yield made
    made.close()


def one(operator: str = "Relu", kind: int = TensorProto.FLOAT, inputs: str = "x", **attributes: Any) -> bytes:
    """A model of one node."""
    infos = [helper.make_tensor_value_info(name, kind, [2, 3]) for name in inputs]
    node = helper.make_node(operator, list(inputs), ["y"], **attributes)
    graph = helper.make_graph([node], "one", infos, [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def gather_out_of_its_batch() -> onnx.ModelProto:
    """A file that ends the process which asks onnx, or onnxruntime, for its shapes."""
    model = onnx.load_from_string(one("GatherND", inputs="xi", batch_dims=-100))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((1, 1), np.int64), "i"))
    del model.graph.input[1]
    return model


def crash(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def children() -> list[str]:
    """This process's children, by pid and state."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = path.read_text().split(" (", 1)
        except OSError:
            continue
        state, parent, *_ = rest.rpartition(") ")[2].split()
        if int(parent) == os.getpid():
            found.append(f"{pid} {state}")
    return found


# what is asked --------------------------------------------------------------------------------------------------------
def test_the_answers_are_those_of_this_process(own: Trial) -> None:
    text, x = one(), np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    session = compiled(text).session
    assert own.outputs(text) == [(o.name, o.type, o.shape) for o in session.get_outputs()]
    (found,) = own.run(text, [x])
    assert (found == compiled(text).run([x])[0]).all()
    assert found.flags.writeable
    model = onnx.load_from_string(text)
    assert own.infer(model) == onnx.shape_inference.infer_shapes(model)


def test_a_large_model_and_large_arrays_arrive_whole(own: Trial) -> None:
    weight = np.random.default_rng(0).standard_normal((1500, 700)).astype(np.float32)
    model = onnx.load_from_string(one("Add", inputs="xw"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    del model.graph.input[1]
    model.graph.input[0].type.tensor_type.CopyFrom(
        helper.make_tensor_type_proto(TensorProto.FLOAT, weight.shape).tensor_type
    )
    (found,) = own.run(model.SerializeToString(), [weight])
    assert (found == weight + weight).all()


def test_texts_are_values_as_well(own: Trial) -> None:
    (found,) = own.run(one("Identity", TensorProto.STRING), [np.array([["a", "b", "c"], ["d", "", "ü"]], object)])
    assert found.tolist() == [["a", "b", "c"], ["d", "", "ü"]]


def test_what_onnxruntime_refuses_is_refused_with_its_words(own: Trial) -> None:
    with pytest.raises(HostError) as caught:
        own.outputs(one("Frobnicate"))
    with pytest.raises(HostError) as here:
        compiled(one("Frobnicate"))
    assert str(caught.value) == str(here.value)
    assert not isinstance(caught.value, CrashError)
    assert own.outputs(one())


# crashes --------------------------------------------------------------------------------------------------------------
def test_a_crash_of_onnxruntime_is_an_error(own: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = trial.compiled
    monkeypatch.setattr(trial, "compiled", lambda text: crash() if b"Sigmoid" in text else healthy(text))
    for _ in range(2):
        with pytest.raises(CrashError, match="onnxruntime crashed on it: signal 11"):
            own.outputs(one("Sigmoid"))
        assert own.outputs(one())


def test_a_model_that_crashes_the_inference_is_refused(own: Trial) -> None:
    for _ in range(2):
        with pytest.raises(InferError, match="crashed on it: signal 11"):
            own.infer(gather_out_of_its_batch())
        assert own.outputs(one())


def test_a_child_that_dies_between_questions_is_none_of_the_next_model_s_business(own: Trial) -> None:
    assert own.outputs(one())
    for number in (signal.SIGKILL, signal.SIGTERM):
        assert own.child is not None
        os.kill(own.child.pid, number)
        assert own.outputs(one())


@pytest.mark.parametrize("known", [False, True])
def test_a_file_that_crashes_onnx_ends_no_compilation(known: bool) -> None:
    model = gather_out_of_its_batch()
    if known:  # it is evaluated by the importer, and large enough that its size is asked for
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((300, 40), np.float32), "x"))
        del model.graph.input[:]
    for host in (False, True):
        with pytest.raises(ImportProblems, match="GatherND"):
            stepwell.compile(model, target="tiny", host=host)


# patience -------------------------------------------------------------------------------------------------------------
def spin(*_: Any) -> Any:
    while True:
        pass


def test_a_question_has_so_much_processor_time(own: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = trial.compiled
    monkeypatch.setattr(trial, "MOST_SECONDS", 1)
    monkeypatch.setattr(trial, "compiled", lambda text: spin() if b"Sigmoid" in text else healthy(text))
    assert own.outputs(one())
    with pytest.raises(SlowError, match="more time"):
        own.outputs(one("Sigmoid"))
    assert own.outputs(one())


def test_questions_together_may_take_longer(own: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(text: bytes) -> Any:
        start = time.process_time()
        while time.process_time() < start + 0.4:
            pass
        return healthy(text)

    healthy = trial.compiled
    monkeypatch.setattr(trial, "MOST_SECONDS", 1)
    monkeypatch.setattr(trial, "compiled", slow)
    for _ in range(5):
        assert own.outputs(one())
    assert own.child is not None
    assert not own.child.is_new


def test_a_constant_that_takes_long_is_left_to_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise SlowError("it takes long")

    x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4)
    model = onnx.load_from_string(one("MaxPool", inputs="x", kernel_shape=[2, 2]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(x, "x"))
    del model.graph.input[:]
    wanted = compiled(model.SerializeToString()).run([])[0]
    monkeypatch.setattr(TRIAL, "run", refuse)
    found = stepwell.run(stepwell.compile(model, target="tiny", precision="fp32"), {})
    assert np.array_equal(found["y"], wanted)


# a tidy child ---------------------------------------------------------------------------------------------------------
def test_nothing_is_left(own: Trial) -> None:
    files, before = len(list(Path("/proc/self/fd").iterdir())), children()
    for _ in range(3):
        assert own.outputs(one())
        with pytest.raises(InferError):
            own.infer(gather_out_of_its_batch())
        assert own.outputs(one())
        assert len(children()) == len(before) + 1
        own.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    assert children() == before


def test_the_child_keeps_no_file_of_its_parent(own: Trial, tmp_path: Path) -> None:
    with (tmp_path / "open").open("w"):
        own.outputs(one())
        assert own.child is not None
        held = [str(path.readlink()) for path in Path(f"/proc/{own.child.pid}/fd").iterdir()]
    assert sorted(name.partition(":")[0] for name in held) == ["/dev/null"] * 3 + ["socket"]


def test_threads_ask_one_after_the_other(own: Trial) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: own.outputs(one()), range(40)))
    assert all(answer == found[0] for answer in found)


def test_an_interrupt_in_the_middle_of_a_question_leaves_no_answer_behind(own: Trial) -> None:
    own.outputs(one())
    assert own.child is not None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # work in the background is told to ignore it
    os.kill(own.child.pid, signal.SIGSTOP)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            own.outputs(one("Sigmoid"))
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert own.outputs(one()) == own.outputs(one())


def test_a_process_that_is_forked_meanwhile_asks_a_child_of_its_own() -> None:
    assert TRIAL.outputs(one())
    pid = os.fork()
    if pid == 0:
        fine = False
        try:
            fine = TRIAL.child is None and bool(TRIAL.outputs(one()))
            TRIAL.close()
        finally:
            os._exit(0 if fine else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert TRIAL.outputs(one())


def test_the_child_ends_with_its_parent() -> None:
    program = (
        "import os, sys\n"
        "from stepwell.frontend.trial import TRIAL, _smallest\n"
        "TRIAL.outputs(_smallest())\n"
        "print(TRIAL.child.pid, flush=True)\n"
        "sys.argv[1] == 'kill' and os.kill(os.getpid(), 9)\n"
    )
    for how in ("exit", "kill"):
        run = subprocess.run([sys.executable, "-c", program, how], capture_output=True, text=True, check=False)
        assert run.stderr == ""
        stat = Path(f"/proc/{run.stdout.strip()}/stat")
        for _ in range(100):
            if not stat.exists() or stat.read_text().rpartition(") ")[2][0] == "Z":  # reaped by whom it was left to
                break
            time.sleep(0.05)
        else:
            pytest.fail(f"the child outlives its parent ({how})")


def test_without_children_the_questions_are_answered_here(own: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    assert own.outputs(one()) == [("y", "tensor(float)", [2, 3])]
    assert own.child is None


def test_a_child_that_holds_much_ends_with_the_import(own: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    with own.open():
        own.outputs(one())
    assert own.child is not None
    own.close()
    monkeypatch.setattr(trial, "MOST_HELD", 0)
    with own.open():
        own.outputs(one())
        assert own.child is not None
    assert own.child is None
