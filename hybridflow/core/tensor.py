"""Tensors: values over a device buffer, which is never written to.

Python's operators live in ``Operators``, which Variable shares.  They are the public functions themselves, which are
built on the classes of this module: ``array.operators`` puts them there.
"""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir.dtypes import is_complex, is_integer
from hybridflow.compiler.ir.types import Extent, TensorType, product
from hybridflow.core import devices, display, name_hints, pytree
from hybridflow.core.context import now
from hybridflow.core.shape import Shape
from hybridflow.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    TraceError,
    entered,
)
from hybridflow.runtime import uninterruptible

_STANDARDS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")  # versions of the array API
Axes = int | Sequence[int] | None  # over which something is reduced; None is all of them


class Operators:
    """Python's operators and the array attributes, over anything that the functions accept as a tensor."""

    __slots__ = ()
    __array_priority__ = 1000

    shape: Any
    dtype: Any

    if TYPE_CHECKING:  # what ``array.operators`` installs

        def __add__(self, other: object, /) -> Tensor: ...
        def __radd__(self, other: object, /) -> Tensor: ...
        def __sub__(self, other: object, /) -> Tensor: ...
        def __rsub__(self, other: object, /) -> Tensor: ...
        def __mul__(self, other: object, /) -> Tensor: ...
        def __rmul__(self, other: object, /) -> Tensor: ...
        def __truediv__(self, other: object, /) -> Tensor: ...
        def __rtruediv__(self, other: object, /) -> Tensor: ...
        def __floordiv__(self, other: object, /) -> Tensor: ...
        def __rfloordiv__(self, other: object, /) -> Tensor: ...
        def __mod__(self, other: object, /) -> Tensor: ...
        def __rmod__(self, other: object, /) -> Tensor: ...
        def __pow__(self, other: object, /) -> Tensor: ...
        def __rpow__(self, other: object, /) -> Tensor: ...
        def __matmul__(self, other: object, /) -> Tensor: ...
        def __rmatmul__(self, other: object, /) -> Tensor: ...
        def __and__(self, other: object, /) -> Tensor: ...
        def __rand__(self, other: object, /) -> Tensor: ...
        def __or__(self, other: object, /) -> Tensor: ...
        def __ror__(self, other: object, /) -> Tensor: ...
        def __xor__(self, other: object, /) -> Tensor: ...
        def __rxor__(self, other: object, /) -> Tensor: ...
        def __lshift__(self, other: object, /) -> Tensor: ...
        def __rlshift__(self, other: object, /) -> Tensor: ...
        def __rshift__(self, other: object, /) -> Tensor: ...
        def __rrshift__(self, other: object, /) -> Tensor: ...
        def __divmod__(self, other: object, /) -> tuple[Tensor, Tensor]: ...
        def __rdivmod__(self, other: object, /) -> tuple[Tensor, Tensor]: ...
        def __eq__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
        def __lt__(self, other: object, /) -> Tensor: ...
        def __le__(self, other: object, /) -> Tensor: ...
        def __gt__(self, other: object, /) -> Tensor: ...
        def __ge__(self, other: object, /) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __round__(self, digits: int | None = None, /) -> Tensor: ...
        def __getitem__(self, key: object, /) -> Tensor: ...
        def __setitem__(self, key: object, value: object, /) -> None: ...
        def __contains__(self, value: object, /) -> bool: ...
        def all(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def any(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def argmax(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def argmin(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def argsort(self, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor: ...
        def astype(self, dtype: Any, copy: bool = True) -> Tensor: ...
        def clip(self, min: object = None, max: object = None, out: None = None) -> Tensor: ...
        def copy(self, order: str = "C") -> Tensor: ...
        def cumsum(self, axis: int | None = None, dtype: object = None, out: None = None) -> Tensor: ...
        def dot(self, other: object, out: None = None) -> Tensor: ...
        def flatten(self, order: str = "C") -> Tensor: ...
        def max(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def mean(self, axis: Axes = None, dtype: object = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def min(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def prod(self, axis: Axes = None, dtype: object = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def ravel(self, order: str = "C") -> Tensor: ...
        def repeat(self, repeats: object, axis: int | None = None) -> Tensor: ...
        def reshape(self, *shape: object, order: str = "C") -> Tensor: ...
        def round(self, decimals: int = 0, out: None = None) -> Tensor: ...
        def sort(self, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor: ...
        def squeeze(self, axis: Axes = None) -> Tensor: ...
        def std(
            self, axis: Axes = None, dtype: object = None, out: None = None, ddof: float = 0, keepdims: bool = False
        ) -> Tensor: ...
        def sum(self, axis: Axes = None, dtype: object = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def take(self, indices: object, axis: int | None = None, out: None = None) -> Tensor: ...
        def transpose(self, *axes: object) -> Tensor: ...
        def var(
            self, axis: Axes = None, dtype: object = None, out: None = None, ddof: float = 0, keepdims: bool = False
        ) -> Tensor: ...
        @property
        def T(self) -> Tensor: ...
        @property
        def mT(self) -> Tensor: ...
        @property
        def H(self) -> Tensor: ...
        @property
        def mH(self) -> Tensor: ...
        @property
        def real(self) -> Tensor: ...
        @property
        def imag(self) -> Tensor: ...
        def conj(self) -> Tensor: ...
        def conjugate(self) -> Tensor: ...

    def _of_shape(self, shape: Sequence[Any]) -> Tensor:
        """What a tensor whose shape is not known yet is with another shape."""
        raise NotImplementedError

    def _whole(self) -> Tensor:
        """The tensor that anything but a tensor or a variable stands for."""
        raise NotImplementedError

    def __dir__(self) -> list[str]:
        return name_hints.hide(object.__dir__(self), Operators)

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("len", f"a scalar tensor ({self.type}) has no length.")
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise ArgumentTypeError("iter", f"a scalar tensor ({self.type}) cannot be iterated over.")
        return (self[i] for i in range(len(self)))

    @entered
    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module that holds the functions for this array, for code written to the array API standard.

        Raises ArgumentError for a version of the standard that does not exist.
        """
        if api_version not in (None, *_STANDARDS):
            raise ArgumentError("array_namespace", f"{api_version!r} is no version of the standard that is known here.")
        return sys.modules["hybridflow"]

    @property
    def type(self) -> TensorType:
        """Shape and dtype as the compiler's type; prints as ``f32[2,3]``."""
        return TensorType(self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def get_shape(self) -> Shape:
        """The shape as TensorFlow's programs ask for it: ``x.get_shape().as_list()``.

        Returns:
            A tuple of ints with TensorFlow's methods of shapes.
        """
        return Shape(self.shape)

    def set_shape(self, shape: Sequence[Any]) -> None:
        """Say what the shape is known to be, as TensorFlow's programs do.  Shapes are always known, so nothing
        changes.

        Args:
            shape: extents, with None or -1 for those that are not known.

        Raises:
            ShapeError: where it is another.
        """
        wanted = [None if isinstance(extent, int) and extent == -1 else extent for extent in shape]
        if not Shape(self.shape).is_compatible_with(wanted):
            raise ShapeError("set_shape", f"the tensor is {self.type}, no {wanted}.")

    @property
    def size(self) -> Extent:
        """Number of elements; an expression where an extent is symbolic."""
        return product(self.shape)


@uninterruptible.loaded
def _dlpack() -> Any:
    from hybridflow.core import dlpack  # which few programs need

    return dlpack


@pytree.declare_leaf
class Tensor(Operators):
    """Multi-dimensional array; make one with ``hf.asarray`` or ``hf.constant``.

    ``_array`` is the buffer: a numpy.ndarray on the CPU, a cupy.ndarray on a GPU. It is never written after the tensor
    was made, except by a Variable that is its only owner. Native code reads the slot at a fixed offset.

    Args:
        *args: none; the class is not called.
        **kwargs: none.

    Raises:
        ArgumentTypeError: whenever the class is called.

    >>> x = hf.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, x.dtype.name, x.sum(axis=0).tolist()
    ((2, 2), 'float32', [4.0, 6.0])
    """

    __slots__ = ("__weakref__", "_array")
    _array: Any
    _is_lazy = False  # see ``core.late``
    _is_shapeless = False  # see ``tracing.deferred_shape``

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise ArgumentTypeError(
            "Tensor", "is not made by calling the class; use hf.asarray(value) or hf.constant(value)."
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._array.dtype

    @property
    def shape(self) -> Shape:
        return Shape(self._array.shape)

    @property
    def type(self) -> TensorType:
        """Shape and dtype as the compiler's type; prints as ``f32[2,3]``."""
        return TensorType(self._array.shape, self._array.dtype)

    @property
    def device(self) -> str:
        """Where the value lies: ``"cpu"``, ``"gpu:0"`` ..."""
        return devices.of(self._array)

    @entered
    def to_device(self, device: str, /, *, stream: object = None) -> Tensor:
        """This value on ``device``.

        Args:
            device: "cpu", "gpu", or "gpu:1" and so on.
            stream: part of the array API; copies go through CuPy's current stream.

        Returns:
            A tensor on the device.

        Raises:
            DeviceError: where there is no such device.
        """
        wanted, here = devices.parse(device), self.device
        if wanted == here:
            return +self
        result = wrap(devices.moved(self._array, wanted))
        for tape in now().tapes:
            tape.record_custom((self,), (result,), lambda cotangent: (cotangent.to_device(here),))
        return result

    # ``x[key] = value`` (see ``array.setitem``) gives the object another value.

    def _check_rebinding(self, trace: Any) -> None:
        """Raises TraceError where ``trace``, if there is one, could not let everybody see another value."""
        if trace is not None:
            raise TraceError(
                "setitem",
                f"{self.type} was made outside of {trace.name}: a call of the compiled function could not change it. "
                "Change a tensor of the function's own, x = +x, and return it, or keep it in an hf.Variable.",
            )

    def _stand_in(self) -> Tensor:
        """Another tensor with the present value."""
        return wrap(self._array)

    def _hold(self, new: Tensor) -> None:
        """Take over the value of another tensor."""
        self._array = new._array

    # Values leave through the methods below; each raises on a symbolic tensor (see SymbolicTensor._array).

    def numpy(self) -> np.ndarray:
        """The value as a NumPy array: a read-only view without a copy on the CPU, a copy from a GPU.

        ``setflags(write=True)`` of the view is refused; what owns the memory (``view.base``) could still be unlocked.

        Returns:
            An array of the same shape and dtype.

        Raises:
            TraceError: while tracing.

        >>> hf.constant([1, 2]).numpy()
        array([1, 2])
        """
        array = self._array
        if _shared and id(array) in _shared:
            trace = now().trace
            if trace is not None:
                owner = _shared[id(array)]
                trace.read_shared(self, array if owner is None else owner)
        if not isinstance(array, np.ndarray):
            array = devices.moved(array, devices.CPU)
        elif array.flags.writeable:
            _lock(array)
        view = array.view()
        view.flags.writeable = False
        return view

    def _known(self) -> np.ndarray | None:
        """The elements where they are known: while tracing, those of constants, which tensors of one element may be."""
        return self.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy:
            return np.array(self.numpy(), dtype)
        view = self.numpy()
        if dtype is None or np.dtype(dtype) == view.dtype:
            return view
        if copy is False:
            raise ArgumentError("array", f"{self.type} cannot become {np.dtype(dtype)} without a copy.")
        return view.astype(dtype)

    def item(self) -> Any:
        """The one element as a Python scalar.

        Returns:
            A bool, int, float or complex.

        Raises:
            ShapeError: when there is not exactly one element.
        """
        return self._single("item").item()

    def tolist(self) -> Any:
        """The value as nested Python lists, or a scalar.

        Returns:
            Lists of Python numbers, or a number.

        >>> hf.constant([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return self.numpy().tolist()

    def _single(self, stage: str) -> np.ndarray:
        array = self.numpy()
        if array.size != 1:
            raise ShapeError(
                stage,
                f"{self.type} has {array.size} elements, one is needed. Reduce it with hf.all, hf.any or hf.sum first.",
            )
        return array.reshape(())

    def _real(self, stage: str) -> np.ndarray:
        if is_complex(self.dtype):
            raise DTypeError(stage, f"{self.type} is complex. Take complex(x), or hf.real(x) or hf.abs(x) first.")
        return self._single(stage)

    def __bool__(self) -> bool:
        return bool(self._single("bool"))

    def __int__(self) -> int:
        return int(self._real("int"))

    def __float__(self) -> float:
        return float(self._real("float"))

    def __complex__(self) -> complex:
        return complex(self._single("complex").item())

    def __index__(self) -> int:
        if not is_integer(self.dtype):
            raise DTypeError("index", f"{self.type} is not an integer, so it cannot be an index or a size.")
        return int(self._single("index"))

    def _to_extent(self, refusal: Callable[[], TraceError] | None = None) -> Extent:
        """This integer as an extent: an int; in a trace also a symbol, where calls find which int that is.  Where they
        cannot, it raises the ``refusal``, or what says that there is no value."""
        return self.__index__()

    def __hash__(self) -> int:
        raise ArgumentTypeError(
            "hash", "tensors are compared element by element, so they are not hashable. Use id(x) as the key."
        )

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule over this tensor's buffer, or over a copy of it.

        The buffer itself goes, marked as read-only, to consumers that know DLPack 1.0; others could write to it, and
        get a copy.  What was queued on a GPU comes before what the consumer does on its ``stream``.  Raises
        SharingError (a BufferError) where ``copy=False`` asks for what takes a copy, and for another ``dl_device``;
        ArgumentError for a ``stream`` on the CPU.
        """
        dlpack = _dlpack()
        array = self._array
        if isinstance(array, np.ndarray):
            dlpack.no_stream(stream)
            return dlpack.exported(self.numpy(), max_version, dl_device, copy)
        return dlpack.exported_from_gpu(array, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __reduce__(self) -> Any:
        return wrap, (np.asarray(self),)

    def __copy__(self) -> Tensor:
        return +self

    def __deepcopy__(self, memo: object) -> Tensor:
        return +self

    def __repr__(self) -> str:
        return display.describe(self)

    def __str__(self) -> str:
        return display.value_text(self)

    @entered
    def __format__(self, spec: str) -> str:
        """``f"{x:.3f}"`` formats a single element; other tensors take the empty spec only."""
        if not spec:
            return str(self)
        return format(self._single("format").item(), spec)


# Arrays over memory that somebody else may write to, by their ids: the array that they are views of, if there is one.
_shared: dict[int, np.ndarray | None] = {}


def share(array: np.ndarray, owner: np.ndarray | None = None) -> np.ndarray:
    """``array``, of whose elements a trace that looks at them takes note: their owner may change them."""
    number = id(array)
    _shared[number] = owner
    weakref.finalize(array, _shared.pop, number, None).atexit = False
    return array


def _lock(array: np.ndarray) -> None:
    """Make an array read-only, and those that it is a view of: while one is not, NumPy lets its views be unlocked."""
    base: object = array
    while isinstance(base, np.ndarray):
        base.flags.writeable = False
        base = base.base


def looked_at(value: object) -> Any:
    """``value``; a tensor whose elements nobody has asked for has them from then on, and is of the class Tensor."""
    if isinstance(value, Tensor) and value._is_lazy:
        _ = value._array
    return value


_new = object.__new__


def wrap(array: np.ndarray) -> Tensor:
    """A tensor over ``array`` without a copy; the caller gives the array away."""
    tensor = _new(Tensor)
    tensor._array = array
    return tensor
