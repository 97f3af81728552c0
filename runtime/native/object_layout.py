"""Where CPython and NumPy keep the fields that native code reads, and whether this interpreter is laid out that way.

Offsets are bytes from the object's address on a 64-bit build.  ``problem()`` compares each of them with what the
interpreter itself says; wherever one differs, the runtime takes its Python paths.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from types import CellType
from typing import Any

import numpy as np

REFCOUNT = 0  # the low 32 bits count on every version; immortal objects show a huge number there
TYPE = 8
SIZE = 16  # of tuples and lists
TUPLE_ITEMS = tuple.__basicsize__
BYTES_DATA = bytes.__basicsize__ - 1
SLICE_START, SLICE_STOP, SLICE_STEP = 16, 24, 32
LIST_ITEMS = 24  # after the header of a variable-size object: a pointer to the items
BYTEARRAY_START = 40  # a pointer to the bytes
CELL_CONTENTS, WEAKREF_OBJECT = 16, 16
FUNCTION_CODE, FUNCTION_DEFAULTS, FUNCTION_KEYWORD_DEFAULTS, FUNCTION_CLOSURE = 48, 56, 64, 72
DESCRIPTOR_TYPE, DESCRIPTOR_MEMBER, MEMBER_OFFSET = (
    16,
    40,
    16,
)  # of a slot: its class, and where {name, type, offset} is
WRAPPER_KIND = 40  # of the methods that stand for slots
TYPE_FLAGS = 168
TYPE_MRO = 344  # of the class and its bases, in a tuple
IS_LIST, IS_TUPLE, IS_DICT, IS_TYPE = 1 << 25, 1 << 26, 1 << 29, 1 << 31  # flags of types whose instances are one
DICT_KEYS, KEYS_KIND = 32, 10  # the keys of a dict, and of them: 0 where not all are of type str

# struct PyArrayObject_fields of numpy/ndarraytypes.h
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_BASE, ARRAY_DESCR, ARRAY_FLAGS, ARRAY_HANDLER = 16, 24, 32, 48, 56, 64, 88
DESCR_KIND, DESCR_ORDER, DESCR_NUM = 24, 26, 28
SCALAR_DATA = object.__basicsize__  # of NumPy's scalars
C_CONTIGUOUS, F_CONTIGUOUS, OWN_DATA, ALIGNED, WRITEABLE = 0x0001, 0x0002, 0x0004, 0x0100, 0x0400

SETTINGS = (sys.implementation.cache_tag, sys.hexversion, TUPLE_ITEMS, BYTES_DATA)  # what differs between interpreters

# Positions in NumPy's table of C functions, fixed since NumPy 1.22.
API_ARRAY_TYPE, API_NEW_COPY, API_NEW_FROM_DESCR, API_GET_HANDLER = 2, 85, 94, 305


def slot_offset(type_: type, name: str) -> int:
    """Offset of a ``__slots__`` entry in the instances of a class."""
    descriptor = type_.__dict__.get(name)
    if type(descriptor) is not type(_Sample.__dict__["slot"]):
        raise TypeError(f"{type_.__name__}.{name} is not a slot")
    return _word(_word(id(descriptor) + DESCRIPTOR_MEMBER) + MEMBER_OFFSET)


def numpy_api(index: int) -> int:
    """Entry of NumPy's C-API table."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return _word(get(_multiarray_umath._ARRAY_API, None) + 8 * index)


@functools.cache
def problem() -> str | None:
    """Why native code cannot read this interpreter's objects, or None when it can."""
    if sys.implementation.name != "cpython":
        return f"the interpreter is {sys.implementation.name}, not CPython"
    if sys.platform not in ("linux", "darwin"):
        return f"the platform is {sys.platform}"
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or "t" in getattr(sys, "abiflags", ""):
        return "the interpreter is free-threaded"
    if not hasattr(sys, "getrefcount"):
        return "the interpreter does not count references"
    if hasattr(sys, "gettotalrefcount"):
        return "the interpreter is a debug build"
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return "the machine is not a little-endian 64-bit one"
    return _differing_field()


