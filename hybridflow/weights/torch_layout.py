"""How PyTorch's modules keep what a layer of hybridflow has: by rules for each class of layers, never by shapes alone.

A linear layer's weight may be square, and then fits both ways round; so only a rule turns an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.weights.arrays import Weights
from hybridflow.weights.assigning import Assignment, direct_variables

if TYPE_CHECKING:
    from hybridflow.layers.layer import Layer


Turn = Callable[[np.ndarray], np.ndarray]


class _Rule(NamedTuple):
    """One variable of a layer, made of arrays of a module.  ``text`` says what ``make`` does with them."""

    variable: str
    sources: tuple[str, ...]
    make: Callable[..., np.ndarray]
    text: str


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _same_name(variable: str, source: str) -> _Rule:
    return _Rule(variable, (source,), _same, "")


def _transposed(variable: str, source: str, axes: tuple[int, ...]) -> _Rule:
    return _Rule(variable, (source,), lambda x: np.ascontiguousarray(x.transpose(axes)), f"transposed {axes}")


_BIAS = _same_name("bias", "bias")
_ATTENTION_MODULES = "attention", "self"  # with query, key and value, in Hugging Face's vision and language models
_NORM = [_same_name("gamma", "weight"), _same_name("beta", "bias")]


def _dense(layer: object) -> list[_Rule]:
    return [_transposed("kernel", "weight", (1, 0)), _BIAS]


def _convolution(layer: Any) -> list[_Rule]:
    """[out, in, *window] to [*window, in, out]; of transposed ones [in, out, *window] to [*window, out, in]."""
    rank = len(layer.kernel.shape)
    return [_transposed("kernel", "weight", (*range(2, rank), 1, 0)), _BIAS]


def _depthwise(layer: Any) -> list[_Rule]:
    """[in * multiplier, 1, *window] to [*window, in, multiplier]."""
    *_, channels, multiplier = (int(extent) for extent in layer.kernel.shape)

    def make(array: np.ndarray) -> np.ndarray:
        moved = np.moveaxis(array[:, 0], 0, -1)
        return np.ascontiguousarray(moved.reshape(*moved.shape[:-1], channels, multiplier))

    return [_Rule("kernel", ("weight",), make, "filters of each channel moved last"), _BIAS]


def _batch_norm(layer: object) -> list[_Rule]:
    return [*_NORM, _same_name("moving_mean", "running_mean"), _same_name("moving_variance", "running_var")]


def _recurrent(layer: object, suffix: str = "") -> list[_Rule]:
    """Weights are [gates * units, inputs], the gates in Keras's order i, f, g, o; the two biases are added."""
    names = [f"{name}_l0{suffix}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    return [
        _Rule("cell.kernel", (names[0],), lambda x: np.ascontiguousarray(x.T), "transposed (1, 0)"),
        _Rule("cell.recurrent_kernel", (names[1],), lambda x: np.ascontiguousarray(x.T), "transposed (1, 0)"),
        _Rule("cell.bias", (names[2], names[3]), np.add, "two biases added"),
    ]


