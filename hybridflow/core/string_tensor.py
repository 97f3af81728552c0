"""Tensors of texts: bytes on the host, which no kernel sees.

Outside of compiled functions the elements are an array of objects.  In a trace, and at its border, a text is its
*code*: a number in the table of this module.  What moves elements about and what compares them works on codes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.types import MAX_AXES, TensorType
from hybridflow.core import pytree
from hybridflow.core.context import current
from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError
from hybridflow.runtime import fork_safe_locks

string: np.dtype[Any] = np.dtype(object, metadata={"hybridflow": "string"})
"""The dtype of tensors of texts."""

_slot: Any = vars(Tensor)["_array"]


class StringType(TensorType):
    """The type of a tensor of texts; prints as ``string[2,3]``."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"string[{','.join(map(str, self.shape))}]"


def is_string(dtype: object) -> bool:
    """Whether a dtype is that of texts."""
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def names_strings(dtype: object) -> bool:
    """Whether somebody names the dtype of texts: itself, or the text "string"."""
    return dtype is string or (isinstance(dtype, str) and dtype == "string") or getattr(dtype, "dtype", None) is string


class StringTensor(Tensor):
    """A tensor of texts, each of them bytes; ``hf.strings.constant`` makes one.

    Args:
        *args: none: the class cannot be called.
        **kwargs: none.

    Raises:
        ArgumentTypeError: where it is called.

    >>> type(hf.strings.constant(["a", "b"]))
    <class 'hybridflow.core.string_tensor.StringTensor'>
    """

    __slots__ = ("_symbolic",)
    _symbolic: Tensor | None  # the codes, where the texts are not known: in a trace

    @property
    def dtype(self) -> np.dtype[Any]:
        return string

    @property
    def shape(self) -> Shape:
        return Shape(_slot.__get__(self).shape) if self._symbolic is None else self._symbolic.shape

    @property
    def type(self) -> TensorType:
        return StringType(self.shape, string)

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def is_known(self) -> bool:
        """Whether the texts are there, as they are outside of traces."""
        return self._symbolic is None

    @property
    def texts(self) -> np.ndarray:
        """The texts as an array of bytes.  Raises TraceError in a trace, where there are none."""
        return _slot.__get__(self) if self._symbolic is None else self._symbolic.numpy()

    _array = texts  # the slot of a tensor in a trace is empty

    @property
    def codes(self) -> Tensor:
        """The codes of the texts: int64."""
        return wrap(codes_of(self.texts)) if self._symbolic is None else self._symbolic

    def numpy(self) -> Any:
        """The texts as an array of bytes, which is read-only.

        Returns:
            An object array; of a tensor without axes the bytes themselves.
        """
        texts = self.texts
        return texts if texts.ndim else texts.item()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        texts = self.texts
        return np.array(texts, dtype) if copy or dtype is not None else texts

    def set_shape(self, shape: Sequence[int | None]) -> None:
        """Say the shape, as far as it is known.

        Args:
            shape: extents, with None for those that are not known.

        Raises:
            ShapeError: where it is another.
        """
        if self._symbolic is None:
            super().set_shape(shape)
        else:
            self._symbolic.set_shape(shape)

    def _known(self) -> np.ndarray | None:
        return self.texts if self._symbolic is None else None

    def _single(self, stage: str) -> np.ndarray:
        texts = self.texts
        if texts.size != 1:
            raise ArgumentError(stage, f"{self.type} has {texts.size} elements, one is needed.")
        return texts.reshape(())

    def tolist(self) -> Any:
        return self.texts.tolist()

    def __bool__(self) -> bool:
        return bool(self._single("bool").item())

    def _no_number(self, stage: str) -> DTypeError:
        return DTypeError(stage, f"{self.type} holds texts. Use hf.strings.to_number.")

    def _real(self, stage: str) -> np.ndarray:
        raise self._no_number(stage)

    def __complex__(self) -> complex:
        raise self._no_number("complex")

    def __index__(self) -> int:
        raise self._no_number("index")

    def _to_extent(self, refusal: object = None) -> Any:
        raise self._no_number("index")

    def to_device(self, device: str, /, *, stream: object = None) -> Tensor:
        if device != "cpu":
            raise DTypeError("to_device", f"{self.type} holds texts, which stay on the CPU.")
        return self

    def _stand_in(self) -> Tensor:
        return self

    def _hold(self, new: Tensor) -> None:
        if not isinstance(new, StringTensor):
            raise DTypeError("setitem", f"{self.type} holds texts, and {new.type} does not.")
        self._symbolic = new._symbolic
        _slot.__set__(self, _slot.__get__(new))

    def __dlpack__(self, **options: object) -> Any:
        raise DTypeError("dlpack", f"{self.type} holds texts, which DLPack has not.")

    def __dlpack_device__(self) -> tuple[int, int]:
        raise DTypeError("dlpack", f"{self.type} holds texts, which DLPack has not.")

    def __reduce__(self) -> Any:
        return of_texts, (self.texts,)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: object) -> Tensor:
        return self

    def __repr__(self) -> str:
        if self._symbolic is not None:
            return f"<sym {self.type}>"
        return f"<Tensor {self.type} cpu>{' ' if self.ndim < 2 else chr(10)}{self}"

    def __str__(self) -> str:
        if self._symbolic is not None:
            return repr(self)
        texts = self.texts
        return np.array2string(texts, threshold=1000) if texts.ndim else repr(texts.item())

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