def slot_kind(name: str, owner: type = np.ndarray) -> int:
    """Address of what CPython knows of the special method ``name``, by which ``PyDescr_NewWrapper`` makes others of
    its kind; ``owner`` is a class that has it.  Raises AttributeError where it is not to be found."""

    def kind_of(owner: type, name: str) -> int:
        return _word(id(owner.__dict__[name]) + WRAPPER_KIND)

    result = kind_of(owner, name)
    # A pointer is followed only where the field holds what does not depend on the class.
    is_kind = kind_of(int, "__add__") == kind_of(np.ndarray, "__add__") != kind_of(int, "__radd__")
    is_slot = type(owner.__dict__[name]) is type(int.__dict__["__add__"])
    if not is_kind or not is_slot or ctypes.string_at(_word(result)) != name.encode():
        raise AttributeError(f"what CPython knows of {name} lies elsewhere")
    return result


@functools.cache
def finds_methods() -> bool:
    """Whether the process has a ``_PyObject_GetMethod`` that works as it always did."""
    get = getattr(ctypes.pythonapi, "_PyObject_GetMethod", None)
    if get is None:
        return False
    get.argtypes, get.restype = [ctypes.py_object, ctypes.py_object, ctypes.c_void_p], ctypes.c_int
    shadowed, method = _Shadowed(), ctypes.c_void_p()

    def method_of(owner: object, name: str) -> tuple[int, int | None]:
        answer = get(owner, name, ctypes.addressof(method)), method.value
        if method.value:
            ctypes.pythonapi.Py_DecRef(method)
        return answer

    function = id(_Shadowed.__dict__["method"])
    return method_of(_Shadowed(), "method") == (1, function) == method_of(shadowed, "method") and method_of(
        shadowed, "shadow"
    ) == (0, id(shadowed.shadow))


def finds_in_classes() -> bool:
    """Whether the process has a ``_PyType_Lookup``."""
    return hasattr(ctypes.pythonapi, "_PyType_Lookup")


def _example() -> None: ...


def _with_defaults(python: object) -> Callable[..., Any]:
    def function(a: int = 1, *, b: int = 2) -> Any:
        return python

    return function


class _Shadowed:
    def __init__(self) -> None:
        self.shadow: object = [self.method]

    def method(self) -> None: ...


class _Sample:
    __slots__ = ("__weakref__", "slot")


def _differing_field() -> str | None:
    """The first field that does not hold what it should in objects whose contents are known."""
    for name, value, expected in _fields():
        if value != expected:
            return f"the field '{name}' of its objects lies elsewhere"
    return None


