"""Layers and models whose weights, and inputs, are quantized: in place, for inference or while they are trained."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.module import Module
from hybridflow.module_parts import traverse
from hybridflow.quantize.quantized_weight import FakeQuantizedWeight, ObservedWeight, QuantizedWeight, Weight
from hybridflow.quantize.scheme import Scheme

Choice = Callable[[str, Any], bool]


class Report:
    """What became of a model's weights: a row for each, and the bytes in all.

    Args:
        rows: path, scheme, bytes before and after, and the error of each weight: the norm of the difference over the
            norm of the weight.

    Example:
        >>> model = hf.Sequential([hf.Input((64,)), hf.layers.Dense(32, name="dense")])
        >>> report = hf.quantize.weights(model)
        >>> report.bytes_before, report.bytes_after
        (8192, 2176)
    """

    def __init__(self, rows: Iterable[tuple[str, str, int, int, float]]) -> None:
        self.rows = list(rows)

    @property
    def bytes_before(self) -> int:
        """The bytes of the weights that were quantized, before."""
        return sum(row[2] for row in self.rows)

    @property
    def bytes_after(self) -> int:
        """The bytes of the quantized values and scales that took their places."""
        return sum(row[3] for row in self.rows)

    def __repr__(self) -> str:
        lines = [("weight", "scheme", "bytes before", "after", "error")]
        lines += [(path, scheme, f"{a:,}", f"{b:,}", f"{error:.1%}") for path, scheme, a, b, error in self.rows]
        lines.append(("in all", "", f"{self.bytes_before:,}", f"{self.bytes_after:,}", ""))
        widths = [max(len(line[k]) for line in lines) for k in range(5)]
        return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    parts = [part.ljust(width) if k < 2 else part.rjust(width) for k, (part, width) in enumerate(zip(line, widths))]
    return "  ".join(parts).rstrip()


def _layers(stage: str, model: Module, where: Choice | None) -> list[tuple[str, Any]]:
    """The layers of a model that have weights to quantize, by path.  Raises where one has none yet."""
    if not isinstance(model, Module):
        raise ArgumentTypeError(stage, f"model is {type(model).__name__}. Expected a layer or a model.")
    if where is not None and not callable(where):
        raise ArgumentTypeError(stage, f"where is {where!r}. Expected a function of a path and a layer.")
    parts: list[tuple[str, Any]] = [("", model)] if hasattr(model, "_quantized_axes") else []
    parts += [(p, part) for p, part, _ in traverse(model, Module) if part is not model and hasattr(part, "_mark")]
    layers = [(path, layer) for path, layer in parts if hasattr(layer, "_quantized_axes") and layer._quantized_axes()]
    if not layers:
        raise ArgumentError(stage, f"{type(model).__name__} has no layer whose weights can be quantized.")
    chosen = [(path, layer) for path, layer in layers if where is None or where(path, layer)]
    if not chosen:
        raise ArgumentError(stage, f"where chose none of {len(layers)} layers.")
    changed = {id(part.layer) for _, part in parts if getattr(part, "_changes_weights", False)}
    for _, layer in chosen:
        if not layer.built:
            raise ArgumentError(stage, f"the layer {layer.name!r} has no weights yet. Call the model once before.")
        if id(layer) in changed:
            raise ArgumentError(
                stage,
                f"the layer around {layer.name!r} changes its weights as they are trained. Leave it out by where=.",
            )
    return chosen


def _check_dtype(stage: str, dtype: DTypeLike) -> None:
    if dtype not in ("int8", "int4"):
        raise ArgumentError(stage, f"dtype is {dtype!r}. Expected 'int8' or 'int4'.")


def _weights(layer: Any) -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    """The attributes of a layer that can be quantized, and the axes of their channels."""
    for attribute, channels in layer._quantized_axes().items():
        yield attribute, getattr(layer, attribute), channels


def _of_layer(scheme: Scheme, layer: Any) -> Scheme:
    """The scheme for a layer: where its inputs cannot be quantized, weights alone are."""
    if scheme.inputs in ("dynamic", "static") and not layer._quantizes_inputs:
        return Scheme(scheme.dtype, "float")
    return scheme


def _plain_value(weight: Variable, stage: str, title: str) -> Any:
    if isinstance(weight, Variable):
        return weight.value()
    if isinstance(weight, (FakeQuantizedWeight, ObservedWeight)):
        return weight.variable.value()
    raise ArgumentError(stage, f"{title} is quantized already.")


def _variables(weight: Variable) -> list[Variable]:
    return [weight] if isinstance(weight, Variable) else [weight.variable]


def _follow(model: Any, layer: Any, scheme: Scheme) -> None:
    """Let a layer, and the recurrent one around a cell, be made with quantized weights where they are made again."""
    around = [part for part in (model, *model.submodules) if getattr(part, "cell", None) is layer]
    for one in (layer, *around):
        one._follow(one._policy.quantized(scheme))


def _replace_weights(
    stage: str, model: Any, layers: list[tuple[str, Any]], scheme_of: Callable[[Any], Scheme]
) -> Report:
    """Put quantized weights in the places of weights, all or none."""
    rows, places = [], []
    for path, layer in layers:
        chosen = _of_layer(scheme_of(layer), layer)
        for attribute, weight, channels in _weights(layer):
            title = f"{path}.{attribute}" if path else attribute
            value = _plain_value(weight, stage, title)
            dtype = value.dtype
            quantized = QuantizedWeight(chosen, weight.shape, channels, dtype, attribute)
            if chosen.inputs == "static":
                quantized.input_range = weight.input_range.as_static(title)
            quantized.fill(value)
            rows.append((title, chosen.name, *_sizes(value, quantized), _error(value, quantized)))
            places.append((layer, attribute, quantized, chosen))
    gone = []
    for layer, attribute, quantized, chosen in places:
        gone += _variables(getattr(layer, attribute))
        setattr(layer, attribute, quantized)
        _follow(model, layer, chosen)
    for part in (model, *model.submodules):
        if getattr(part, "compiled", False):
            part.optimizer._forget(gone)
    return Report(rows)


def _sizes(value: Tensor, quantized: QuantizedWeight) -> tuple[int, int]:
    held = sum(np.asarray(variable).nbytes for variable in quantized.variables)
    return int(value.size) * value.dtype.itemsize, held


def _error(value: Tensor, quantized: QuantizedWeight) -> float:
    before = np.asarray(value).astype(np.float64)
    whole = float(np.linalg.norm(before))
    return float(np.linalg.norm(np.asarray(quantized._whole()) - before)) / whole if whole else 0.0


def weights(model: Module, dtype: str = "int8", group_size: int | None = None, where: Choice | None = None) -> Report:
    """Quantize the weights of a model, in place; inputs stay floats.

    Kernels and tables of vectors are held in 8 or 4 bits, with a scale for each channel or group.  They are converted
    where they are used, within the products of a compiled function: what decodes one token at a time reads a quarter,
    or an eighth, of the bytes.  Biases and normalizations stay as they are.  Weights are not trained any more;
    gradients of inputs are those of the dequantized floats.

    Args:
        model: a layer or model with weights.
        dtype: "int8" or "int4".
        group_size: how many values of a channel share a scale; all by default.
        where: ``where(path, layer)``, whether a layer is quantized.

    Returns:
        A ``Report``: the bytes and the error of each weight.

    Raises:
        ArgumentError: for another dtype, a model without weights to quantize, or weights that are not finite.

    Example:
        >>> model = hf.Sequential([hf.Input((4,)), hf.layers.Dense(2, kernel_initializer="ones")])
        >>> report = hf.quantize.weights(model)
        >>> model(hf.ones((1, 4))).tolist()
        [[4.0, 4.0]]
    """
    stage = "quantize.weights"
    if group_size is not None and (not isinstance(group_size, int) or group_size < 1):
        raise ArgumentError(stage, f"group_size is {group_size!r}. Expected a positive int, or None.")
    _check_dtype(stage, dtype)
    name = f"{dtype}_weights" if group_size is None else f"{dtype}_weights_{group_size}"
    return _replace_weights(stage, model, _layers(stage, model, where), lambda _: Scheme.parse(name))


def dynamic(model: Module, dtype: str = "int8", where: Choice | None = None) -> Report:
    """Quantize the weights of a model in place, and the inputs of dense layers at each call.

    Each row of inputs is quantized to int8 by its largest amount, and products are summed in int32.  Convolutions,
    attention, recurrent layers and tables of vectors have quantized weights alone.

    Args:
        model: a layer or model with weights.
        dtype: "int8" or "int4", that of weights.
        where: ``where(path, layer)``, whether a layer is quantized.

    Returns:
        A ``Report``: the bytes and the error of each weight.

    Raises:
        ArgumentError: for another dtype, a model without weights to quantize, or weights that are not finite.

    Example:
        >>> model = hf.Sequential([hf.Input((4,)), hf.layers.Dense(2, kernel_initializer="ones")])
        >>> report = hf.quantize.dynamic(model)
        >>> hf.round(model(hf.ones((1, 4)))).tolist()
        [[4.0, 4.0]]
    """
    stage = "quantize.dynamic"
    _check_dtype(stage, dtype)
    return _replace_weights(stage, model, _layers(stage, model, where), lambda _: Scheme.parse(dtype))


def by_name(model: Module, mode: str) -> Report:
    """``weights`` or ``dynamic``, by the name of a scheme."""
    scheme = Scheme.parse(mode)
    if scheme.inputs not in ("float", "dynamic"):
        raise ArgumentError("quantize", f"mode is {mode!r}. Use hf.quantize.static or prepare_training.")
    return _replace_weights("quantize", model, _layers("quantize", model, None), lambda _: scheme)


def static(model: Any, samples: Iterable[Any], dtype: str = "int8", where: Choice | None = None) -> Report:
    """Quantize the weights of a model in place, and inputs by ranges that samples show.

    The model is called with each of the ``samples``.  The least and the largest element that a dense layer or a
    convolution is given are its range from then on; what lies outside is clipped.

    Args:
        model: a layer or model with weights.
        samples: a batch of inputs, or an iterable of batches; of a tuple, as in a dataset, the first part is the input.
        dtype: "int8" or "int4", that of weights.
        where: ``where(path, layer)``, whether a layer is quantized.

    Returns:
        A ``Report``: the bytes and the error of each weight.

    Raises:
        ArgumentError: for another dtype, no samples, a model without weights to quantize, or weights that are not
            finite.

    Example:
        >>> model = hf.Sequential([hf.Input((4,)), hf.layers.Dense(2, kernel_initializer="ones")])
        >>> report = hf.quantize.static(model, hf.ones((8, 4)))
        >>> hf.round(model(hf.ones((1, 4)))).tolist()
        [[4.0, 4.0]]
    """
    stage = "quantize.static"
    _check_dtype(stage, dtype)
    scheme = Scheme.parse(f"{dtype}_static")
    if not isinstance(samples, (Tensor, Variable, np.ndarray, dict, Iterable)):
        raise ArgumentTypeError(
            stage, f"samples is {type(samples).__name__}. Expected a batch, or an iterable of batches."
        )
    layers = _layers(stage, model, where)
    with _observed(stage, layers):
        count = 0
        for batch in [samples] if isinstance(samples, (Tensor, Variable, np.ndarray, dict)) else samples:
            model(batch[0] if isinstance(batch, tuple) else batch, training=False)
            count += 1
        if not count:
            raise ArgumentError(stage, "there are no samples. Expected at least one batch of inputs.")
        return _replace_weights(stage, model, layers, lambda _: scheme)


@contextlib.contextmanager
def _observed(stage: str, layers: list[tuple[str, Any]]) -> Iterator[None]:
    """Let the inputs of layers be looked at; those that are not quantized meanwhile have their weights again."""
    places = []
    for path, layer in layers:
        if layer._quantizes_inputs:
            for attribute, weight, channels in _weights(layer):
                if not isinstance(weight, Variable):
                    raise ArgumentError(stage, f"{path}.{attribute} is quantized already.")
                places.append((layer, attribute, weight, ObservedWeight(weight, channels)))
    try:
        for layer, attribute, _, observed in places:
            setattr(layer, attribute, observed)
        yield
    finally:
        for layer, attribute, weight, observed in places:
            if getattr(layer, attribute) is observed:
                setattr(layer, attribute, weight)


def prepare_training(
    model: Module, dtype: str = "int8", quantizes_inputs: bool = True, where: Choice | None = None
) -> None:
    """Let a model be trained for quantization, in place: its weights and inputs are rounded as they will be.

    Gradients go through the rounding as if it were not there.  The ranges of inputs follow what layers are called with
    while training.  ``convert`` then puts quantized weights in their places.

    Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
    Inference", 2018.

    Args:
        model: a layer or model with weights.
        dtype: "int8" or "int4", that of weights.
        quantizes_inputs: whether inputs of dense layers and convolutions are rounded, too.
        where: ``where(path, layer)``, whether a layer is quantized.

    Returns:
        None.

    Raises:
        ArgumentError: for another dtype, or a model without weights to quantize.

    Example:
        >>> model = hf.Sequential([hf.Input((4,)), hf.layers.Dense(2)])
        >>> hf.quantize.prepare_training(model)
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(hf.ones((8, 4)), hf.ones((8, 2)), epochs=3, verbose=0)
        >>> report = hf.quantize.convert(model)
    """
    stage = "quantize.prepare_training"
    _check_dtype(stage, dtype)
    scheme = Scheme(dtype, "aware" if quantizes_inputs else "aware_float")
    layers = _layers(stage, model, where)
    places = [(path, layer, *entry) for path, layer in layers for entry in _weights(layer)]
    for path, _, attribute, weight, _ in places:
        if not isinstance(weight, Variable):
            raise ArgumentError(stage, f"{path}.{attribute} is quantized already.")
    for _, layer, attribute, weight, channels in places:
        takes_input = quantizes_inputs and layer._quantizes_inputs
        setattr(layer, attribute, FakeQuantizedWeight(scheme, weight, channels, takes_input))
        _follow(model, layer, scheme)


def convert(model: Module) -> Report:
    """Put quantized weights in the places of those that ``prepare_training`` let be trained.

    Args:
        model: what was given to ``prepare_training``.

    Returns:
        A ``Report``: the bytes and the error of each weight.

    Raises:
        ArgumentError: where nothing was prepared.

    Example:
        >>> model = hf.Sequential([hf.Input((4,)), hf.layers.Dense(2)])
        >>> hf.quantize.prepare_training(model, quantizes_inputs=False)
        >>> report = hf.quantize.convert(model)
    """
    stage = "quantize.convert"

    def is_prepared(path: str, layer: Any) -> bool:
        return layer.built and any(isinstance(weight, FakeQuantizedWeight) for _, weight, _ in _weights(layer))

    try:
        layers = _layers(stage, model, is_prepared)
    except ArgumentError:
        raise ArgumentError(stage, "no layer is prepared. Call hf.quantize.prepare_training(model) before.") from None

    def scheme_of(layer: Module) -> Scheme:
        (_, first, _), *_ = _weights(layer)
        return Scheme(first._scheme.dtype, "float" if first.input_range is None else "static")

    return _replace_weights(stage, model, layers, scheme_of)


def build_quantized(layer: Any, scheme: Scheme) -> None:
    """Put weights of a scheme, to be loaded, in the places of those with which a layer was built."""
    for attribute, weight, channels in _weights(layer):
        if isinstance(weight, Weight):
            continue
        if scheme.inputs in ("aware", "aware_float"):
            takes_input = scheme.inputs == "aware" and layer._quantizes_inputs
            place: Weight = FakeQuantizedWeight(scheme, weight, channels, takes_input)
        else:
            place = QuantizedWeight(_of_layer(scheme, layer), weight.shape, channels, weight.dtype, attribute)
        setattr(layer, attribute, place)
