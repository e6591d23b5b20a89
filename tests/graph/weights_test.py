"""The weight store: handles by content, safetensors on disk, mapped when loaded."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray

from stepwell.dialects.weights import WeightError, WeightStore, digest, map_file

ARRAYS: list[NDArray[Any]] = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(5, dtype=np.float16),
    np.arange(7).astype(ml_dtypes.bfloat16),
    np.array([True, False, True]),
    np.arange(3, dtype=np.int8),
    np.arange(3, dtype=np.int32),
    np.float32(1.5) * np.ones(()),
]


def test_a_handle_names_type_shape_and_content() -> None:
    x = ARRAYS[0]
    assert digest(x) == digest(x.copy())
    others = [x.reshape(3, 2), x.view(np.int32), x + 1, x.astype(np.float16)]
    assert len({digest(y) for y in [x, *others]}) == 5
    assert set(digest(x)) <= set("0123456789abcdef")
    assert len(digest(x)) == 32
    assert digest(x.T) == digest(np.ascontiguousarray(x.T))


def test_equal_arrays_are_kept_once_and_not_copied() -> None:
    store, x = WeightStore(), np.ones(100, np.float32)
    assert store.add(x) == store.add(x.copy())
    assert len(store) == 1
    assert store.nbytes == 400
    assert np.shares_memory(store.get(store.add(x)), x)
    with pytest.raises(ValueError, match="read-only"):
        store.get(store.add(x))[0] = 2


def test_a_store_on_disk_is_safetensors_and_mapped(tmp_path: Path) -> None:
    store, path = WeightStore(), tmp_path / "weights.safetensors"
    handles = [store.add(np.asarray(array)) for array in ARRAYS]
    store.save(path)
    loaded = WeightStore.load(path)
    assert sorted(loaded) == sorted(handles)
    for handle, array in zip(handles, ARRAYS, strict=True):
        found = loaded.get(handle)
        assert found.dtype == array.dtype
        assert found.flags.aligned
        assert not found.flags.owndata
        np.testing.assert_array_equal(found, array)
        assert digest(found) == handle
    others = safetensors.numpy.load_file(path)
    np.testing.assert_array_equal(others[handles[0]], ARRAYS[0])


def test_a_file_is_mapped_once_and_anew_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes(b"before")
    first, second = map_file(path), map_file(path)
    assert first.obj is second.obj
    path.write_bytes(b"later on")
    assert bytes(map_file(path)) == b"later on"


def test_an_empty_store_is_kept_too(tmp_path: Path) -> None:
    WeightStore().save(tmp_path / "none")
    assert len(WeightStore.load(tmp_path / "none")) == 0


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(WeightError, match=r"weight abc: an array has this handle \(found none among 0\)"):
        WeightStore().get("abc")
    with pytest.raises(WeightError, match="found complex128"):
        WeightStore().add(np.ones(3, np.complex128))
    (tmp_path / "text").write_text("no tensors, but long enough to have a header of some kind")
    with pytest.raises(WeightError, match="is a safetensors file"):
        WeightStore.load(tmp_path / "text")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(WeightError, match="is a safetensors file"):
        WeightStore.load(tmp_path / "empty")
