"""Layers connected to graphs before there is data: ``hf.Input``, and what layers make of it."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any, Unpack

import numpy as np

from hybridflow.array.random import global_generator
from hybridflow.compiler.ir.dtypes import int64
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import layer_context, pytree
from hybridflow.core.context import suspended, tracing
from hybridflow.core.promotion import default_float, to_dtype
from hybridflow.core.string_tensor import StringType, is_string, names_strings, of_codes, string
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError, entered
from hybridflow.layers.dtype_policy import as_policy
from hybridflow.layers.keras_tensor import Call, Symbol, first_symbol
from hybridflow.layers.layer import Layer, LayerOptions, shape_of
from hybridflow.tracing.trace import Trace


def _binary(name: str, reflected: bool) -> Callable[[Symbol, Any], Any]:
    def apply(self: Symbol, other: object) -> Any:
        if isinstance(other, Symbol):
            return Operation(name)(self, other)
        return Operation(name, other=other, reflected=reflected)(self)

    return apply


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(Symbol, f"__{_name}__", _binary(_name, False))
    setattr(Symbol, f"__r{_name}__", _binary(_name, True))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Symbol, f"__{_name}__", _binary(_name, False))
setattr(Symbol, "__getitem__", lambda self, key: Operation("getitem", key=key)(self))  # noqa: B010
for _name in ("neg", "abs"):
    setattr(Symbol, f"__{_name}__", lambda self, name=_name: Operation(name)(self))


def _named(dtype: object) -> Any:
    """The name of a dtype that a policy's description has, as Keras writes it."""
    if isinstance(dtype, dict) or (isinstance(dtype, str) and dtype.startswith("mixed_")):
        return as_policy(dtype).compute_dtype
    return dtype


