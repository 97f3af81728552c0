"""recompute_grad: a function whose inner values are computed again for its derivative instead of being kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hybridflow.autodiff.custom import VariableWatcher, with_derivative
from hybridflow.autodiff.tape import GradientTape
from hybridflow.compiler.ir.dtypes import is_float
from hybridflow.core import pytree
from hybridflow.core.context import now, recorded_by
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.errors import ArgumentTypeError, entered
from hybridflow.jit.python_wrappers import converted
from hybridflow.tracing.batch_trace import run_graph
from hybridflow.tracing.effect_token import ORDER
from hybridflow.tracing.subtrace import CapturedVariable, SubTrace, all_operands

_Cotangents = Sequence["Tensor | None"]


@entered
def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Gradient checkpointing (rematerialization): the backward pass runs the function again.

    Intermediate values of ``f`` are not kept. This takes less memory, and more time.

    The second run sees the same variables and the same state of random generators as the first: dropout drops the same
    elements. Its assignments are discarded; its prints are repeated. Derivatives of any order work, eagerly and in
    compiled functions.

    Args:
        f: a function of tensors.

    Returns:
        A function of the same arguments that returns what ``f`` does.

    >>> block = hf.recompute_grad(lambda x: hf.tanh(hf.exp(x) * x))
    >>> hf.grad(block)(hf.asarray(0.0))
    <Tensor f32[] cpu> 1.0
    """
    if not callable(f):
        raise ArgumentTypeError("recompute_grad", f"{f!r:.60} is not callable; give the function.")

    @functools.wraps(f, updated=())
    def recomputed(*args: object, **kwargs: object) -> Any:
        tapes = now().tapes
        watcher = _Watcher([x for x in pytree.flatten((args, kwargs))[0] if isinstance(x, Tensor)])
        with recorded_by((watcher,)):
            result = f(*args, **kwargs)
        trainable = [variable for variable, _ in watcher.reads.values()]
        reads = [*watcher.reads.values(), *watcher.others.values()]
        for variable, x in watcher.reads.values():
            for tape in tapes:
                tape.watch_read(variable, x)
        for told in tapes:  # where f is part of such another function, that has to know
            for variable, x in watcher.assigned.values():
                told.note_assign(variable, x)
        assigned = [variable for variable, _ in watcher.assigned.values()]
        is_traced = now().trace is not None
        captured = [x for x in watcher.captured if is_traced or any(tape.tracks(x) for tape in tapes)]
        again = _Again(f, args, kwargs, reads, len(trainable), assigned, captured)
        return with_derivative((*again.tensors, *(x for _, x in watcher.reads.values()), *captured), result, again)

    return entered(recomputed)


class _Watcher(VariableWatcher):
    """Learns too which float tensors a function uses that it was not ``given``, and has not made."""

    __slots__ = ("_captured", "_known")

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        super().__init__()
        self._known = {id(x): x for x in tensors}
        self._captured: dict[int, Tensor] = {}

    @property
    def captured(self) -> list[Tensor]:
        read = {id(x) for _, x in (*self.reads.values(), *self.others.values())}
        return [x for key, x in self._captured.items() if key not in read]

    def record(self, op: object, inputs: Sequence[Tensor], attrs: object, out: object) -> None:
        self.record_custom(inputs, out if isinstance(out, tuple) else (out,))

    def record_custom(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], *how: Any) -> None:
        for x in inputs:
            if id(x) not in self._known and is_float(x.dtype):
                self._captured[id(x)] = x
        self._known.update((id(x), x) for x in outputs)


