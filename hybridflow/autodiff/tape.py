"""GradientTape: records ops on watched tensors, and walks them backwards.

A tape keys its records by the ids of tensors that it holds alive.  It is told of each op by ``dispatch.apply``, of each
variable read and assignment by Variable, and of compiled calls and custom gradients through ``record_custom``.  Ops
through which no derivative passes are remembered with the user's line, so that a missing gradient can be explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hybridflow.autodiff.explanation import Cut, Evidence, explain
from hybridflow.autodiff.replay import replayed, totals
from hybridflow.compiler.autodiff import Record, Results, backward
from hybridflow.compiler.ir.dtypes import int64, is_float
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.table import NOT_DIFFERENTIABLE
from hybridflow.core import pytree
from hybridflow.core.context import add_recorder, now, pop_tape, push_tape, suspended
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor, own
from hybridflow.eager.wholes import Whole, taken_apart, tensors_among
from hybridflow.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError, user_location
from hybridflow.runtime.calls.recording import Recording, make_native

if TYPE_CHECKING:
    from hybridflow.runtime.calls.native_call import NativeCall

_STOP_GRADIENT = TABLE["stop_gradient"]
_CONVERT = TABLE["convert"]
_make = tuple.__new__  # as Record(...) does, without a Python frame
_NO_ATTRS: Mapping[str, Any] = {}
_ENOUGH = 2  # tapes: with the second one native code is loaded
# Ops that may end a path of derivatives; a conversion does when its result is no float.
_CUTTING = {op for op in TABLE.values() if op.vjp is NOT_DIFFERENTIABLE} | {_STOP_GRADIENT, _CONVERT}


def passes(op: Any, dtype: Any) -> bool:
    """Whether derivatives pass through an op with a result of that dtype."""
    return op not in _CUTTING or (op is _CONVERT and is_float(dtype))


_uses = 0  # tapes that were made, up to the one with which native code is loaded


def _note_use() -> None:
    global _uses
    if _uses < _ENOUGH:
        _uses += 1
        if _uses == _ENOUGH:
            make_native(GradientTape)


class _Reads:
    """The tensors that were read from one variable."""

    __slots__ = ("tensors", "variable")

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.tensors: list[Tensor] = []


class GradientTape(Recording):
    """Records operations for automatic differentiation.

    ``persistent=True`` allows several ``gradient`` calls; otherwise the first one frees the records.  Trainable
    variables are watched when they are read, unless ``watch_accessed_variables=False``; tensors need ``watch``.
    Tapes nest: the gradient computation of an inner tape is recorded by the outer ones.

    >>> x = hf.asarray([1.0, 2.0])
    >>> with hf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = hf.sum(x * x)
    >>> tape.gradient(y, x)
    <Tensor f32[2] cpu> [2. 4.]
    """

    __slots__ = (
        "__weakref__",
        "_cuts",
        "_reads",
        "_reasons",
        "_records",
        "_roots",
        "_started",
        "_tracked",
        "_used",
        "_watch_accessed",
        "persistent",
    )

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self.persistent = persistent
        self.takes_wholes = not persistent  # whose gradients may be asked for while it records
        self._watch_accessed = watch_accessed_variables
        self._recording = False
        self._used = False
        self._reasons: dict[int, tuple[Any, str]] = {}
        self._forget()
        add_recorder(self)
        _note_use()

    def _forget(self) -> None:
        self._tracked: dict[int, Tensor] = {}  # what is watched, and what was computed from it, by id
        self._roots: set[int] = set()  # what is watched
        self._records: list[Record] = []
        self._reads: dict[int, _Reads] = {}
        self._cuts: list[Cut] = []
        self._started: dict[
            int, tuple[Tensor, Tensor]
        ] = {}  # watched tensors that have another value now: the watched one

    # Recording

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise GradientError("GradientTape", "this tape is already recording. Make a second tape to nest.")
        try:
            self._recording = True
            push_tape(self)
            trace = now().trace
            if trace is not None:
                trace.tells_apart = True
        except BaseException:  # of a signal handler: without an ``__enter__`` that returns there is no ``__exit__``
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        # Also where a gradient that was asked for within the block, perhaps in another context, stopped it.
        try:
            self._recording = False
            pop_tape(self)
        except BaseException:  # of a signal handler
            self._recording = False
            pop_tape(self)
            raise

    _enter, _exit = __enter__, __exit__  # which native code calls for what it does not know

    def _pause(self) -> None:
        if self._recording:
            self.__exit__()

    def record(self, op: Any, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], out: Any) -> None:
        """Called for each op in contexts that hold the tape.  ``out`` is a tuple where there are several results."""
        if not self._recording:
            return
        tracked = self._tracked
        for x in inputs:
            if id(x) in tracked:
                break
        else:
            return
        if op in _CUTTING and not passes(op, out.dtype):
            self._cuts.append(Cut(op.name, tuple(map(id, inputs)), user_location()))
            return
        if type(out) is tuple:
            tracked.update({id(part): part for part in out if is_float(part.dtype)})
            self._records.append(Record(op, inputs, attrs, Results(out)))
            return
        tracked[id(out)] = out
        self._records.append(_make(Record, (op, inputs, attrs, (out,), None)))

    def record_whole(self, call: NativeCall, out: Tensor, /, *arguments: Any) -> None:
        """Called for public functions in the place of their ops, through which derivatives pass."""
        if not self._recording:
            return
        for x in arguments:
            if type(x) is not Tensor:
                arguments = tensors_among(arguments)
                break
        tracked = self._tracked
        for x in arguments:
            if id(x) in tracked:
                tracked[id(out)] = out
                self._records.append(_make(Record, (None, arguments, _NO_ATTRS, (out,), call.whole)))
                return

    def record_custom(self, inputs: tuple[Any, ...], outputs: Sequence[Any], vjp: Callable[..., Any]) -> None:
        """Record ``outputs``, computed somehow from ``inputs``, with ``vjp(*cotangents of outputs)``.

        A list of outputs may get more entries later: see ``follow``.
        """
        tracked = self._tracked
        if self._recording and any(id(x) in tracked for x in inputs):
            for out in outputs:
                if is_float(out.dtype):
                    tracked[id(out)] = out
            self._records.append(Record(None, inputs, {}, outputs, vjp))

    def follow(self, value: Any, outputs: Sequence[Any]) -> None:
        """Called when ``value`` turns out to be one more of an operation's ``outputs``: it is tracked like them."""
        if any(id(out) in self._tracked for out in outputs):
            self._tracked[id(value)] = value

    def watch_read(self, variable: Variable, tensor: Tensor) -> None:
        """Called when ``variable`` is read as ``tensor``."""
        if self._recording:
            self._note_read(variable, tensor)

    def _note_read(self, variable: Variable, tensor: Tensor) -> None:
        if id(tensor) in self._tracked:
            return
        reads = self._reads.get(id(variable))
        if reads is None:
            if not (self._watch_accessed and variable.is_watched):
                return
            reads = self._reads[id(variable)] = _Reads(variable)
        self._tracked[id(tensor)] = tensor
        reads.tensors.append(tensor)

    def watches(self, variable: Variable) -> bool:
        """Whether what is read from ``variable`` is tracked."""
        return self._recording and (id(variable) in self._reads or (self._watch_accessed and variable.is_watched))

    def note_assign(self, variable: Variable, value: Tensor) -> None:
        """Called when ``value`` is assigned to ``variable``: no derivative passes from the one to the other."""
        if self._recording and id(value) in self._tracked:
            name = f"the variable {variable.name}" if variable.name else "a variable"
            self._cuts.append(Cut(f"assign to {name}", (id(value),), user_location()))

    def rename(self, tensor: Tensor, before: Tensor, after: Tensor) -> None:
        """Called when ``tensor`` was given the value ``after``; ``before`` has the one that it had."""
        if id(tensor) in self._roots and id(tensor) not in self._started:
            self._started[id(tensor)] = tensor, before  # derivatives with respect to it are of what was watched
        for old, new in ((tensor, before), (after, tensor)):
            self._replace(old, new)

    def _replace(self, old: Tensor, new: Tensor) -> None:
        """Let ``new`` stand wherever ``old`` does."""
        if self._tracked.pop(id(old), None) is not None:
            self._tracked[id(new)] = new
        if id(old) in self._roots:
            self._roots.remove(id(old))
            self._roots.add(id(new))
        for reads in list(self._reads.values()):  # its own thread may read others meanwhile
            reads.tensors[:] = [new if x is old else x for x in reads.tensors]
        for k, record in enumerate(self._records):
            rename = getattr(record.vjp, "rename", None)
            if rename is not None:
                rename(old, new)
            if any(x is old for x in (*record.inputs, *record.outputs)):
                inputs = tuple([new if x is old else x for x in record.inputs])
                outputs: Any = record.outputs
                if isinstance(outputs, list):  # which the vjp may add to
                    outputs[:] = [new if x is old else x for x in outputs]
                else:
                    outputs = type(outputs)([new if x is old else x for x in outputs])
                self._records[k] = record._replace(inputs=inputs, outputs=outputs)
        for k, cut in enumerate(self._cuts):
            self._cuts[k] = cut._replace(inputs=tuple([id(new) if x == id(old) else x for x in cut.inputs]))

    def tracks(self, tensor: Tensor) -> bool:
        """Whether what is computed from ``tensor`` is recorded."""
        return self._recording and id(tensor) in self._tracked

    def watch(self, value: Any) -> None:
        """Watch tensors or variables, alone or nested.  Raises ArgumentTypeError for anything else."""
        if type(value) is Tensor:
            self._watch_tensor(value)
            return
        leaves, structure = pytree.flatten(value)
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, Variable):
                if is_float(leaf.dtype):
                    self._reads.setdefault(id(leaf), _Reads(leaf))
                    self._note_read(leaf, leaf._read())
            elif isinstance(leaf, Tensor):
                self._watch_tensor(leaf)
            else:
                path = pytree.paths(structure, "value")[k]
                raise ArgumentTypeError(
                    "GradientTape.watch",
                    f"{path} is a {type(leaf).__name__}; only tensors and variables can be watched. "
                    "Make it one with hf.constant(value).",
                )

    def _watch_tensor(self, tensor: Tensor) -> None:
        if is_float(tensor.dtype):
            self._tracked[id(tensor)] = tensor
            self._roots.add(id(tensor))
            self._started.pop(id(tensor), None)

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables that the tape watches, in the order of their first reads."""
        return tuple(reads.variable for reads in self._reads.values())

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Leave out what runs in the block."""
        was_recording = self._recording
        self._pause()
        try:
            yield
        finally:
            if was_recording:
                self.__enter__()

    def reset(self) -> None:
        """Forget everything recorded and watched."""
        self._forget()
        self._reasons.clear()
        self._used = False

    # Gradients

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str = "none",
    ) -> Any:
        """The derivative of the sum of all elements of ``target`` with respect to each of ``sources``.

        Target and sources may be nested; the result has the structure of ``sources``.  ``output_gradients``, of the
        structure of ``target``, weights its elements.  A source that the target does not depend on gives None, or zeros
        for ``unconnected_gradients="zero"``; ``why_none(source)`` says why.  Raises GradientError when the records of a
        tape that is not persistent have been used.
        """
        self._check_mode(unconnected_gradients)
        self._begin()
        leaves, structure = pytree.flatten(sources)
        self._check_sources(leaves, structure)
        targets = [target] if type(target) is Tensor else self._targets(target)
        weights = None if output_gradients is None else self._weights(target, output_gradients)
        found = self._walk(self._seeds(targets, weights), leaves)
        self._tell_apart(found, weights or ())
        for k, source in enumerate(leaves):
            if found[k] is None:
                self._reasons[id(source)] = (source, self._explain(source, targets))
                if unconnected_gradients == "zero":
                    found[k] = builder.full(0, source.type)
        self._end()
        return pytree.unflatten(structure, found)

    @staticmethod
    def _tell_apart(found: list[Tensor | None], given: Sequence[Any]) -> None:
        """Let each gradient be an object of its own, where one value is that of several sources, or was given."""
        if len(found) == 1 and not given:
            return
        seen = {id(weight) for weight in given}
        for k, gradient in enumerate(found):
            if gradient is not None:
                if id(gradient) in seen:
                    found[k] = own(gradient)
                seen.add(id(gradient))

    def _check_mode(self, unconnected: str) -> None:
        if unconnected not in ("none", "zero"):
            raise ArgumentError(
                "GradientTape.gradient", f'unconnected_gradients must be "none" or "zero", got {unconnected!r}.'
            )

    def _begin(self) -> None:
        if self._used and not self.persistent:
            raise GradientError(
                "GradientTape.gradient",
                "the records of this tape were freed by its first gradient call. Ask for all gradients in one call, or "
                "make the tape with persistent=True.",
            )
        if not self.persistent:
            self._pause()

    def _end(self) -> None:
        self._used = True
        if not self.persistent:
            for held in (self._tracked, self._roots, self._records, self._reads, self._cuts, self._started):
                held.clear()

    def _check_sources(self, leaves: Sequence[Any], structure: pytree.Structure) -> None:
        for leaf in leaves:
            if not isinstance(leaf, (Tensor, Variable)):
                k = next(k for k, other in enumerate(leaves) if other is leaf)
                raise ArgumentTypeError(
                    "GradientTape.gradient",
                    f"{pytree.paths(structure, 'sources')[k]} is a {type(leaf).__name__}; "
                    "sources are tensors or variables.",
                )

    def _targets(self, target: Any) -> list[Tensor]:
        leaves, structure = pytree.flatten(target)
        for k, leaf in enumerate(leaves):
            if not isinstance(leaf, (Tensor, Variable)):
                raise ArgumentTypeError(
                    "GradientTape.gradient",
                    f"{pytree.paths(structure, 'target')[k]} is a {type(leaf).__name__}; targets are tensors.",
                )
        return [leaf._read() if isinstance(leaf, Variable) else leaf for leaf in leaves]

    def _weights(self, target: Any, output_gradients: Any) -> list[Any]:
        """The output gradient of each target tensor."""
        try:
            parts = pytree.flatten_up_to(pytree.flatten(target)[1], output_gradients, "output_gradients")
        except ValueError as error:
            raise ArgumentError("GradientTape.gradient", f"{error}, as in the target.") from None
        return [weight for _, weight in parts]

    def _seeds(self, targets: list[Tensor], weights: Sequence[Any] | None) -> list[tuple[Tensor, Tensor | None]]:
        """The tracked targets and the cotangent that each starts with, None for ones."""
        if weights is None:
            return [(t, None) for t in targets if id(t) in self._tracked]
        seeds: list[tuple[Tensor, Tensor | None]] = []
        for t, weight in zip(targets, weights):
            if id(t) not in self._tracked or weight is None:
                continue
            seed = as_tensor(weight, "GradientTape.gradient", t.dtype)
            if seed.shape != t.shape:
                raise ShapeError("GradientTape.gradient", f"the output gradient {seed.type} is for a target {t.type}.")
            seeds.append((t, seed))
        return seeds

    def _walk(self, seeds: list[tuple[Tensor, Tensor | None]], sources: Sequence[Any]) -> list[Tensor | None]:
        """Cotangents of the sources, None for those that no seed depends on."""
        wanted: list[Sequence[Tensor]] = []
        for source in sources:
            if isinstance(source, Variable):
                reads = self._reads.get(id(source))
                wanted.append(reads.tensors if reads is not None else ())
            else:
                started = self._started.get(id(source))
                tensor = source if started is None else started[1]
                wanted.append((tensor,) if id(tensor) in self._tracked else ())
        found = replayed(self._records, seeds, wanted)
        if found is not None:
            return found
        self._take_apart()
        parts = [x for group in wanted for x in group]
        starts = [(t, builder.full(1, t) if cotangent is None else cotangent) for t, cotangent in seeds]
        return totals(builder, backward(builder, self._records, starts, parts), wanted)

    def _take_apart(self) -> None:
        """Have single ops in the place of wholes.  What is computed for them is of no interest to other tapes."""
        if any(type(record.vjp) is Whole for record in self._records):
            with suspended():
                self._records = taken_apart(self._records, builder)

    def jacobian(self, target: Any, sources: Any, unconnected_gradients: str = "none") -> Any:
        """The derivative of each element of the tensor ``target`` with respect to each element of ``sources``.

        The result has the structure of ``sources``, each entry of shape ``target.shape + source.shape``.
        """
        self._check_mode(unconnected_gradients)
        self._begin()
        (target,) = self._targets(target)
        leaves, structure = pytree.flatten(sources)
        self._check_sources(leaves, structure)
        rows = [self._walk(self._seeds([target], [seed]), leaves) for seed in _one_hots(target.type)]
        out: list[Tensor | None] = []
        for k, source in enumerate(leaves):
            column = [row[k] for row in rows]
            out.append(self._stacked(column, (*target.shape, *source.shape), 0, source, unconnected_gradients))
        self._end()
        return pytree.unflatten(structure, out)

    def batch_jacobian(self, target: Any, source: Any, unconnected_gradients: str = "none") -> Any:
        """The derivative of ``target[i]`` with respect to ``source[i]`` for each i of the first axis.

        The result has the shape ``target.shape + source.shape[1:]``; ``target[i]`` may depend on ``source[i]`` only.
        """
        self._check_mode(unconnected_gradients)
        self._begin()
        (target,) = self._targets(target)
        self._check_sources([source], pytree.LEAF)
        if not target.shape or not source.shape or target.shape[0] != source.shape[0]:
            raise ShapeError(
                "GradientTape.batch_jacobian",
                f"target {target.type} and source {source.type} must have one first extent, the batch.",
            )
        seeds = _one_hots(target.type.with_shape(target.shape[1:]))
        shape = target.shape
        axes = tuple(range(1, len(shape)))
        rows = [
            self._walk(self._seeds([target], [builder.broadcast(s, shape=shape, axes=axes)]), [source]) for s in seeds
        ]
        column = [row[0] for row in rows]
        out = self._stacked(column, (*shape, *source.shape[1:]), 1, source, unconnected_gradients)
        self._end()
        return out

    def _stacked(
        self, rows: list[Tensor | None], shape: tuple[int, ...], axis: int, source: Any, unconnected: str
    ) -> Tensor | None:
        """The rows side by side along a new axis, in the given shape; None or zeros where there are none."""
        present = [row for row in rows if row is not None]
        if not present:
            if rows:
                self._reasons[id(source)] = (source, self._explain(source, []))
            return builder.full(0, source.type.with_shape(shape)) if unconnected == "zero" or not rows else None
        first = present[0].shape
        wide = [builder.reshape(row, shape=(*first[:axis], 1, *first[axis:])) for row in present]
        return builder.reshape(builder.concat(*wide, axis=axis), shape=shape)

    # Explanations

    def why_none(self, source: Any) -> str:
        """Why the last gradient with respect to ``source`` was None."""
        known = self._reasons.get(id(source))
        if known is not None and known[0] is source:
            return known[1]
        if self._used:
            return "the last gradient call did not ask for it, or its gradient was not None"
        return self._explain(source, [])

    def _explain(self, source: Any, targets: list[Tensor]) -> str:
        reads = self._reads.get(id(source))
        evidence = Evidence(
            self._records, self._tracked, self._cuts, [] if reads is None else reads.tensors, self._watch_accessed
        )
        return explain(source, targets, evidence)


def _one_hots(type: TensorType) -> Iterator[Tensor]:
    """Tensors of ``type`` with a single 1, at each position in turn."""
    positions = builder.iota(shape=(type.size,), axis=0, dtype=int64)
    for k in range(type.size):
        is_here = builder.equal(positions, builder.full(k, positions.type))
        yield builder.reshape(builder.convert(is_here, dtype=type.dtype), shape=type.shape)