class Operation(Layer):
    """One of Python's operators on symbols, by the name that it has in the module ``operator``; ``other`` is an
    operand that is no symbol, on the left if ``reflected``; ``key`` an index."""

    def __init__(
        self,
        operation: str,
        other: object = None,
        reflected: bool = False,
        key: Any = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        self.operation, self.other, self.reflected, self.key = operation, other, reflected, key
        super().__init__(**options)

    def _kind_name(self) -> str:
        return self.operation

    def _converted(self, value: object) -> Any:
        return value

    def call(self, x: Tensor, y: Any = None) -> Any:
        function = getattr(operator, self.operation)
        if self.operation == "getitem":
            return x[self.key]
        if y is None and self.other is None:
            return function(x)
        y = self.other if y is None else y
        return function(y, x) if self.reflected else function(x, y)

    def get_config(self) -> dict[str, Any]:
        names = "operation", "other", "reflected", "key"
        return super().get_config() | {name: getattr(self, name) for name in names}


class InputLayer(Layer):
    """Where a graph of layers begins, see ``hf.Input``.  ``batch_shape`` is ``(batch_size, *shape)``.

    Args:
        shape: the shape of one sample, without the batch; None for any extent.
        batch_size: the number of samples in a batch, if it is fixed.
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        name: the name in summaries, logs and files; by default made from the class's name.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.InputLayer((3,), name="image").output
    <Symbol 'image' float32[None, 3]>
    """

    def __init__(
        self,
        shape: Any = None,
        batch_size: int | None = None,
        dtype: DTypeLike | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        input_shape = options.pop("input_shape", None)
        if (whole := options.pop("batch_shape", None)) is not None:
            if shape is not None or batch_size is not None:
                raise ArgumentError("Input", "give batch_shape, or shape and batch_size.")
            batch_size, *shape = _sample(whole)
        if not isinstance(name, (str, type(None))):
            raise ArgumentTypeError("Input", f"name is {name!r}; give a text.")
        super().__init__(name=name, dtype=None if names_strings(dtype) else dtype, **options)
        self.input_dtype = "string" if names_strings(dtype) else dtype
        self.shape, self.batch_size = _sample(input_shape if shape is None else shape), batch_size
        for extent in (*self.shape, batch_size):
            if extent is not None and (not isinstance(extent, int) or extent < 0):
                raise ArgumentError("Input", f"the extent {extent!r} is neither None nor an int of 0 or more.")
        call = Call(self, ((), {}))
        word = _word(name or f"input_{next(_numbers)}")  # of extents, which differ from those of other inputs
        extents = [Dim(f"{word}_{axis}") if extent is None else extent for axis, extent in enumerate(self.shape, 1)]
        batch = Dim("batch") if batch_size is None else batch_size
        shape_ = (batch, *extents)
        is_of_texts = names_strings(dtype)
        chosen = string if is_of_texts else to_dtype(default_float if dtype is None else _named(dtype), "Input")
        kind = (StringType if is_of_texts else TensorType)(shape_, chosen)
        call.outputs = [Symbol(kind, call, 0)]
        call.structure = pytree.flatten(call.outputs[0])[1]
        self._calls = [call]

    def call(self, inputs: Tensor) -> Any:
        """The inputs as they are.

        Args:
            inputs: a tensor.

        Returns:
            The inputs.
        """
        return inputs

    def get_config(self) -> dict[str, Any]:
        dtype = {"dtype": "string" if self.input_dtype == "string" else str(self._calls[0].outputs[0].dtype)}
        return super().get_config() | {"shape": self.shape, "batch_size": self.batch_size} | dtype


def _sample(shape: Any) -> tuple[Any, ...]:
    """The extents of a shape without the batch, as they were given."""
    try:
        return tuple(shape)
    except TypeError:
        raise ArgumentError(
            "Input", f"shape is {shape!r}; give a tuple of extents without the batch, (28, 28)."
        ) from None


@entered
def Input(
    shape: Iterable[int | None],
    batch_size: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Symbol:
    """Symbolic input tensor of a functional model.

    Args:
        shape: the shape of one sample without the batch axis; None stands for any size.
        batch_size: the extent of the batch, or None for any.
        dtype: the dtype of the samples, float32 unless given.
        name: what the input is called in the model.

    Returns:
        A symbol of shape ``(batch_size, *shape)``, which layers take and return.

    >>> inputs = hf.Input((4,))
    >>> x = hf.layers.Dense(8, activation="relu")(inputs)
    >>> model = hf.Model(inputs, hf.layers.Dense(1)(x))
    >>> model(hf.ones((2, 4))).shape
    (2, 1)
    """
    symbol: Symbol = InputLayer(shape, batch_size, dtype, name).output
    return symbol


_numbers = itertools.count(1)


def _traced(call: Call, leaves: list[Any], structure: Any, types: dict[int, TensorType]) -> tuple[list[Any], list[Any]]:
    """What a layer makes of symbols, which have these types, and the masks of that."""
    trace = Trace(call.layer.name, may_create_variables=True)
    trace.extent_finder = _open_extent
    with tracing(trace):
        values = [_argument(trace, types[id(leaf)], leaf.name) if isinstance(leaf, Symbol) else leaf for leaf in leaves]
        for leaf, value in zip(leaves, values):
            if isinstance(leaf, Symbol) and leaf.mask_type is not None:
                layer_context.keep_mask(value, trace.argument(leaf.mask_type, f"{leaf.name}_mask"))
        args, kwargs = pytree.unflatten(structure, values)
        result = call.layer(*args, **kwargs)
        with suspended():  # where texts are leaves
            results, call.structure = pytree.flatten(result)
        return results, [layer_context.mask_of(value) if isinstance(value, Tensor) else None for value in results]


def _with_met_extents(types: dict[int, TensorType]) -> dict[int, TensorType]:
    """The types where open extents of one axis are one extent: the layer wants them equal, and is called with those
    that are, or complains then."""
    first: dict[int, Dim] = {}

    def met(axis: int, extent: object) -> Any:
        return first.setdefault(axis, extent) if isinstance(extent, Dim) else extent

    return {
        key: TensorType(tuple([met(axis, extent) for axis, extent in enumerate(type.shape)]), type.dtype)
        for key, type in types.items()
    }


def connected(layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The symbols of what a layer makes of symbols.  It is built for their shapes, and called once, without data."""
    if first_symbol(args[:1]) is not None:
        layer._check_first(args)
    call = Call(layer, (args, kwargs))
    leaves, structure = pytree.flatten((args, kwargs))
    if not layer.built and args:
        with suspended():
            layer._build(args)
    types = {id(leaf): leaf.type for leaf in leaves if isinstance(leaf, Symbol)}
    try:
        results, masks = _traced(call, leaves, structure, types)
    except ShapeError:
        met = _with_met_extents(types)
        if met == types:
            raise
        results, masks = _traced(call, leaves, structure, met)
    for index, value in enumerate(results):
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                layer.name, f"the layer returned {value!r} for symbolic inputs, which is no tensor."
            )
        symbol = Symbol(value.type, call, index)
        mask = masks[index]
        symbol.mask_type = mask.type if isinstance(mask, Tensor) else None
        call.outputs.append(symbol)
    layer.__dict__.setdefault("_calls", []).append(call)
    return call.result()


def _open_extent(value: object, refusal: object) -> Dim:
    """A size that is found where there are data, as an extent that nobody knows."""
    return Dim(f"found_{next(_numbers)}")


def _argument(trace: Trace, kind: TensorType, name: str) -> Any:
    """What stands for a tensor of a type while a layer is called without data."""
    if is_string(kind.dtype):
        return of_codes(trace.argument(TensorType(kind.shape, int64), name))
    return trace.argument(kind, name)


def build_for(layer: Layer, *args: object) -> None:
    """Let a layer, and those in it, make their weights for arguments like these.  Nothing is calculated."""
    trace = Trace(layer.name, may_create_variables=True)
    leaves, structure = pytree.flatten(args)
    kinds = [_type_of(leaf) for leaf in leaves]
    with suspended(), tracing(trace):
        values = [leaf if kind is None else _argument(trace, kind, "") for kind, leaf in zip(kinds, leaves)]
        layer(*pytree.unflatten(structure, values))


def symbols_of(shape: Any, dtype: DTypeLike) -> Any:
    """Symbols of these shapes: of one tuple, or of lists and dicts of such; extents that are not known are None."""
    if isinstance(shape, dict):
        return {key: symbols_of(part, dtype) for key, part in shape.items()}
    if isinstance(shape, (list, tuple)) and any(isinstance(part, (list, tuple, dict)) for part in shape):
        return [symbols_of(part, dtype) for part in shape]
    if not shape:
        raise ArgumentError("build", f"the input shape is {shape!r}; the batch is its first extent.")
    return Input(shape[1:], shape[0], dtype)


def _type_of(value: object) -> TensorType | None:
    """The type of a tensor, of what stands for one, or of an array; None for anything else."""
    if isinstance(value, (Symbol, Tensor)):
        return value.type
    if isinstance(value, (Variable, np.ndarray)):
        return TensorType(tuple(value.shape), as_tensor(value, "build").dtype)
    return None


def _word(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def shape_for(layer: Layer, input_shape: object) -> Any:
    """The shape of what a layer makes of inputs of a shape.  It stays unbuilt, and no random number is drawn."""
    source = global_generator()
    before = source.state.numpy().copy()
    try:
        tried = layer if layer.built else copy.deepcopy(layer)
        calls = list(tried.__dict__.get("_calls", ()))
        result = tried(symbols_of(input_shape, layer.compute_dtype))
        tried.__dict__["_calls"] = calls
    finally:
        source.state.assign(before)
    return shape_of(result)


Symbol.connect = staticmethod(connected)
Symbol.shape_for = staticmethod(shape_for)