class _Again:
    """The derivative of a call: ``reads`` are the variables that it read, with what it found; the first ``trained``
    have derivatives.  ``assigned`` are those that it assigned, ``captured`` the tensors that it finds by itself."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: object,
        kwargs: object,
        reads: list[tuple[Variable, Tensor]],
        trained: int,
        assigned: list[Variable],
        captured: list[Tensor],
    ) -> None:
        self._captured = captured
        self._f, self._reads, self._trained, self._assigned = f, reads, trained, assigned
        self._leaves, self._structure = pytree.flatten((args, kwargs))

    @property
    def tensors(self) -> list[Tensor]:
        return [x for x in self._leaves if isinstance(x, Tensor)]

    def __call__(self, *cotangents: Tensor | None) -> _Cotangents:
        seed = next((g for g in cotangents if g is not None), None)
        if seed is None:
            return [None] * (len(self.tensors) + self._trained + len(self._captured))
        if now().trace is None:
            with _as_before(self._reads, self._assigned):
                return self._gradients(self._f, self.tensors, cotangents)
        return self._traced(cotangents, seed)

    def _gradients(
        self, f: Callable[..., Any], tensors: Sequence[Tensor], cotangents: _Cotangents, parts: Sequence[Any] = ()
    ) -> list[Tensor | None]:
        """Run the function on these tensors, and its derivative.  ``parts`` stand for the variables, if not they
        themselves."""
        sources = [
            *(_own_tensors(x) for x in tensors),
            *(parts or [variable for variable, _ in self._reads[: self._trained]]),
        ]
        rest = iter(sources)
        sources += self._captured
        leaves = [next(rest) if isinstance(x, Tensor) else x for x in self._leaves]
        args, kwargs = pytree.unflatten(self._structure, leaves)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x for x in sources if is_float(x.dtype)])
            results = [x for x in pytree.flatten(f(*args, **kwargs))[0] if isinstance(x, Tensor)]
        pairs = [(x, g) for x, g in zip(results, cotangents) if g is not None]
        result = tape.gradient([x for x, _ in pairs], sources, [g for _, g in pairs])
        return result

    def _traced(self, cotangents: _Cotangents, seed: Tensor) -> list[Tensor | None]:
        """The same in a region, where variables are what they were, and stay what they are."""
        inputs = [_after(x, seed) for x in (*self.tensors, *(x for _, x in self._reads))]
        region = SubTrace("recompute_grad")
        stand_ins = [region.carry(x.type, f"x{k}") for k, x in enumerate(inputs)]
        count = len(self.tensors)
        for (variable, _), stand_in in zip(self._reads, stand_ins[count:]):
            region._held[id(variable)] = CapturedVariable(variable, stand_in, None)
        with region.entered():
            f = converted(self._f, "recompute_grad")
            gradients = self._gradients(f, stand_ins[:count], cotangents, stand_ins[count : count + self._trained])
        effects = [variable for variable in region.assigned if variable is ORDER]
        outputs = [*(g for g in gradients if g is not None), *map(region.value_of, effects)]
        operands = all_operands([(region, outputs)])
        graph = region.graph("recompute_grad", stand_ins, operands, outputs)
        results = iter(run_graph(graph, [*inputs, *operands]))
        totals = [None if g is None else next(results) for g in gradients]
        for order, token in zip(effects, results):
            order.assign(token)
        return totals


def _own_tensors(x: Tensor) -> Tensor:
    """A tensor of its own, told from those that the function meets elsewhere."""
    return builder.reshape(x, shape=x.shape)


def _after(x: Tensor, g: Tensor) -> Tensor:
    """``x`` as something that is there when ``g`` is: a compiled program makes what depends on it then, and does not
    take for it what it made of ``x`` before."""
    if g.type.size == 0 or x.type.size == 0:
        return x
    rank = len(g.shape)
    first = builder.slice(g, start=(0,) * rank, stop=(1,) * rank, step=(1,) * rank)
    mark = builder.convert(builder.reshape(first, shape=()), dtype=x.dtype)
    if x.shape:
        mark = builder.broadcast(mark, shape=x.shape, axes=())
    return builder.after(x, builder.stop_gradient(mark))


@contextmanager
def _as_before(reads: Sequence[tuple[Variable, Tensor]], assigned: Sequence[Variable]) -> Iterator[None]:
    """Let variables have the values that were read of them, for as long as the block takes, and what they have now when
    it is over; those too that it only assigns."""
    variables = {id(variable): variable for variable in (*(variable for variable, _ in reads), *assigned)}
    present = [(variable, variable._current()) for variable in variables.values()]
    try:
        for variable, x in reads:
            if variable._tensor is not x:
                variable._write(x)
        yield
    finally:
        for variable, x in present:
            if variable._tensor is not x:
                variable._write(x)
