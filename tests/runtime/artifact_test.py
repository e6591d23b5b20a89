"""The .stw file: what is written is what is read, and nothing else is accepted."""

import json
import os
import random
import zipfile
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_safetensors
from toy_artifact import toy_artifact

import stepwell
from stepwell.runtime import container
from stepwell.runtime.artifact import FORMAT_VERSION, Artifact, ArtifactError, Launch, TensorRef, Versions, load
from stepwell.runtime.container import read, write
from stepwell.runtime.isa import ISA_VERSION
from stepwell.runtime.plan import Kernel
from stepwell.runtime.target import Target


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return toy_artifact().save(tmp_path / "toy.stw")


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None], honest: bool = True) -> Path:
    """The file with a changed manifest or members, in sound form; `honest`: with digests that fit."""
    file = read(path)
    members = {name: bytes(file.content(name)) for name in file.entries}
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest, members)
    if honest:
        manifest["members"] = {n: {"size": len(b), "sha256": sha256(b).hexdigest()} for n, b in members.items()}
    head = json.dumps(manifest).encode()
    write(path, [("manifest.json", [head]), *((name, [data]) for name, data in members.items())])
    return path


def refused(file: Path | bytes, target: str | None = None) -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        load(file, target)
    return caught.value


def test_what_is_loaded_is_what_was_saved(saved: Path) -> None:
    made, found = toy_artifact(), load(saved, "tiny")
    for name in ("target", "kernels", "tensors", "plans", "metadata", "cores", "versions", "debug"):
        assert getattr(found, name) == getattr(made, name), name
    assert made.weights.keys() == found.weights.keys()
    assert np.array_equal(made.weights["w"], found.weights["w"])


def test_equal_artifacts_are_equal_bytes(saved: Path, tmp_path: Path) -> None:
    assert toy_artifact().save(tmp_path / "again.stw").read_bytes() == saved.read_bytes()
    assert load(saved).save(tmp_path / "third.stw").read_bytes() == saved.read_bytes()