def _fields() -> Iterator[tuple[str, int, int]]:
    """(name, what the offset leads to, what it should lead to).  A pointer is followed only after the fields around it
    were found right: whoever takes the next item has compared the last."""
    sample, other, array = _Sample(), object(), np.arange(6, dtype=np.float32).reshape(2, 3)
    sample.slot = other  # type: ignore[attr-defined]
    references = _int(id(sample) + REFCOUNT)
    more = [sample] * 5
    pair, text, owner = (array, other), b"8 bytes.", np.empty(7, np.int64)
    yield "reference count", _int(id(sample) + REFCOUNT) - references, len(more)
    yield "type", _word(id(sample) + TYPE), id(_Sample)
    yield "class of a slot", _word(id(_Sample.__dict__["slot"]) + DESCRIPTOR_TYPE), id(_Sample)
    yield "slot", _word(id(sample) + slot_offset(_Sample, "slot")), id(other)
    yield "tuple size", _word(id(pair) + SIZE), len(pair)
    yield "tuple item", _word(id(pair) + TUPLE_ITEMS + 8), id(other)
    three, cell, reference = [array, other, text], CellType(other), weakref.ref(sample)
    yield "list size", _word(id(three) + SIZE), 3
    yield "list items", _word(_word(id(three) + LIST_ITEMS) + 8), id(other)
    many = bytearray(b"8 bytes.")
    yield "bytearray size", _word(id(many) + SIZE), len(many)
    yield "bytearray bytes", _word(_word(id(many) + BYTEARRAY_START)), int.from_bytes(many, "little")
    part = slice(sample, other, array)
    for place, item in ((SLICE_START, sample), (SLICE_STOP, other), (SLICE_STEP, array)):
        yield "bound of a slice", _word(id(part) + place), id(item)
    yield "cell contents", _word(id(cell) + CELL_CONTENTS), id(other)
    yield "code", _word(id(_example) + FUNCTION_CODE), id(_example.__code__)
    function = _with_defaults(cell)
    yield "defaults", _word(id(function) + FUNCTION_DEFAULTS), id(function.__defaults__)
    yield "keyword defaults", _word(id(function) + FUNCTION_KEYWORD_DEFAULTS), id(function.__kwdefaults__)
    yield "closure", _word(id(function) + FUNCTION_CLOSURE), id(function.__closure__)
    yield "referent", _word(id(reference) + WEAKREF_OBJECT), id(sample)
    for flag, kind in ((IS_LIST, list), (IS_TUPLE, tuple), (IS_DICT, dict), (IS_TYPE, type), (0, int)):
        flags = _word(id(kind) + TYPE_FLAGS)
        expected_flags: Any = kind.__flags__
        yield "flags of types", flags & (1 << 32) - 1, expected_flags & (1 << 32) - 1
        yield "flag of a class", flags & (IS_LIST | IS_TUPLE | IS_DICT | IS_TYPE), flag
    for derived in (_Sample, int, np.float64):
        yield "tp_mro", _word(id(derived) + TYPE_MRO), id(derived.__mro__)
    mixed: list[tuple[dict[Any, int], bool]] = [({1: 2}, False), ({"a": 1}, True), ({"a": 1, 2: 3}, False)]
    for keys, is_text in mixed:
        kind_of_keys = ctypes.c_uint8.from_address(_word(id(keys) + DICT_KEYS) + KEYS_KIND).value
        yield "kind of keys", int(kind_of_keys != 0), int(is_text)
    yield "bytes", _word(id(text) + BYTES_DATA), int.from_bytes(text, "little")
    yield "array data", _word(id(array) + ARRAY_DATA), array.ctypes.data
    yield "array ndim", _int(id(array) + ARRAY_NDIM), 2
    yield "array base", _word(id(array) + ARRAY_BASE), id(array.base)
    yield "array descr", _word(id(array) + ARRAY_DESCR), id(array.dtype)
    yield "array flags", _int(id(array) + ARRAY_FLAGS), array.flags.num
    for descr in (array.dtype, owner.dtype, np.dtype(np.bool_)):
        yield "number of a dtype", _int(id(descr) + DESCR_NUM), descr.num
        yield "kind of a dtype", _int(id(descr) + DESCR_KIND) & 0xFF, ord(descr.kind)
    for descr in (array.dtype.newbyteorder(">"), array.dtype):
        yield "byte order", _int(id(descr) + DESCR_KIND) >> 16 & 0xFF, ord(descr.byteorder)
    yield "array shape", _word(_word(id(array) + ARRAY_SHAPE) + 8), 3
    yield "array owner's flags", _int(id(owner) + ARRAY_FLAGS) & OWN_DATA, OWN_DATA
    for scalar in (np.int8(-7), np.float32(0.5), np.float64(-2.25), np.int64(1 << 40)):
        held = ctypes.string_at(id(scalar) + SCALAR_DATA, scalar.nbytes)
        yield "array scalar", int.from_bytes(held, "little"), int.from_bytes(scalar.tobytes(), "little")
    handler = ctypes.PYFUNCTYPE(ctypes.py_object)(numpy_api(API_GET_HANDLER))()
    yield "array memory handler", _word(id(owner) + ARRAY_HANDLER), id(handler)
    yield "array type in the C API", numpy_api(API_ARRAY_TYPE), id(np.ndarray)


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _int(address: int) -> int:
    return ctypes.c_int32.from_address(address).value