_new = object.__new__


def of_texts(texts: np.ndarray) -> StringTensor:
    """A tensor of an array of bytes, which is given away."""
    tensor: StringTensor = _new(StringTensor)
    texts = texts.view(string)  # so that an array of a tensor's can be told from others
    texts.flags.writeable = False
    _slot.__set__(tensor, texts)
    tensor._symbolic = None
    return tensor


def of_codes(codes: Tensor) -> StringTensor:
    """A tensor of texts by their codes, which a trace may know and nobody else."""
    known = codes._array if type(codes) is Tensor else None
    if known is not None:
        return of_texts(texts_of(known))
    if current.trace is not None:
        current.trace.root.has_codes = True
    tensor: StringTensor = _new(StringTensor)
    _slot.__set__(tensor, None)
    tensor._symbolic = codes
    return tensor


makers: dict[str, Any] = {}
"""Functions that lie above: what makes a constant of a program, and what puts tensors side by side."""


def trace_codes(x: StringTensor) -> Tensor:
    """The codes of a tensor in the program that is traced: of one that is known they are constants."""
    if not x.is_known:
        return x.codes
    constant: Tensor = makers["literal"](codes_of(x.texts, is_constant=True))
    return constant


def _parts(x: StringTensor) -> tuple[tuple[str, ...], tuple[Tensor, ...]] | None:
    """In a trace, and where a trace left it, a tensor of texts is a container of its codes."""
    return None if x.is_known and current.trace is None else (("codes",), (trace_codes(x),))


pytree.nodes[StringTensor] = pytree.Node(_parts, of_codes)


def as_bytes(value: object, stage: str) -> bytes:
    """A text of Python as bytes.  Raises ArgumentTypeError for anything else."""
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise ArgumentTypeError(stage, f"{value!r:.60} is a {type(value).__name__} and no text.")


def array_of_texts(value: object, stage: str) -> np.ndarray:
    """Texts, nested lists or arrays of them as an array of bytes of our own.  Raises ArgumentTypeError for anything
    else, and ArgumentError for ragged lists."""
    if isinstance(value, (str, bytes)):
        result: Any = np.empty((), object)
        result[()] = as_bytes(value, stage)
        return result
    array = value if isinstance(value, np.ndarray) else _array_of_list(value, stage)
    result = np.empty(array.shape, object)
    result.reshape(-1)[:] = [as_bytes(text, stage) for text in array.ravel().tolist()]
    return result


def _array_of_list(value: Any, stage: str) -> np.ndarray:
    shape = _nested_shape(value, stage)
    flat = [value]
    for _ in shape:
        flat = [part for row in flat for part in row]
    flat = [part.texts.item() if isinstance(part, StringTensor) else part for part in flat]
    result: Any = np.empty(len(flat), object)
    result[:] = flat
    return result.reshape(shape)