def test_any_unzip_reads_it_and_members_are_aligned(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", "program.bin", "weights.safetensors"]
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert json.loads(archive.read("manifest.json"))["target"]["name"] == "tiny"
        assert np.array_equal(load_safetensors(archive.read("weights.safetensors"))["w"], toy_artifact().weights["w"])
    assert all(entry.start % 64 == 0 for entry in read(saved).entries.values())


def test_weights_are_mapped_not_read(saved: Path) -> None:
    weight = load(saved).weights["w"]
    assert not weight.flags.owndata
    assert not weight.flags.writeable
    base: Any = weight
    while isinstance(base, np.ndarray):
        base = base.base
    assert type(base.obj).__name__ == "mmap"


def test_debug_ir_goes_along(tmp_path: Path) -> None:
    made = replace(toy_artifact(), debug={"graph": "builtin.module {}"})
    assert load(made.save(tmp_path / "a.stw")).debug == {"graph": "builtin.module {}"}


def test_a_failed_save_leaves_nothing_behind(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        toy_artifact("edge").save(saved)
    assert [file.name for file in saved.parent.iterdir()] == ["toy.stw"]
    assert saved.read_bytes() == before


def test_a_truncated_file_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in [*range(200), *range(200, len(whole), 7), len(whole) - 1]:
        error = refused(whole[:length])
        assert error.remedy, length
        assert error.part in ("file", "end of the archive", "directory"), (length, str(error))


def test_more_bytes_are_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"\0")
    assert refused(saved).part == "end of the archive"
    saved.write_bytes(b"\0" + saved.read_bytes()[:-1])
    assert "is a ZIP archive" in str(refused(saved))


def test_every_flipped_bit_is_refused(saved: Path) -> None:
    """A thousand bits picked by a seed, and every bit of the end record."""
    whole = saved.read_bytes()
    picked = random.Random(7).sample(range(len(whole) * 8), 1000) + list(range(len(whole) * 8 - 1400, len(whole) * 8))
    for bit in picked:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        error = refused(bytes(damaged))
        assert error.part, (bit, str(error))


@pytest.mark.parametrize("content", [b"", b"PK", b"GGUF....", b"PK\x03\x04" + bytes(5000)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.stw").write_bytes(content)
    error = refused(tmp_path / "x.stw")
    assert error.part in ("file", "end of the archive")


def test_another_zip_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.stw", "w") as archive:
        archive.writestr("manifest.json", "{}" * 200)
    assert refused(tmp_path / "x.stw").part == "end of the archive"


def test_a_repacked_file_is_refused(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    assert "copy the file again, or compile the model again" in refused(saved).remedy


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    assert "No such file" in str(refused(tmp_path / "none.stw"))
    assert "Is a directory" in str(refused(tmp_path))


@pytest.mark.parametrize("member", ["program.bin", "weights.safetensors"])
def test_a_missing_member_is_named(saved: Path, member: str) -> None:
    def drop(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        del members[member]

    error = refused(rewritten(saved, drop, honest=False))
    assert (error.part, error.found) == (member, "no such member")


def test_a_member_of_other_bytes_is_named(saved: Path) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        members["weights.safetensors"] = members["weights.safetensors"][:-1] + b"!"

    error = refused(rewritten(saved, change, honest=False))
    assert error.part == "weights.safetensors"
    assert "SHA-256" in error.found


def test_an_unlisted_member_is_named(saved: Path) -> None:
    def add(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        members["extra"] = b"?"

    assert refused(rewritten(saved, add, honest=False)).part == "extra"


@pytest.mark.parametrize(("key", "part"), [("format", "format version"), ("isa", "ISA version")])
def test_another_version_is_refused_before_anything_else(saved: Path, key: str, part: str) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        manifest.clear()  # a later version may have quite another manifest
        manifest.update({"format": FORMAT_VERSION, "isa": ISA_VERSION, "compiler": "9.9", key: 99})

    error = refused(rewritten(saved, change, honest=False))
    assert error.part == part
    assert error.found == "99 (made by Stepwell 9.9)"
    assert error.expected == str(FORMAT_VERSION if key == "format" else ISA_VERSION)
    assert "compile the model again" in error.remedy


def test_a_kernel_that_does_not_decode_is_named(saved: Path) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        members["program.bin"] = b"\xff" + members["program.bin"][1:]

    error = refused(rewritten(saved, change))
    assert error.part == "kernel add"
    assert "row 0 at byte 0: opcode 255" in error.found


def test_another_target_is_refused_with_what_differs(saved: Path) -> None:
    error = refused(saved, "edge")
    assert error.part == "target"
    assert error.found.startswith("tiny (cores 1, clock_mhz 500.0")
    assert error.expected.startswith("edge (cores 2, clock_mhz 1000.0")
    assert error.remedy == "compile the model for edge, or run it on tiny"


def test_a_target_of_another_name_and_the_same_numbers_will_do(saved: Path) -> None:
    assert load(saved, replace(Target.load("tiny"), name="mine")).target.name == "tiny"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["kernels", 0, "slots"], "two", "kernels[0].slots: is an integer (found 'two')"),
        (["kernels", 0, "size"], 10**6, "is a part of program.bin (found bytes 0 to 1000000 of 1248)"),
        (["kernels"], {}, "manifest.json kernels: is a list (found {})"),
        (["plans", 0, "steps", 0, "launch"], 5, "plan 0 step 0: kernel 5; there are 1"),
        (["plans", 0, "steps", 0, "arguments"], [[9, 0]], "argument 0: tensor 9; there are 4"),
        (["plans", 0, "steps", 0, "arguments"], [[0, 1000]], "byte 1000 of x, which has 128"),
        (["plans", 0, "steps", 0, "nodes"], [[7]], "plans[0].steps[0].nodes[0][0]: is an index into 2 node names"),
        (["plans", 0, "steps", 0, "nodes"], [], "nodes for 0 slots; the kernel has 2"),
        (["plans", 0, "outputs"], [0], "plan 0: tensor 0 is no output"),
        (["plans"], [], "no plan; at least one was expected"),
        (["tensors", 3, "offset"], 0, "tensor w: begins at 0; the arena ends at 384"),
        (["tensors", 0, "offset"], 3, "tensor x: offset 3; a multiple of 64 was expected"),
        (["tensors", 0, "offset"], 6400, "tensor x: ends at 6528; the arena has 384 bytes"),
        (["tensors", 0, "dtype"], "f17", "tensor x: type f17; one of b8, bf16"),
        (["tensors", 0, "role"], "guest", "tensor x: role guest"),
        (["tensors", 0, "border"], "int64", "tensor x: border type int64 of f16"),
        (["tensors", 3, "shape"], [63], "tensor w: weights of float16[1, 64]; f16[63] was expected"),
        (["tensors", 3, "name"], "v", "tensor v: has no weights"),
        (["target", "cores"], 0, "cores is more than 0 (found 0)"),
        (["cores"], 9, "9 cores; tiny has 1"),
    ],
)  # fmt: skip
def test_tables_that_disagree_are_refused(saved: Path, path: list[Any], value: Any, message: str) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        at: Any = manifest
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    assert message in str(refused(rewritten(saved, change)))


REPEAT: dict[str, Any] = {"repeat": [], "step": 9, "going": 9, "next": 9, "count": -1, "condition": -1}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"if": 9, "then": [], "otherwise": []}, "plan 0 step 0: tensor 9; one value of b8 was expected"),
        ({"if": 0, "then": [], "otherwise": []}, "plan 0 step 0: tensor 0; one value of b8 was expected"),
        ({"if": 0, "then": [], "else": []}, "is the keys if, otherwise, then"),
        (REPEAT, "plan 0 step 0: tensor 9; one value of i32 was expected; plan 0 step 0: tensor 9; one value of b8"),
        (REPEAT | {"count": 0}, "tensor 0; one value of i32 was expected"),
        (REPEAT | {"repeat": [{"host": 0, "inputs": [], "outputs": []}]}, "plan 0 step 0 step 0: part 0 on the host"),
        (REPEAT | {"next": None}, "manifest.json plans[0].steps[0].next: is an integer (found None)"),
        ({"copy": 0, "to": 7, "row": -1}, "plan 0 step 0: tensors 0 and 7; there are 4"),
        ({"copy": 0, "to": 2, "row": 7}, "plan 0 step 0: tensor 7; one value of i32 was expected"),
        ({"copy": 0, "to": 1, "row": 1}, "plan 0 step 0: tensor 0 is no row of tensor 1"),
        ({"copy": 0, "to": 1, "row": -1}, "plan 0 step 0: tensor 1 has no place for tensor 0"),
    ],
)
def test_steps_that_decide_or_copy_are_checked(saved: Path, step: dict[str, Any], message: str) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        manifest["plans"][0]["steps"] = [step]
        manifest["tensors"][1]["shape"] = [32]

    assert message in str(refused(rewritten(saved, change)))


