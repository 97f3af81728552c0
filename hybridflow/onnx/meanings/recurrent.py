"""Recurrent networks, as one scan for each direction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hybridflow.array import elementwise as ew, shapes
from hybridflow.array.creation import arange, zeros
from hybridflow.array.indexing import take_along_axis
from hybridflow.array.linalg import matmul
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.control.scan import scan
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.operands import expand
from hybridflow.nn import functional
from hybridflow.onnx.meanings import elementwise
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call

Function = Callable[[Any], Any]
# (function of x, alpha, beta; default alpha, default beta)
_ACTIVATIONS: dict[str, tuple[Callable[[Any, float, float], Any], float, float]] = {
    "relu": (lambda x, a, b: functional.relu(x), 0, 0),
    "tanh": (lambda x, a, b: ew.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: ew.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: x * a + b, 1, 0),
    "leakyrelu": (lambda x, a, b: ew.where(ew.less(x, 0), x * a, x), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: ew.where(ew.greater(x, a), x, 0), 1, 0),
    "scaledtanh": (lambda x, a, b: ew.tanh(x * b) * a, 1, 1),
    "hardsigmoid": (lambda x, a, b: ew.maximum(ew.minimum(x * a + b, 1), 0), 0.2, 0.5),
    "elu": (lambda x, a, b: elementwise.elu(None, x, alpha=a), 1, 0),
    "softsign": (lambda x, a, b: functional.softsign(x), 0, 0),
    "softplus": (lambda x, a, b: functional.softplus(x), 0, 0),
}


def _activations(
    call: Call,
    names: Any,
    alphas: Any,
    betas: Any,
    usual: list[str],
    directions: int,
) -> list[list[Function]]:
    """The functions of each direction."""
    names = names or usual * directions
    if len(names) != len(usual) * directions:
        raise call.fault(f"it has {len(names)} activations. Expected {len(usual) * directions}.")
    alphas, betas = list(alphas or []), list(betas or [])
    functions: list[Function] = []
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise call.fault(f"the activation {name!r} is not known.")
        function, alpha, beta = _ACTIVATIONS[name.lower()]
        if name.lower() in ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"):
            alpha = alphas.pop(0) if alphas else alpha
        if name.lower() in ("affine", "scaledtanh", "hardsigmoid"):
            beta = betas.pop(0) if betas else beta
        functions.append(functools.partial(_applied, function, alpha, beta))
    count = len(usual)
    return [functions[k * count : (k + 1) * count] for k in range(directions)]


def _applied(function: Callable[..., Any], alpha: float, beta: float, x: object) -> Any:
    return function(x, alpha, beta)


class Sequences:
    """What the three kinds have in common: operands in order of time, and results in the order of the layout."""

    def __init__(self, call: Call, x: Tensor, lengths: Tensor | None, count: int, direction: str, layout: int) -> None:
        self.call, self.layout = call, layout
        self.x = shapes.permute_dims(x, (1, 0, 2)) if layout else x
        self.steps, self.count = self.x.shape[0], self.x.shape[1]
        self.lengths = None if lengths is None else ew.astype(lengths, dtypes.int64)
        if direction not in ("forward", "reverse", "bidirectional"):
            raise call.fault(f"the direction {direction!r} is not known.")
        self.reversed = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
        if count != len(self.reversed):
            raise call.fault(f"its weights are for {count} directions.")

    @property
    def directions(self) -> int:
        return len(self.reversed)

    def start(self, state: Tensor | None, k: int, units: int | Dim, dtype: DTypeLike) -> Tensor:
        if state is None:
            return zeros((self.count, units), dtype=dtype)
        return state[:, k] if self.layout else state[k]

    def turned(self, x: Tensor) -> Tensor:
        """Each sequence from its end to its start; what lies behind its end stays there."""
        if self.lengths is None:
            return shapes.flip(x, axis=0)
        places = shapes.reshape(arange(self.steps), (self.steps, 1))
        lengths = shapes.reshape(self.lengths, (1, self.count))
        sources = ew.where(ew.less(places, lengths), lengths - 1 - places, places)
        return take_along_axis(x, expand(shapes.expand_dims(sources, axis=2), x.shape), axis=0)

    def direction(
        self, k: int, inputs: Callable[[Tensor], Tensor], step: Callable[..., Any], states: tuple[Tensor, ...]
    ) -> tuple[Tensor, list[Tensor]]:
        """The hidden states of one direction over time, and the last states.  Padding changes no state."""
        x = self.turned(self.x) if self.reversed[k] and self.lengths is not None else self.x
        backwards = self.reversed[k] and self.lengths is None
        rows = inputs(x)
        if self.lengths is None:
            scanned = scan(lambda state, row: step(state, row), rows, states, reverse=backwards)
        else:
            inside = ew.less(shapes.reshape(arange(self.steps), (self.steps, 1)), shapes.reshape(self.lengths, (1, -1)))
            inside = shapes.expand_dims(inside, axis=2)

            def masked(state: Tensor, row: Tensor) -> Any:
                values, valid = row
                return tuple(ew.where(valid, new, old) for new, old in zip(step(state, values), state))

            scanned = scan(masked, (rows, inside), states)
        last = [part[0 if backwards else -1] for part in scanned]
        hidden = scanned[0]
        if self.lengths is not None:
            hidden = ew.where(inside, hidden, 0)
            if self.reversed[k]:
                hidden = self.turned(hidden)
        return hidden, last

    def results(self, parts: list[tuple[Tensor, list[Tensor]]]) -> tuple[Tensor, ...]:
        """[steps, directions, count, units] and the last states [directions, count, units]."""
        hidden = shapes.stack([part for part, _ in parts], axis=1)
        last = [shapes.stack([states[k] for _, states in parts], axis=0) for k in range(len(parts[0][1]))]
        if self.layout:
            hidden = shapes.permute_dims(hidden, (2, 0, 1, 3))
            last = [shapes.permute_dims(state, (1, 0, 2)) for state in last]
        return (hidden, *last)


def _weight(call: Call, w: object, k: int) -> Tensor:
    """The matrix of a direction, turned to stand behind the rows."""
    return call.derive(
        w, ("recurrent", k), lambda array: array[k].T.copy(), lambda tensor: shapes.permute_dims(tensor[k], (1, 0))
    )


def _clipped(function: Function, clip: float | None) -> Function:
    if clip is None:
        return function
    return lambda x: function(ew.minimum(ew.maximum(x, -clip), clip))


def _plus(product: Function, bias: Tensor | None) -> Function:
    """The product of rows with a weight, and a bias if there is one."""
    return product if bias is None else lambda rows: product(rows) + bias


def _gates(rows: Tensor, units: int | Dim, count: int) -> list[Tensor]:
    """The parts of rows that belong to each gate."""
    return [rows[:, j * units : (j + 1) * units] for j in range(count)]


class Settings(NamedTuple):
    """The attributes that say how sequences are gone through."""

    direction: str
    activations: object
    alphas: object
    betas: object
    clip: float | None
    layout: int

    def functions(self, call: Call, usual: list[str], directions: int, clipped: int) -> list[list[Function]]:
        """The activations of each direction, of which the first ``clipped`` have their arguments clipped."""
        activations = _activations(call, self.activations, self.alphas, self.betas, usual, directions)
        return [
            [_clipped(function, self.clip if k < clipped else None) for k, function in enumerate(functions)]
            for functions in activations
        ]


def lstm_of(
    call: Call,
    x: Tensor,
    products: Sequence[tuple[Function, Function]],
    units: Any,
    b: Tensor | None,
    lengths: Tensor | None,
    states: tuple[Tensor | None, Tensor | None],
    p: Tensor | None,
    settings: Settings,
    input_forget: bool,
) -> tuple[Tensor, ...]:
    """An LSTM by the products of inputs and of hidden states with the weights of each direction.

    The gates are input, output, forget, cell.
    """
    run = Sequences(call, x, lengths, len(products), settings.direction, settings.layout)
    functions = settings.functions(call, ["Sigmoid", "Tanh", "Tanh"], run.directions, clipped=2)
    parts = []
    for k, (of_inputs, of_hidden) in enumerate(products):
        f, g, last = functions[k]
        bias = None if b is None else b[k, : 4 * units] + b[k, 4 * units :]
        peep = None if p is None else [p[k, j * units : (j + 1) * units] for j in range(3)]

        def step(
            state: Tensor,
            row: Any,
            of_hidden: Any = of_hidden,
            f: Callable[..., Any] = f,
            g: Callable[..., Any] = g,
            last: Any = last,
            peep: Any = peep,
        ) -> Any:
            hidden, cell = state
            i, o, forget, new = _gates(row + of_hidden(hidden), units, 4)
            if peep is not None:
                i, forget = i + peep[0] * cell, forget + peep[2] * cell
            i = f(i)
            forget = 1 - i if input_forget else f(forget)
            cell = forget * cell + i * g(new)
            if peep is not None:
                o = o + peep[1] * cell
            return f(o) * last(cell), cell

        first = tuple([run.start(state, k, units, x.dtype) for state in states])
        parts.append(run.direction(k, _plus(of_inputs, bias), step, first))
    return run.results(parts)


@operator("LSTM", since=7, raw=(1, 2))
def lstm(
    call: Call,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
    c: Tensor | None = None,
    p: Tensor | None = None,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: object = None,
    activation_alpha: object = None,
    activation_beta: object = None,
    clip: float | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    products = [(_product(_weight(call, w, k)), _product(_weight(call, r, k))) for k in range(w.shape[0])]
    settings = Settings(direction, activations, activation_alpha, activation_beta, clip, layout)
    return lstm_of(call, x, products, r.shape[-1], b, lengths, (h, c), p, settings, bool(input_forget))


def _product(weight: Tensor) -> Function:
    return lambda rows: matmul(rows, weight)


@operator("GRU", since=7, raw=(1, 2))
def gru(
    call: Call,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Tensor, ...]:
    """The gates are update, reset, hidden."""
    run = Sequences(call, x, lengths, w.shape[0], direction, layout)
    units = r.shape[-1]
    settings = Settings(direction, activations, activation_alpha, activation_beta, clip, layout)
    functions = settings.functions(call, ["Sigmoid", "Tanh"], run.directions, clipped=2)
    parts = []
    for k in range(run.directions):
        f, g = functions[k]
        weight, recurrent = _weight(call, w, k), _weight(call, r, k)
        wb = None if b is None else b[k, : 3 * units]
        rb = None if b is None else b[k, 3 * units :]

        def step(
            state: Any,
            row: Any,
            recurrent: Any = recurrent,
            rb: Any = rb,
            f: Any = f,
            g: Any = g,
        ) -> Any:
            (hidden,) = state
            gates = 3 if linear_before_reset else 2  # that are made of the hidden state as it is
            some = None if rb is None else rb[: gates * units]
            of_hidden = _gates(_plus(_product(recurrent[:, : gates * units]), some)(hidden), units, gates)
            z, reset = (f(of_row + part) for of_row, part in zip(_gates(row, units, 2), of_hidden))
            if linear_before_reset:
                inner = reset * of_hidden[2]
            else:
                rest = None if rb is None else rb[2 * units :]
                inner = _plus(_product(recurrent[:, 2 * units :]), rest)(reset * hidden)
            new = g(row[:, 2 * units :] + inner)
            return ((1 - z) * new + z * hidden,)

        inputs = _plus(_product(weight), wb)
        parts.append(run.direction(k, inputs, step, (run.start(h, k, units, x.dtype),)))
    return run.results(parts)


@operator("RNN", since=7, raw=(1, 2))
def rnn(
    call: Call,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
    *,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: object = None,
    activation_alpha: object = None,
    activation_beta: object = None,
    clip: float | None = None,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    run = Sequences(call, x, lengths, w.shape[0], direction, layout)
    units = r.shape[-1]
    settings = Settings(direction, activations, activation_alpha, activation_beta, clip, layout)
    functions = settings.functions(call, ["Tanh"], run.directions, clipped=1)
    parts = []
    for k in range(run.directions):
        (f,) = functions[k]
        weight, recurrent = _weight(call, w, k), _weight(call, r, k)
        bias = None if b is None else b[k, :units] + b[k, units:]

        def step(state: Tensor, row: Tensor, recurrent: ArrayLike = recurrent, f: Callable[..., object] = f) -> Any:
            return (f(row + matmul(state[0], recurrent)),)

        inputs = _plus(_product(weight), bias)
        parts.append(run.direction(k, inputs, step, (run.start(h, k, units, x.dtype),)))
    return run.results(parts)