def _nested_shape(value: object, stage: str, depth: int = 0) -> tuple[int, ...]:
    if isinstance(value, (StringTensor, np.ndarray)):
        return tuple(value.shape)
    if not isinstance(value, (list, tuple)):
        return ()
    if not value:
        return (0,)
    if depth == MAX_AXES:
        raise ArgumentError(stage, f"the list is nested deeper than {MAX_AXES} axes, or contains itself.")
    shapes = {_nested_shape(part, stage, depth + 1) for part in value}
    if len(shapes) > 1:
        raise ArgumentError(stage, "the rows are ragged: all must have one length. Use hf.ragged.constant.")
    return (len(value), *shapes.pop())


def holds_texts(value: object) -> bool:
    """Whether a value is a text of Python or NumPy, or a nested list or array of such."""
    for _ in range(MAX_AXES):  # no further, for a list may contain itself
        if not isinstance(value, (list, tuple)) or not value:
            break
        value = value[0]
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "SUT" or (
            value.dtype.kind == "O" and value.size > 0 and isinstance(value.flat[0], (str, bytes))
        )
    return isinstance(value, (str, bytes, StringTensor))


def as_strings(value: object, stage: str, dtype: object = None) -> StringTensor:
    """A value as a tensor of texts.  Raises ArgumentTypeError, or DTypeError for tensors of numbers."""
    if isinstance(value, StringTensor):
        return value
    if isinstance(value, Tensor):
        raise DTypeError(stage, f"{value.type} holds numbers where texts are expected. Use hf.strings.as_string.")
    if not isinstance(value, (str, bytes, list, tuple, np.ndarray)) and hasattr(value, "__array__"):
        value = np.asarray(value)
    if isinstance(value, (list, tuple)) and any(isinstance(part, StringTensor) and not part.is_known for part in value):
        _nested_shape(value, stage)  # which raises for lists without an end
        return makers["stack"]([as_strings(part, stage) for part in value])
    return of_texts(array_of_texts(value, stage))


# ---- codes


_LIMIT = 1 << 28  # bytes of texts after which those of calls that are over are forgotten


_codes: dict[bytes, int] = {b"": 0}
_texts: dict[int, bytes] = {0: b""}
_pinned: set[int] = {0}
_held = 0  # bytes
_next = 1
_running = 0
_lock = fork_safe_locks.make()


def code_of(text: bytes) -> int:
    """The code of a text."""
    global _next, _held
    code = _codes.get(text)
    if code is None:
        with _lock:
            code = _codes.get(text)
            if code is None:
                code, _next = _next, _next + 1
                _texts[code] = text
                _codes[text] = code
                _held += len(text) + 100
    return code


def codes_of(texts: np.ndarray, is_constant: bool = False) -> np.ndarray:
    """The codes of an array of texts.  Those that ``is_constant`` of a program says are kept for good."""
    if is_constant:
        with running():  # so that nothing is forgotten in between
            codes = codes_of(texts)
            with _lock:
                _pinned.update(codes.ravel().tolist())
        return codes
    return np.fromiter(map(code_of, texts.ravel().tolist()), np.int64, texts.size).reshape(texts.shape)


def texts_of(codes: np.ndarray) -> np.ndarray:
    """The texts of an array of codes."""
    result: Any = np.empty(codes.shape, object)
    try:
        result.reshape(-1)[:] = [_texts[code] for code in codes.ravel().tolist()]
    except KeyError:
        raise ArgumentError("strings", "a text was kept over calls by its number. Keep the tensor itself.") from None
    return result


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Around a call of a program that works with codes: what it makes is there until it ends."""
    global _running
    with _lock:
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running and _held > _LIMIT:
                _forget()


def _forget() -> None:
    global _held
    kept = {code: _texts[code] for code in _pinned}
    _texts.clear()
    _codes.clear()
    _texts.update(kept)
    _codes.update({text: code for code, text in kept.items()})
    _held = sum([len(text) + 100 for text in kept.values()])