@pytest.mark.parametrize("depth", [65, 300, 20_000])
def test_steps_that_are_nested_without_end_are_refused(saved: Path, depth: int) -> None:
    content = {name: [bytes(read(saved).content(name))] for name in read(saved).entries}
    deep = '[{"otherwise": [], "if": 0, "then": ' * depth + "[]" + "}]" * depth
    (head,) = content["manifest.json"]
    manifest = json.loads(head)
    manifest["plans"][0]["steps"] = "here"
    content["manifest.json"] = [json.dumps(manifest).replace('"here"', deep).encode()]
    write(saved, list(content.items()))
    error = refused(saved)
    assert error.expected in ("steps in at most 64 others", "a JSON object")


def test_an_unsound_artifact_is_not_saved(tmp_path: Path) -> None:
    made = toy_artifact()
    step = Launch(0, (1, TensorRef(17)), ((), ()))
    wrong = replace(made, plans=(replace(made.plans[0], steps=(step,)),))
    with pytest.raises(ValueError, match="argument 1: tensor 17; there are 4"):
        wrong.save(tmp_path / "x.stw")
    assert not list(tmp_path.iterdir())


def test_on_chip_memory_is_checked(tmp_path: Path) -> None:
    made = toy_artifact()
    wide = replace(made, kernels=(Kernel("add", made.kernels[0].program, l1=1 << 30, slots=2),))
    with pytest.raises(ValueError, match="kernel add: 1073741824 bytes of L1"):
        wide.save(tmp_path / "x.stw")


def test_the_versions_are_ours() -> None:
    assert toy_artifact().versions == Versions(FORMAT_VERSION, ISA_VERSION, stepwell.__version__)


def test_sizes_beyond_32_bits_fit_the_form() -> None:
    entry = container.Entry("weights.safetensors", 5 << 32, 0, 3 << 32)
    assert entry.start % 64 == 0
    assert entry.local()[-(entry.start - entry.header) :] == entry.local()
    assert len(entry.central()) == 46 + len(entry.name) + 28


def test_memory_is_the_sum_of_its_parts() -> None:
    artifact: Artifact = toy_artifact()
    assert artifact.nbytes == 384 + 128
    assert artifact.bytes_of("weight") == 128
