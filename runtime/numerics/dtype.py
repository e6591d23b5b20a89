"""The types of values: their codes in instructions and files, their sizes, and numpy's name for each."""

from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt


class DType(IntEnum):
    """The code of a type. `I64` exists at the border only: index tensors of ONNX on their way to `I32`."""

    F16 = 0
    BF16 = 1
    F32 = 2
    I8 = 3
    U8 = 4
    I32 = 5
    B8 = 6
    I64 = 7

    @property
    def label(self) -> str:
        """The name in `docs/numerics.md` and in IR: `f16`."""
        return self.name.lower()

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return SIZES[self]

    @property
    def numpy(self) -> np.dtype[Any]:
        """The element type of an array that holds such values; bf16 is that of ml_dtypes."""
        return _NUMPY[self]

    @property
    def is_float(self) -> bool:
        """Whether operators on it compute in f32."""
        return self <= DType.F32

    @staticmethod
    def parse(label: str) -> "DType":
        """The type of a label, such as `f16`; ValueError for any other."""
        if label.upper() not in DType.__members__ or label != label.lower():
            raise ValueError(f"{label!r} is no type: one of {', '.join(t.label for t in DType)}")
        return DType[label.upper()]

    @staticmethod
    def of(array: npt.NDArray[Any] | np.dtype[Any]) -> "DType":
        """The type of the elements of an array; ValueError if there is none."""
        found = array if isinstance(array, np.dtype) else array.dtype
        if found not in _OF_NUMPY:
            raise ValueError(f"{found} has no device type: one of {', '.join(str(t) for t in _OF_NUMPY)}")
        return _OF_NUMPY[found]


SIZES: tuple[int, ...] = (2, 2, 4, 1, 1, 4, 1, 8)

_NUMPY: tuple[np.dtype[Any], ...] = tuple(
    np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.int8, np.uint8, np.int32, np.bool_, np.int64)
)

_OF_NUMPY: dict[np.dtype[Any], DType] = {numpy: DType(code) for code, numpy in enumerate(_NUMPY)}

# Plain integers, for compiled code.
F16, BF16, F32, I8, U8, I32, B8, I64 = (int(t) for t in DType)
