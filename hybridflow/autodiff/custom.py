"""custom_gradient: a function with a derivative of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from hybridflow.autodiff.conjugation import conjugate
from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.core import pytree
from hybridflow.core.context import current, pop_tape, push_tape
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentTypeError, GradientError, ShapeError


class VariableWatcher:
    """Stands among the tapes to learn which variables a function reads, and what it finds there at first: ``reads`` are
    those that tapes watch, ``others`` the others, ``assigned`` those that it assigns with what it assigned last, all by
    id."""

    __slots__ = ("_recording", "assigned", "others", "reads")
    takes_wholes = is_forward = False

    def __init__(self) -> None:
        self._recording = True
        self.reads: dict[int, tuple[Variable, Tensor]] = {}
        self.others: dict[int, tuple[Variable, Tensor]] = {}
        self.assigned: dict[int, tuple[Variable, Tensor]] = {}

    def record(self, *what: Any) -> None:
        """Ops are of no interest."""

    record_custom = record_whole = follow = record

    def watch_read(self, variable: Variable, tensor: Tensor) -> None:
        if id(variable) not in self.assigned:
            table = self.reads if variable.is_watched else self.others
            table.setdefault(id(variable), (variable, tensor))

    def note_assign(self, variable: Variable, value: Tensor) -> None:
        """What is read from now on is what was assigned."""
        self.assigned[id(variable)] = variable, value

    def watches(self, variable: Variable) -> bool:
        return False

    def tracks(self, tensor: Tensor) -> bool:
        return False

    def rename(self, tensor: Tensor, before: Tensor, after: Tensor) -> None:
        pass

    def alias(self, tensor: Tensor, other: Tensor) -> None:
        pass


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that defines the gradient of a function.

    When ``function`` reads trainable variables, ``grad_fn`` must take ``variables=``. It then returns the pair
    (cotangents of the arguments, cotangents of the variables). Higher derivatives differentiate ``grad_fn``.

    Args:
        function: ``function(*args)`` returns ``(outputs, grad_fn)``. ``grad_fn`` takes one cotangent per output tensor,
            and returns one per tensor argument (None for no derivative).

    Returns:
        A function of the same arguments that returns ``outputs``; ``grad_fn`` is its gradient.

    >>> @hf.custom_gradient
    ... def clipped(x):
    ...     return x * x, lambda g: hf.clip(g * 2 * x, -1, 1)
    ...
    >>> hf.grad(lambda x: hf.sum(clipped(x)))(hf.asarray([0.25, 5.0]))
    <Tensor f32[2] cpu> [0.5 1. ]
    """

    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> Any:
        stage = getattr(function, "__name__", "custom_gradient")
        watcher = VariableWatcher()
        # The tapes go on recording: what grad_fn closes over may depend on the arguments, for second derivatives.
        try:
            push_tape(watcher)
            result = function(*args, **kwargs)
        finally:
            pop_tape(watcher)
        if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
            raise ArgumentTypeError(stage, "a custom_gradient function must return a pair (outputs, grad_fn).")
        outputs, grad_fn = result
        inputs = tuple(x for x in pytree.flatten((args, kwargs))[0] if isinstance(x, Tensor))
        variables = [variable for variable, _ in watcher.reads.values()]
        derivative = _UserDerivative(stage, grad_fn, inputs, variables)
        derivative.output_types = tuple(x.type for x in pytree.flatten(outputs)[0] if isinstance(x, Tensor))
        return with_derivative((*inputs, *(tensor for _, tensor in watcher.reads.values())), outputs, derivative)

    return wrapper


def with_derivative(inputs: tuple[Tensor, ...], outputs: object, vjp: Callable[..., Any]) -> Any:
    """``outputs``, nested, as tensors of which tapes and traces know ``vjp`` as the derivative with respect to
    ``inputs``, and no other."""
    leaves, structure = pytree.flatten(outputs)
    with_paths = [_fresh(x) if isinstance(x, Tensor) else x for x in leaves]
    tensors = tuple(x for x in with_paths if isinstance(x, Tensor))
    trace = current.trace
    if trace is not None:
        trace.add_custom_vjp(inputs, tensors, vjp)
    for tape in current.tapes:
        tape.record_custom(inputs, tensors, vjp)
    return pytree.unflatten(structure, with_paths)


def _fresh(x: Tensor) -> Tensor:
    return builder.stop_gradient(x)


class _UserDerivative:
    """Calls the user's grad_fn, and checks what it returns."""

    __slots__ = ("_grad_fn", "_input_types", "_stage", "_variables", "output_types")

    def __init__(
        self, stage: str, grad_fn: Callable[..., Any], inputs: tuple[Tensor, ...], variables: list[Variable]
    ) -> None:
        if variables and not _takes_variables(grad_fn):
            names = ", ".join(v.name or str(v._tensor.type) for v in variables)
            raise ArgumentTypeError(
                stage,
                f"the function reads trainable variables ({names}), so its grad_fn must take a `variables` keyword and "
                "return (cotangents of the arguments, cotangents of the variables).",
            )
        self._stage, self._grad_fn, self._variables = stage, grad_fn, variables
        self._input_types = tuple(x.type for x in inputs)
        self.output_types: tuple[Any, ...] = ()

    def __call__(self, *cotangents: Tensor | None) -> list[Tensor | None]:
        filled = [builder.full(0, t) if g is None else conjugate(g) for g, t in zip(cotangents, self.output_types)]
        trace: Any = current.trace
        if trace is None:
            return self._asked(filled)
        assumptions = trace.root.assumptions
        before, assumptions.is_asked_by_user = assumptions.is_asked_by_user, True
        try:
            return self._asked(filled)
        finally:
            assumptions.is_asked_by_user = before

    def _asked(self, filled: list[Tensor]) -> list[Tensor | None]:
        if not self._variables:
            return self._checked(self._grad_fn(*filled), self._input_types, "argument")
        result = self._grad_fn(*filled, variables=list(self._variables))
        if not isinstance(result, tuple) or len(result) != 2:
            raise GradientError(
                self._stage, "grad_fn must return the pair (cotangents of the arguments, cotangents of the variables)."
            )
        return self._checked(result[0], self._input_types, "argument") + self._checked(
            result[1], tuple(v._tensor.type for v in self._variables), "variable"
        )

    def _checked(self, value: object, types: tuple[Any, ...], what: str) -> list[Tensor | None]:
        leaves = pytree.flatten(value)[0]
        if not types and leaves == [None]:
            return []
        if len(leaves) != len(types):
            raise GradientError(
                self._stage,
                f"grad_fn returned {len(leaves)} cotangents for {len(types)} tensor {what}s. Return one for each, "
                "in their order: None where there is none.",
            )
        out: list[Tensor | None] = []
        for k, (g, type) in enumerate(zip(leaves, types)):
            if g is None or not is_inexact(type.dtype):
                out.append(None)
                continue
            g = as_tensor(g, self._stage, type.dtype)
            if g.shape != type.shape:
                raise ShapeError(self._stage, f"grad_fn returned {g.type} for {what} {k}, which is {type}.")
            out.append(conjugate(g))
        return out


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(grad_fn).parameters
    except (TypeError, ValueError):
        return True
    return "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