def _gated(layer: object, suffix: str = "") -> list[_Rule]:
    """A GRU: gates r, z, n there, and z, r, n here; two biases in both, as ``reset_after`` has them."""

    def gates(array: np.ndarray) -> np.ndarray:
        reset, update, new = np.split(array, 3)
        return np.concatenate([update, reset, new])

    def kernel(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(gates(array).T)

    def bias(inputs: np.ndarray, state: np.ndarray) -> np.ndarray:
        return np.stack([gates(inputs), gates(state)])

    names = [f"{name}_l0{suffix}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    return [
        _Rule("cell.kernel", (names[0],), kernel, "gates z, r, n, transposed (1, 0)"),
        _Rule("cell.recurrent_kernel", (names[1],), kernel, "gates z, r, n, transposed (1, 0)"),
        _Rule("cell.bias", (names[2], names[3]), bias, "gates z, r, n"),
    ]


def _bidirectional(layer: Any) -> list[_Rule]:
    inner = type(layer.forward_layer).__name__
    rules = {"LSTM": _recurrent, "SimpleRNN": _recurrent, "GRU": _gated}.get(inner)
    if rules is None:
        return []
    parts = (("forward_layer", ""), ("backward_layer", "_reverse"))
    return [
        rule._replace(variable=f"{part}.{rule.variable}")
        for part, suffix in parts
        for rule in rules(getattr(layer, part), suffix)
    ]


def _attention(layer: Any) -> list[_Rule]:
    """``in_proj_weight`` [3 * width, width] in three parts, of which each is [heads * size, width] to [width, heads,
    size]; or the three of Hugging Face's modules, by names of their own."""
    rules = []
    for number, part in enumerate(("query", "key", "value")):
        width, heads, size = (int(extent) for extent in getattr(layer, f"{part}_kernel").shape)

        def kernel(array: np.ndarray, shape: tuple[int, ...] = (width, heads, size)) -> np.ndarray:
            return np.ascontiguousarray(array.T.reshape(shape))

        def bias(array: np.ndarray, shape: tuple[int, ...] = (heads, size)) -> np.ndarray:
            return array.reshape(shape)

        for name, make in (("kernel", kernel), ("bias", bias)):
            variable = f"{part}_{name}"
            source = name.replace("kernel", "weight")
            text = f"part {number} of 3, by heads"
            rules.append(_Rule(variable, (f"in_proj_{source}",), _of_thirds(make, number), text))
            for module in _ATTENTION_MODULES:
                rules.append(_Rule(variable, (f"{module}.{part}.{source}",), make, "by heads"))
    heads, size, _ = (int(extent) for extent in layer.output_kernel.shape)

    def output(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.T.reshape(heads, size, -1))

    for name in ("out_proj", "output.dense"):
        rules.append(_Rule("output_kernel", (f"{name}.weight",), output, "transposed (1, 0), by heads"))
        rules.append(_same_name("output_bias", f"{name}.bias"))
    return rules


def _of_thirds(make: Turn, number: int) -> Turn:
    return lambda array: make(np.split(array, 3)[number])


def _prelu(layer: Any) -> list[_Rule]:
    """One factor, or one for each channel, which are last here."""
    shape = tuple(int(extent) for extent in layer.alpha.shape)
    return [_Rule("alpha", ("weight",), lambda x: np.array(np.broadcast_to(x, shape)), "spread over the other axes")]


_RULES: dict[str, Callable[[Any], list[_Rule]]] = {
    "Dense": _dense,
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D"), _convolution),
    **dict.fromkeys(("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"), _convolution),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D"), _depthwise),
    "BatchNormalization": _batch_norm,
    **dict.fromkeys(("LayerNormalization", "GroupNormalization"), lambda layer: _NORM),
    "RMSNormalization": lambda layer: [_same_name("scale", "weight")],
    "Embedding": lambda layer: [_same_name("embeddings", "weight")],
    "PReLU": _prelu,
    **dict.fromkeys(("LSTM", "SimpleRNN"), _recurrent),
    "GRU": _gated,
    "Bidirectional": _bidirectional,
    "MultiHeadAttention": _attention,
}
_DROPPED = ("num_batches_tracked", "position_ids")  # counters, which no layer has


def is_dropped(name: str) -> bool:
    """Whether it is one of PyTorch's counters, which are no weights."""
    return name.rpartition(".")[2] in _DROPPED


def assignments(model: Any, weights: Weights, flattened: dict[int, tuple[int, ...]]) -> Iterator[Assignment]:
    """What a file has for a model, whose layers are found by their paths and names.

    ``flattened`` has the shape that a dense layer's input had before it was flattened, by the layer's id.
    """
    for path, layer in model._named_modules():
        rules = _rules(layer)
        for prefix in _prefixes(path, layer):
            rules_met = [rule for rule in rules if all(f"{prefix}{source}" in weights for source in rule.sources)]
            if rules_met:
                for rule in rules_met:
                    yield _assignment(layer, path, prefix, rule, weights, flattened)
                break


def _rules(layer: Layer) -> list[_Rule]:
    for kind in type(layer).__mro__:
        if kind.__name__ in _RULES:
            return _RULES[kind.__name__](layer) if getattr(layer, "built", True) else []
    return [_same_name(name, name) for name, _ in direct_variables(layer)]


def _prefixes(path: str, layer: Any) -> Iterable[str]:
    """How the names of a layer may begin: its path, the path without ``layers.``, its name."""
    short = ".".join(part for part in path.split(".") if part != "layers")
    names = [path, short, layer.name, f"{short.rpartition('.')[0]}.{layer.name}".lstrip(".")]
    return [f"{name}." if name else "" for name in dict.fromkeys(names)]


def _assignment(
    layer: object, path: str, prefix: str, rule: _Rule, weights: Weights, flattened: dict[int, tuple[int, ...]]
) -> Assignment:
    variable = _at(layer, rule.variable)
    sources = [f"{prefix}{source}" for source in rule.sources]
    make, text = rule.make, rule.text
    spatial = flattened.get(id(layer))
    if spatial is not None and rule.variable == "kernel":
        make, text = _unflattened(make, spatial), f"{text}, rows from channels first to channels last"

    def load() -> np.ndarray:
        return make(*[weights.numpy(source) for source in sources])

    # Shapes come of the arrays' own: what is made of zeros of these shapes.
    shape = _shape_of_rule(make, [weights.shape(source) for source in sources])
    return Assignment(f"{path}.{rule.variable}" if path else rule.variable, variable, tuple(sources), shape, load, text)


def _shape_of_rule(make: Callable[..., np.ndarray], shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of what a rule makes; that of the first array where the rule does not fit."""
    try:
        return make(*[np.broadcast_to(np.zeros((), np.bool_), shape) for shape in shapes]).shape
    except (ValueError, IndexError):
        return shapes[0]


def _unflattened(make: Turn, spatial: tuple[int, ...]) -> Turn:
    """Rows of a dense layer's kernel in the order [*spatial, channels], of those in the order [channels, *spatial]."""
    *extents, channels = spatial

    def turned(array: np.ndarray) -> np.ndarray:
        kernel = make(array)
        moved = np.moveaxis(kernel.reshape(channels, *extents, kernel.shape[-1]), 0, -2)
        return np.ascontiguousarray(moved.reshape(kernel.shape))

    return turned


def _at(layer: object, path: str) -> Any:
    for part in path.split("."):
        layer = getattr(layer, part)
    return layer
