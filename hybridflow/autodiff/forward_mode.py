"""Forward mode: ``ForwardAccumulator``, and the tangents of what a tape recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from hybridflow.autodiff.tape import GradientTape, ones
from hybridflow.compiler.autodiff import Record, Results
from hybridflow.compiler.forward_mode import forward, pushed
from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.compiler.ir.types import same_extents
from hybridflow.core import pytree
from hybridflow.core.context import add_recorder, now, pop_tape, push_tape, recorded_by
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, GradientError, ShapeError, entered

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


def through(record: Record, tangents: Sequence[Any]) -> list[Any]:
    """The tangents of the outputs of something with a derivative of its own: of a program op by op.  Anything else is
    linear in the cotangents: it is differentiated with respect to these, and it does not matter what they are."""
    push = getattr(record.vjp, "push", None)
    if push is not None:
        return list(push(tangents, through))
    cotangents = [ones(out) if is_inexact(out.dtype) else None for out in record.outputs]
    floats = [g for g in cotangents if g is not None]
    vjp: Any = record.vjp
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(floats)
        more = {"so_far": [None] * len(record.inputs)} if getattr(vjp, "accumulates", False) else {}
        shares = vjp(*cotangents, **more)
    pairs = [(share, t) for share, t in zip(shares, tangents) if share is not None and t is not None]
    if not pairs or not floats:
        return [None] * len(cotangents)
    pulled_back = iter(tape.gradient([share for share, _ in pairs], floats, [t for _, t in pairs]))
    return [None if g is None else next(pulled_back) for g in cotangents]


def pushed_through(records: Sequence[Record], seeds: Sequence[tuple[Any, Any]], targets: Sequence[Any]) -> list[Any]:
    """The tangents of ``targets``, None for those that do not move with the seeded values."""
    out_tangents = forward(builder, records, seeds, through)
    return [out_tangents.get(id(target)) for target in targets]


def checked_tangent(stage: str, value: Operators, tangent: ArrayLike, path: str) -> Tensor:
    """A tangent as a tensor of the type of what moves.  Raises DTypeError or ShapeError where it is of another."""
    if not is_inexact(value.dtype):
        raise DTypeError(stage, f"{path} is {value.type}; only floats have tangents. Convert it to a float first.")
    result = as_tensor(tangent, stage, value.dtype)
    if not same_extents(result.shape, value.shape):
        raise ShapeError(stage, f"the tangent of {path} is {result.type}, and {path} is {value.type}.")
    return result


class ForwardAccumulator:
    """Forward-mode automatic differentiation: directional derivatives (JVPs) are computed as operations run.

    The derivatives are those of what is computed from ``primals``, where these move along ``tangents``. ``jvp(target)``
    is the tangent of what was computed.

    Accumulators nest, in one another and with tapes, either way. The gradient of a tape inside has a tangent: a product
    of the Hessian and a vector. A tape outside of an accumulator differentiates its tangents. The tangents of an inner
    accumulator have tangents in the outer one.

    Args:
        primals: tensors or variables, nested or alone.
        tangents: tensors of the structure and shapes of ``primals``.

    Raises:
        ArgumentError: for tangents of another structure.
        ShapeError: for a tangent whose shape is not that of its primal.

    >>> x = hf.asarray([1.0, 2.0])
    >>> with hf.ForwardAccumulator(x, hf.asarray([1.0, 0.0])) as acc:
    ...     with hf.GradientTape() as tape:
    ...         tape.watch(x)
    ...         y = hf.sum(x**3)
    ...     gradient = tape.gradient(y, x)
    >>> acc.jvp(y), acc.jvp(gradient)
    (<Tensor f32[] cpu> 3.0, <Tensor f32[2] cpu> [6. 0.])
    """

    __slots__ = ("__weakref__", "_primals", "_recording", "_tangents", "_used", "_variables")
    takes_wholes, is_forward = False, True

    @entered
    def __init__(self, primals: object, tangents: object) -> None:
        stage = "ForwardAccumulator"
        leaves, structure = pytree.flatten(primals)
        try:
            tangent_leaves = pytree.flatten_up_to(structure, tangents, "tangents")
        except ValueError as error:
            raise ArgumentError(stage, f"{error}, as in the primals.") from None
        self._recording = self._used = False
        self._tangents: dict[int, tuple[Any, Tensor]] = {}  # of values, by id
        self._variables: dict[int, tuple[Variable, Tensor]] = {}
        self._primals: list[Record] = []  # what has a derivative of its own, and outputs that may get more
        for k, (leaf, (_, tangent)) in enumerate(zip(leaves, tangent_leaves)):
            path = pytree.paths(structure, "primals")[k]
            if not isinstance(leaf, (Tensor, Variable)):
                raise ArgumentTypeError(
                    stage, f"{path} is a {type(leaf).__name__}; primals are tensors or variables. Make it one with "
                    "hf.constant(value)."
                )  # fmt: skip
            table: dict[int, Any] = self._variables if isinstance(leaf, Variable) else self._tangents
            moved = checked_tangent(stage, leaf, tangent, path)
            known = table.get(id(leaf))
            table[id(leaf)] = leaf, moved if known is None else builder.add(known[1], moved)
        add_recorder(self)

    def __enter__(self) -> ForwardAccumulator:
        if self._recording or self._used:
            raise GradientError(
                "ForwardAccumulator", "it has been entered already. Make another one for another block."
            )
        try:
            self._recording = self._used = True
            push_tape(self)
            trace = now().trace
            if trace is not None:
                trace.depends_on_identity = True
        except BaseException:  # of a signal handler
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._recording = False
            pop_tape(self)
        except BaseException:  # of a signal handler
            self._recording = False
            pop_tape(self)
            raise

    @entered
    def jvp(self, primals: object, unconnected_gradients: str = "none") -> Any:
        """The tangents of what was computed in the block.

        Args:
            primals: tensors and variables, alone or nested.
            unconnected_gradients: "none" or "zero": what stands for a value that does not move.

        Returns:
            Tangents in the structure of ``primals``, each with the shape and dtype of its primal, or None.

        Raises:
            ArgumentError: for another ``unconnected_gradients``.
            ArgumentTypeError: for anything but tensors and variables.

        >>> x = hf.constant(3.0)
        >>> with hf.ForwardAccumulator(x, hf.constant(1.0)) as accumulator:
        ...     y = x * x
        >>> accumulator.jvp(y).item()
        6.0
        """
        if unconnected_gradients not in ("none", "zero"):
            raise ArgumentError(
                "ForwardAccumulator.jvp",
                f'unconnected_gradients must be "none" or "zero", got {unconnected_gradients!r}.',
            )
        leaves, structure = pytree.flatten(primals)
        products = []
        for k, leaf in enumerate(leaves):
            if not isinstance(leaf, (Tensor, Variable)):
                path = pytree.paths(structure, "primals")[k]
                raise ArgumentTypeError(
                    "ForwardAccumulator.jvp", f"{path} is a {type(leaf).__name__}; only tensors have tangents."
                )
            tangent = self._variables[id(leaf)][1] if id(leaf) in self._variables else self._tangent(leaf)
            if tangent is None and unconnected_gradients == "zero":
                tangent = builder.full(0, leaf.type)
            products.append(tangent)
        return pytree.unflatten(structure, products)

    # ---- what a recorder is told

    def record(self, op: OpDef, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], out: Any) -> None:
        """Called for each op in the block: its tangent follows from those of its inputs.

        Args:
            op: the op.
            inputs: the tensors that it is applied to.
            attrs: its attributes by name.
            out: its result, or a tuple of several.
        """
        in_tangents = [self._tangent(x) for x in inputs]
        if not self._recording or all(t is None for t in in_tangents):
            return
        several = type(out) is tuple
        with self._outside():
            out_tangents = pushed(builder, op, inputs, attrs, Results(out) if several else out, in_tangents)
        self._keep(out if several else (out,), (out_tangents or ()) if several else (out_tangents,))

    def record_custom(self, inputs: tuple[Any, ...], outputs: Sequence[Any], vjp: Any) -> None:
        """Called for what is computed in another way, with a derivative of its own.

        Args:
            inputs: what it is computed from.
            outputs: the results; a list may get more entries later.
            vjp: the cotangents of inputs, of those of outputs.
        """
        if not self._recording or all(self._tangent(x) is None for x in inputs):
            return
        record = Record(None, inputs, {}, outputs, vjp)
        if type(outputs) is list:  # which may get more entries
            self._primals.append(record)
        self._push(record, outputs)

    def follow(self, value: object, outputs: Sequence[Any]) -> None:
        """Called when a value turns out to be one more of an operation's outputs.

        Args:
            value: the value.
            outputs: the outputs that are known.
        """
        record = next((r for r in self._primals if r.outputs is outputs), None)
        if record is not None and self._tangent(value) is None:
            self._push(record, (value,))

    def _push(self, record: Record, wanted: Sequence[Any]) -> None:
        in_tangents = [self._tangent(x) for x in record.inputs]
        with self._outside():
            out_tangents = through(record, in_tangents)
        some = {id(x) for x in wanted}
        pairs = [(x, t) for x, t in zip(record.outputs, out_tangents) if id(x) in some]
        self._keep([x for x, _ in pairs], [t for _, t in pairs])

    def record_whole(self, call: object, out: object, /, *arguments: object) -> None:
        """Called for public functions recorded as one; this accumulator takes their ops instead.

        Args:
            call: the function's call.
            out: its result.
            *arguments: its arguments.
        """

    def watch_read(self, variable: Variable, tensor: Tensor) -> None:
        """Called when a variable is read as a tensor, which then has the variable's tangent.

        Args:
            variable: the variable.
            tensor: its value.
        """
        known = self._variables.get(id(variable))
        if self._recording and known is not None:
            self._keep((tensor,), (known[1],))

    def note_assign(self, variable: Variable, value: Tensor) -> None:
        """What is assigned does not move the variable, as no derivative passes from it.

        Args:
            variable: the variable.
            value: the tensor.
        """

    def watches(self, variable: Variable) -> bool:
        """Whether what is read from a variable has a tangent.

        Args:
            variable: the variable.

        Returns:
            True or False.
        """
        return self._recording and id(variable) in self._variables

    def tracks(self, tensor: object) -> bool:
        """Whether a tensor has a tangent.

        Args:
            tensor: the tensor.

        Returns:
            True or False.
        """
        return self._recording and id(tensor) in self._tangents

    def rename(self, tensor: Tensor, before: Tensor, after: Tensor) -> None:
        """Called when a tensor was given another value: tangents follow the values.

        Args:
            tensor: the tensor.
            before: a tensor with the value that it had.
            after: a tensor with the value that it has.
        """
        for old, new in ((tensor, before), (after, tensor)):
            known = self._tangents.pop(id(old), None)
            self._tangents.pop(id(new), None)
            if known is not None:
                self._keep((new,), (known[1],))

    def alias(self, tensor: Tensor, other: Tensor) -> None:
        """Called when another object has come to have the value of a tensor.

        Args:
            tensor: the tensor.
            other: the other object.
        """
        self._keep((other,), (self._tangent(tensor),))

    # ---- tangents

    def _tangent(self, value: object) -> Tensor | None:
        known = self._tangents.get(id(value))
        return None if known is None else known[1]

    def _keep(self, values: Sequence[Any], tangents: Sequence[Any]) -> None:
        for value, tangent in zip(values, tangents):
            if tangent is not None:
                self._tangents[id(value)] = value, tangent

    def _outside(self) -> AbstractContextManager[None]:
        """A block whose operations are recorded by the tapes, and by accumulators further out."""
        tapes = now().tapes
        level = tapes.index(self) if self in tapes else len(tapes)
        return recorded_by(tapes[:level])
