"""The device: memory, streams in virtual time, models; and that none of it needs a compiler."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from toy_artifact import ADD, N, toy_artifact, toy_input, toy_result

import stepwell
from stepwell.runtime import emulator
from stepwell.runtime.artifact import ArtifactError, load
from stepwell.runtime.border import InputError, from_device, to_device
from stepwell.runtime.device import Device, run
from stepwell.runtime.faults import DeviceFault
from stepwell.runtime.model import Model
from stepwell.runtime.numerics.dtype import DType
from stepwell.runtime.plan import Tensor
from stepwell.runtime.pool import OutOfMemory, Pool
from stepwell.runtime.stream import StreamError

pytestmark = pytest.mark.xdist_group("device")


@pytest.fixture
def device() -> Device:
    return Device("tiny")


@pytest.fixture
def model(device: Device) -> Model:
    return device.load(toy_artifact())


# models


def test_a_model_computes(model: Model) -> None:
    x = toy_input()
    assert np.array_equal(model.run({"x": x})["z"], toy_result(x))
    assert np.array_equal(model.run({"x": -x})["z"], toy_result(-x))
    assert model.sticky() == []


def test_a_loaded_file_computes_the_same(tmp_path: Path) -> None:
    artifact = load(toy_artifact().save(tmp_path / "toy.stw"))
    x = toy_input(1)
    assert np.array_equal(run(artifact, {"x": x})["z"], toy_result(x))
    assert artifact.model is artifact.model


@pytest.mark.parametrize("seed", [None, 1])
def test_an_interrupted_run_leaves_nothing_behind(
    device: Device, model: Model, monkeypatch: pytest.MonkeyPatch, seed: int | None
) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    x = toy_input(3)
    with monkeypatch.context() as patch:
        patch.setattr(emulator, "run_in_order" if seed is None else "run_queues", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.run({"x": x}, seed=seed)
    assert device.default_stream.pending == 0
    assert np.array_equal(model.run({"x": x}, seed=seed)["z"], toy_result(x))


@pytest.mark.parametrize("target", ["tiny", "edge"])
def test_every_interleaving_gives_the_same_bits(target: str) -> None:
    x = toy_input(2)
    model = Device(target).load(toy_artifact(target))
    for seed in range(5):
        assert np.array_equal(model.run({"x": x}, seed=seed)["z"], toy_result(x))


def test_another_target_is_refused(device: Device) -> None:
    with pytest.raises(ArtifactError, match=r"target: is tiny \(.*\) \(found edge \(cores 2"):
        device.load(toy_artifact("edge"))


def test_all_problems_of_the_inputs_are_told_at_once(model: Model) -> None:
    with pytest.raises(InputError) as caught:
        model.run({"x": np.zeros((1, N)), "q": np.zeros(3)})
    assert [str(problem) for problem in caught.value.problems] == [
        "x: is float32[1, 64] (found float64[1, 64]); convert it with astype('float32')",
        "q: is an input of the model (found q, but it has x); rename the array",
    ]
    with pytest.raises(InputError, match=r"^x: is float32\[1, 64\] \(found nothing\); give an array"):
        model.run({})
    with pytest.raises(InputError, match=r"x: is float32\[1, 64\] \(found float32\[64\]\); reshape"):
        model.run({"x": np.zeros(N, np.float32)})


def test_overflows_are_attributed_to_their_nodes(model: Model) -> None:
    x = np.zeros((1, N), np.float32)
    x[0, :3] = 40000, 40000, 65504  # y fits, z = 2y does not
    outputs = model.run({"x": x})
    assert np.isinf(outputs["z"][0, :3]).all()
    (entry,) = model.sticky()
    assert (entry.nodes, entry.kernel, entry.overflow, entry.invalid) == (("Add_1",), "add", 3, 0)


def test_the_profile_says_where_the_time_goes(model: Model) -> None:
    profile = model.profile()
    assert [launch.nodes for launch in profile.launches] == [("Add_0",), ("Add_1",)]
    assert sum(profile.by_node().values()) == pytest.approx(profile.cycles)
    assert model.time() == pytest.approx(profile.cycles / 500e6)
    assert profile.cube_utilisation == 0
    assert 0 < profile.port_utilisation < 1
    assert model.profile() is profile


def test_progress_is_told(model: Model) -> None:
    seen: list[tuple[int, int]] = []
    model.run({"x": toy_input()}, on_launch=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


# faults


def test_a_fault_surfaces_at_the_next_synchronise_with_the_line_that_queued_it(device: Device) -> None:
    broken = ADD.replace("store dst=r2", "store dst=r2 + 1099511627776")
    model = device.load(toy_artifact(text=broken))
    stream = device.stream()
    outputs = model.enqueue(stream, {"x": toy_input()})  # the line that is named
    with pytest.raises(StreamError) as caught:
        stream.synchronise()
    error = caught.value
    assert isinstance(error.error, DeviceFault)
    assert isinstance(error.__cause__, DeviceFault)
    assert "model toy: out-of-bounds" in str(error)
    assert "the line that is named" in error.stack
    assert not outputs["z"].any()
    assert stream.pending == 0
    stream.synchronise()  # raised once


def test_a_deadlock_names_its_node(device: Device) -> None:
    lines = [line for line in ADD.splitlines() if not line.startswith("set src=vector")]
    model = device.load(toy_artifact(text="\n".join(lines)))
    with pytest.raises(StreamError, match="deadlock"):
        model.run({"x": toy_input()})


# streams


def test_copies_are_stale_until_synchronised(device: Device) -> None:
    stream, buffer = device.stream(), device.allocate(16)
    device.memory.write(buffer.address, np.full(4, 7, np.float32))
    data, back = np.arange(4, dtype=np.float32), np.full(4, -1, np.float32)
    stream.copy_in(buffer, data)
    stream.copy_out(back, buffer)
    data[:] = 9  # pageable memory was copied aside
    assert buffer.peek("f32", [4]).tolist() == [7] * 4
    assert back.tolist() == [-1] * 4
    stream.synchronise()
    assert buffer.peek(DType.F32, [4]).tolist() == [0, 1, 2, 3]
    assert back.tolist() == [0, 1, 2, 3]


def test_pinned_memory_is_read_when_the_copy_runs(device: Device) -> None:
    stream, buffer = device.stream(), device.allocate(16)
    data = np.arange(4, dtype=np.float32)
    stream.copy_in(buffer, data, pinned=True)
    data[:] = 9
    stream.synchronise()
    assert buffer.peek("f32", [4]).tolist() == [9] * 4


def test_events_order_streams(device: Device) -> None:
    first, second = device.stream(), device.stream()
    buffer = device.allocate(4)
    back = np.zeros(1, np.int32)
    first.copy_in(buffer, np.array([5], np.int32))
    written = first.record()
    second.wait(written)
    second.copy_out(back, buffer)
    assert not written.happened
    second.synchronise()  # runs the first stream as far as the event
    assert back.tolist() == [5]
    assert written.happened


def test_virtual_time_overlaps_copies_and_counts_the_link(device: Device) -> None:
    target = device.target
    one = target.host_latency + 4000 / target.host_bytes
    first, second = device.stream(), device.stream()
    buffer, data = device.allocate(4000), np.zeros(1000, np.float32)
    first.copy_in(buffer, data)
    second.copy_out(data, buffer)  # the other direction: at the same time
    device.synchronise()
    assert (first.time, second.time) == (one, one)
    second.copy_in(buffer, data)  # the same direction as the first: behind it
    done = second.record()
    device.synchronise()
    assert done.time == 2 * one
    assert device.seconds == pytest.approx(2 * one / 500e6)


def test_a_launch_takes_its_cycles(device: Device) -> None:
    model = device.load(toy_artifact())
    model.run({"x": toy_input()})
    copies = 2 * (device.target.host_latency + 128 / device.target.host_bytes)
    assert device.default_stream.time == model.profile().cycles + copies


def test_an_event_that_cannot_happen_says_so(device: Device) -> None:
    first, second = device.stream(), device.stream()
    first.add("a step", "compute", lambda: [].pop(), lambda: 0.0)
    event = first.record()
    second.wait(event)
    with pytest.raises(ValueError, match="has not happened"):
        _ = event.time
    with pytest.raises(StreamError, match="wait for an event: pop from empty list"):
        second.synchronise()
    with pytest.raises(ValueError, match="will not happen"):
        event.synchronise()


# memory


def test_copies_are_checked_against_their_buffer(device: Device) -> None:
    with device.allocate(8) as buffer, pytest.raises(ValueError, match="bytes 0 to 16; the buffer at 64 has 8"):
        device.stream().copy_in(buffer, np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="has been freed"):
        device.stream().copy_in(buffer, np.zeros(1, np.float32))


def test_the_pool_takes_the_best_fit_and_joins_neighbours() -> None:
    pool = Pool(1024 + 64)
    a, b, c, d = (pool.allocate(n) for n in (256, 64, 128, 64))
    assert (a, b, c, d) == (64, 320, 384, 512)
    pool.free(a)
    pool.free(c)
    assert pool.allocate(100) == c  # the smaller of two that fit
    pool.free(c)
    pool.free(b)
    assert pool.allocate(448) == a  # three neighbours became one
    assert pool.statistics().in_use == 512
    assert pool.statistics().peak == 512
    assert pool.statistics().allocations == 6


def test_the_pool_says_what_is_left() -> None:
    pool = Pool(1024)
    blocks = [pool.allocate(64) for _ in range(15)]
    for block in blocks[::2]:
        pool.free(block)
    with pytest.raises(OutOfMemory, match=r"has 200 bytes free in one piece \(found 64 in one, 512 in all of 960\)"):
        pool.allocate(200)
    assert pool.statistics().fragmentation == pytest.approx(1 - 64 / 512)
    with pytest.raises(ValueError, match=f"address {blocks[0]}: no block begins there"):
        pool.free(blocks[0])


def test_the_pool_never_overlaps_and_always_gets_everything_back() -> None:
    random = np.random.default_rng(3)
    pool = Pool(1 << 16)
    live: dict[int, int] = {}
    for _ in range(2000):
        if live and random.random() < 0.5:
            address = int(random.choice(list(live)))
            pool.free(address)
            del live[address]
        else:
            size = int(random.integers(1, 4000))
            try:
                live[pool.allocate(size)] = size
            except OutOfMemory:
                continue
        ends = sorted(live.items())
        assert all(a + size <= b for (a, size), (b, _) in pairwise(ends))
        assert all(address % 64 == 0 for address in live)
    for address in live:
        pool.free(address)
    assert pool.statistics().largest_free == pool.statistics().capacity


# the border


def test_borders_round_as_the_numerics_say() -> None:
    values = np.array([1.0, 65519.9, 65520.0, -np.inf, np.nan, 1e-8], np.float32)
    values.view(np.uint32)[4] |= 0x1234  # a NaN with a payload
    assert to_device(values, DType.F16).view(np.uint16).tolist() == [0x3C00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0]
    assert to_device(values, DType.BF16).view(np.uint16)[[0, 4]].tolist() == [0x3F80, 0x7FC0]
    assert np.array_equal(to_device(values, DType.F32).view(np.uint32), values.view(np.uint32))
    assert to_device(np.array([3, -1]), DType.I32).dtype == np.int32


def test_a_truth_value_without_axes_is_an_array() -> None:
    found = from_device(np.array(True), Tensor("x", "b8", (), "output", 0, "bool"))
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype, bool(found)) == ((), np.bool_, True)


def test_integers_beyond_32_bits_are_refused(device: Device) -> None:
    artifact = toy_artifact()
    ids = Tensor("x", "i32", (2,), "input", 0, "int64")
    from stepwell.runtime import border

    border.check({"x": np.array([1, -5])}, [ids])
    with pytest.raises(InputError, match=r"x: integers fit 32 bits.* \(found 0 to 4294967296\)"):
        border.check({"x": np.array([0, 1 << 32])}, [ids])
    assert from_device(np.array([7, 8], np.int32), ids).dtype == np.int64
    assert artifact.tensors[0].name == "x"


# without a compiler

BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        folders = tuple(f"stepwell.{folder}" for folder in ("backend", "dialects", "driver", "frontend", "passes"))
        if name.split(".")[0] in ("xdsl", "onnx", "onnxruntime") or name.startswith(folders):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
import numpy as np
import stepwell
artifact = stepwell.load(sys.argv[1], "tiny")
result = stepwell.run(artifact, {"x": np.load(sys.argv[2])})
np.save(sys.argv[3], result["z"])
print(artifact.model.profile().cycles)
for name in ("compile", "lower"):
    try:
        getattr(stepwell, name)
        raise AssertionError(name)
    except ImportError:
        pass
"""


def test_an_artifact_runs_where_no_compiler_can_be_imported(tmp_path: Path) -> None:
    artifact, x = toy_artifact().save(tmp_path / "toy.stw"), tmp_path / "x.npy"
    np.save(x, toy_input(4))
    command = [sys.executable, "-c", BLOCKED, str(artifact), str(x), str(tmp_path / "z.npy")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "z.npy"), toy_result(toy_input(4)))
    assert float(done.stdout) > 0


def test_the_face_runs_artifacts() -> None:
    x = toy_input(5)
    assert np.array_equal(stepwell.run(toy_artifact(), {"x": x})["z"], toy_result(x))


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with np.errstate(all="raise"):
        yield
