"""GradientTape: records ops on watched tensors, and walks them backwards.

What a tape is told goes into a log (see ``calls.tape_log``), which native code writes, too.  It is told of each op by
``dispatch.apply``, of each variable read and assignment by Variable, and of compiled calls and custom gradients through
``record_custom``.  Ops through which no derivative passes are remembered with the user's line, so that a missing
gradient can be explained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.autodiff import compiled_backward
from hybridflow.autodiff.conjugation import conjugate, has_complex, refuse_complex
from hybridflow.autodiff.missing_gradient import Cut, Evidence, explain
from hybridflow.autodiff.sparse_gradient import tensor_of
from hybridflow.autodiff.tape_entries import Custom, applied, record_of
from hybridflow.compiler.autodiff import Record, backward
from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.compiler.ir.types import TensorType, same_extents
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.batching_rules import axis_to_front
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, OpDef
from hybridflow.compiler.ops.sparse_grad import SparseGrad
from hybridflow.core import devices, pytree
from hybridflow.core.context import add_recorder, current, everywhere, idle, now, pop_tape, push_tape, suspended
from hybridflow.core.tensor import Tensor, looked_at
from hybridflow.core.tier_up import TAPES
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor, exclusive
from hybridflow.eager.taped_calls import TapedCall, expand_taped, tensors_among
from hybridflow.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError, entered, user_location
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.calls import native_tape
from hybridflow.runtime.calls.tape_log import Recording, natives

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike
    from hybridflow.runtime.calls.native_call import NativeCall

_STOP_GRADIENT = TABLE["stop_gradient"]
_CONVERT = TABLE["convert"]
_ODD = -1 << 63 | 1  # of an entry: what says that it is tracked, and that it is there
_NONE: list[Cut] = []  # what tapes have at first, and never change
_NO_TENSORS: dict[int, tuple[Tensor, int]] = {}
_NO_RECORDS: tuple[int, list[Record]] = (0, [])
# Ops that may end a path of derivatives; a conversion does when its result is no float.
_CUTTING = {op for op in TABLE.values() if op.vjp is NOT_DIFFERENTIABLE} | {_STOP_GRADIENT, _CONVERT}


def passes(op: OpDef, dtype: np.dtype[Any]) -> bool:
    """Whether derivatives pass through an op with a result of that dtype."""
    return op not in _CUTTING or (op is _CONVERT and is_inexact(dtype))


_uses_left: float = TAPES.threshold  # tapes that are made before native code is loaded


def _note_use() -> None:
    global _uses_left
    _uses_left -= 1
    if _uses_left <= 0 and native_tape.is_ready(compiled_backward.passes):
        _uses_left = math.inf  # it is tried once
        _load_native()


def _load_native() -> bool:
    return native_tape.make_native(GradientTape, compiled_backward.passes)


natives.load = _load_native


def ones(target: Tensor) -> Tensor:
    """What the cotangent of a value begins with, where that lies."""
    array = None if current.trace is not None else getattr(target, "_array", None)
    if array is None or type(array) is np.ndarray:
        return builder.full(1, target.type if array is None else target)
    with devices.placing(target.device):
        return builder.full(1, target)


class _WhereTheyRan(list[Record]):
    """Records for a walk backwards, during which numbers of derivatives are made on the device where an op ran."""

    _run_backward: Generator[Record, None, None] | None = None

    def __reversed__(self) -> Iterator[Record]:
        self._run_backward = self._walked()
        return self._run_backward

    def close(self) -> None:
        """Leave the scope of a walk that was broken off."""
        if self._run_backward is not None:
            self._run_backward.close()

    def _walked(self) -> Generator[Record, None, None]:
        for record in super().__reversed__():
            if record.vjp is not None or type(record.outputs[0]._array) is np.ndarray:
                yield record
            else:
                with devices.placing(record.outputs[0].device):
                    yield record


@uninterruptible.loaded
def _examples() -> ModuleType:
    from hybridflow.tracing import batch_trace  # which gradients do without

    return batch_trace


class GradientTape(Recording):
    """Reverse-mode automatic differentiation: a tape records operations, and ``gradient`` walks them backwards.

    Trainable variables are watched when they are read, unless ``watch_accessed_variables=False``; tensors need
    ``watch``. Tapes nest: the gradient computation of an inner tape is recorded by the outer ones.

    Args:
        persistent: whether ``gradient`` may be called several times. Otherwise the first call frees the records.
        watch_accessed_variables: whether trainable variables are watched as soon as they are read.

    >>> x = hf.asarray([1.0, 2.0])
    >>> with hf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = hf.sum(x * x)
    >>> tape.gradient(y, x)
    <Tensor f32[2] cpu> [2. 4.]
    """

    is_forward = False

    __slots__ = ("__weakref__", "_apart", "_cuts", "_reasons", "_started")
    _apart: tuple[int, list[Record]]  # so many of the first calls as single ops
    _cuts: list[Cut]
    _started: dict[int, tuple[Tensor, int]]  # watched tensors that have another value now, by id: what was watched

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self.persistent = bool(persistent)
        self.takes_wholes = not persistent  # whose gradients may be asked for while it records
        self._watch_accessed = bool(watch_accessed_variables)
        self._recording = self._used = False
        self._reasons: dict[int, tuple[Any, str]] | None = None
        self._forget()
        add_recorder(self)
        if _uses_left < math.inf and now().trace is None:  # a trace records without native code
            _note_use()

    def _forget(self) -> None:
        self._forget_log()
        self._cuts = _NONE
        self._started = _NO_TENSORS
        self._apart = _NO_RECORDS

    # Recording

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise GradientError("GradientTape", "this tape is already recording. Make a second tape to nest.")
        try:
            self._recording = True
            push_tape(self)
            trace = now().trace
            if trace is not None:
                trace.depends_on_identity = True
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

    def record(self, op: OpDef, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], out: Any) -> None:
        """Called for each op in contexts that hold the tape.

        Args:
            op: the op.
            inputs: the tensors that it is applied to.
            attrs: its attributes by name.
            out: its result, or a tuple of several.
        """
        if not self._recording:
            return
        entry = self._entry
        for x in inputs:
            if entry(x) & _ODD == 1:
                break
        else:
            return
        several = type(out) is tuple
        if op in _CUTTING:
            if several:  # a call in Python, which has what derivative it says by itself
                return
            if not passes(op, out.dtype):
                self._cut(op.name, inputs)
                return
        outputs = out if several else (out,)
        definition = applied(op, attrs, several)
        tracked = tuple([is_inexact(part.dtype) for part in out]) if several else (True,)
        self._note_call(definition, definition.key, inputs, outputs, tracked)

    def record_whole(self, call: NativeCall, out: Tensor, /, *arguments: ArrayLike) -> None:
        """Called for public functions in the place of their ops, through which derivatives pass.

        Args:
            call: the function's call.
            out: its result.
            *arguments: its arguments.
        """
        if not self._recording:
            return
        for x in arguments:
            if type(x) is not Tensor:
                arguments = tensors_among(arguments)
                break
        if any(map(self._is_tracked, arguments)):
            self._note_call(call.whole, call.whole, arguments, (out,), (True,))

    def record_custom(self, inputs: tuple[Any, ...], outputs: Sequence[Any], vjp: Callable[..., Any]) -> None:
        """Record what was computed in another way, with a derivative of its own.

        Args:
            inputs: what it was computed from.
            outputs: the results. A list may get more entries later: see ``follow``.
            vjp: a function of the cotangents of outputs that returns those of inputs.
        """
        if self._recording and any(map(self._is_tracked, inputs)):
            self._is_plain = False
            definition = Custom(vjp, outputs)
            self._note_call(definition, definition, inputs, outputs, [is_inexact(out.dtype) for out in outputs])

    def follow(self, value: object, outputs: Sequence[Any]) -> None:
        """Called when a value turns out to be one more of an operation's outputs: it is tracked like them.

        Args:
            value: the value.
            outputs: the outputs that are known.
        """
        if any(map(self._is_tracked, outputs)):
            self._number(value, True)

    def watch_read(self, variable: Variable, tensor: Tensor) -> None:
        """Called when a variable is read as a tensor.

        Args:
            variable: the variable.
            tensor: its value.
        """
        if self._recording:
            self._note_read(variable, tensor)

    def _note_read(self, variable: Variable, tensor: Tensor, anyway: bool = False) -> None:
        if self._is_tracked(tensor):
            return
        if anyway or self._entry(variable) >= 0 or (self._watch_accessed and variable.is_watched):
            self._note_variable_read(variable, tensor)

    def watches(self, variable: Variable) -> bool:
        """Whether what is read from ``variable`` is tracked.

        Args:
            variable: the variable.

        Returns:
            True or False.
        """
        watched = self._watch_accessed and variable.is_watched
        return self._recording and (watched or self._entry(variable) >= 0)

    def note_assign(self, variable: Variable, value: Tensor) -> None:
        """Called when ``value`` is assigned to ``variable``: no derivative passes from the one to the other.

        Args:
            variable: the variable.
            value: the tensor.
        """
        if self._recording and self._is_tracked(value):
            self._cut(f"assign to {f'the variable {variable.name}' if variable.name else 'a variable'}", (value,))

    def _cut(self, what: str, inputs: Sequence[Any]) -> None:
        numbers = [entry >> 1 for entry in map(self._entry, inputs) if entry >= 0]
        if self._cuts is _NONE:
            self._cuts = []
        self._cuts.append(Cut(what, tuple(numbers), user_location()))

    def rename(self, tensor: Tensor, before: Tensor, after: Tensor) -> None:
        """Called when a tensor was given another value.

        Args:
            tensor: the tensor.
            before: a tensor with the value that it had.
            after: a tensor with the value that it has.
        """
        number = self._entry(tensor) >> 1
        if number >= 0 and id(tensor) not in self._started and number in self._watched():
            # Derivatives with respect to it are of what was watched.
            self._started = {**self._started, id(tensor): (tensor, number)}
        for old, new in ((tensor, before), (after, tensor)):
            self._rename(old, new)
            self._rename_beside(old, new)

    def alias(self, tensor: Tensor, other: Tensor) -> None:
        """Called when ``other`` came to be one more object with the value of ``tensor``.

        Args:
            tensor: the tensor.
            other: the other object.
        """
        if self._is_tracked(tensor):
            definition = applied(TABLE["reshape"], {"shape": tensor.shape}, False)
            self._note_call(definition, definition.key, (tensor,), (other,), (True,))

    def _rename_beside(self, old: Tensor, new: Tensor) -> None:
        """Let ``new`` stand wherever ``old`` does beside the log."""
        for definition in self._definitions or ():
            if type(definition) is Custom:
                rename = getattr(definition.vjp, "rename", None)
                if rename is not None:
                    rename(old, new)
                if type(definition.outputs) is list:  # which the vjp may add to
                    definition.outputs[:] = [new if x is old else x for x in definition.outputs]
        count, records = self._apart
        self._apart = count, [_renamed(record, old, new) for record in records]

    def tracks(self, tensor: Tensor) -> bool:
        """Whether what is computed from ``tensor`` is recorded.

        Args:
            tensor: the tensor.

        Returns:
            True or False.
        """
        return self._recording and self._is_tracked(tensor)

    def watch(self, value: object) -> None:
        """Watch tensors or variables, alone or nested.

        Args:
            value: what to watch.

        Raises:
            ArgumentTypeError: for anything else.

        >>> x = hf.constant(3.0)
        >>> with hf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.gradient(y, x).item()
        6.0
        """
        if type(value) is Tensor:
            self._watch_tensor(value)
            return
        leaves, structure = pytree.flatten(value)
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, Variable):
                if is_inexact(leaf.dtype):
                    self._note_read(leaf, leaf._read(), anyway=True)
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
        if is_inexact(tensor.dtype):
            self._note_watch(looked_at(tensor))
            self._started = {k: known for k, known in self._started.items() if k != id(tensor)}

    _watch = watch

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables that the tape watches, in the order of their first reads; after the gradient those that it
        did.

        Returns:
            A tuple of variables.
        """
        return tuple(
            [value for value in self._values or () if type(value) is not Tensor and isinstance(value, Variable)]
        )

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Leave out what runs in the block.

        Returns:
            A context manager.

        >>> x = hf.Variable(3.0)
        >>> with hf.GradientTape() as tape:
        ...     with tape.stop_recording():
        ...         scale = x * 2
        ...     y = x * scale
        >>> tape.gradient(y, x).item()
        6.0
        """
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
        self._reasons = None
        self._used = False

    # Gradients

    def gradient(
        self,
        target: object,
        sources: object,
        output_gradients: object = None,
        unconnected_gradients: str = "none",
    ) -> Any:
        """The derivative of the sum of all elements of ``target`` with respect to each of ``sources``.

        For a complex source z = x + iy it is the direction in which a real target grows: dL/dx + i dL/dy, as TensorFlow
        has it.

        For a source that the target does not depend on, ``why_none(source)`` says why the result is None.

        Args:
            target: tensors, alone or nested.
            sources: tensors and variables, alone or nested.
            output_gradients: weights of the target's elements, in its structure, or None.
            unconnected_gradients: "none" or "zero": what stands for a source that the target does not depend on.

        Returns:
            The derivatives in the structure of ``sources``, each with the shape and dtype of its source.

        Raises:
            GradientError: when the records of a tape that is not persistent have been used.
            ArgumentError: for another ``unconnected_gradients``.

        >>> x = hf.Variable([1.0, 2.0])
        >>> with hf.GradientTape() as tape:
        ...     loss = hf.sum(x**2)
        >>> tape.gradient(loss, x).tolist()
        [2.0, 4.0]
        """
        self._check_mode(unconnected_gradients)
        self._begin()
        leaves, structure = pytree.flatten(sources)
        leaves = self._sources(leaves, structure)
        targets = [target] if type(target) is Tensor else self._targets(target)
        weights = None if output_gradients is None else self._weights(target, output_gradients)
        is_complex = any(map(has_complex, leaves)) or (weights is not None and any(map(has_complex, targets)))
        if is_complex and weights is not None:
            weights = [
                conjugate(as_tensor(w, "GradientTape.gradient", t.dtype)) if has_complex(t) and w is not None else w
                for t, w in zip(targets, weights)
            ]
        gradients = self._run_backward(
            self._seeds(targets, weights), leaves, as_rows=now() is idle and not everywhere.value
        )
        if is_complex:
            gradients = [g if g is None else conjugate(g) for g in gradients]
        self._tell_apart(gradients, weights or ())
        for k, source in enumerate(leaves):
            if gradients[k] is None:
                self._note_reason(source, targets)
                if unconnected_gradients == "zero":
                    gradients[k] = builder.full(0, source.type)
        self._end()
        return pytree.unflatten(structure, gradients)

    _gradient = gradient

    @staticmethod
    def _tell_apart(gradients: list[Tensor | None], sources: Sequence[Any]) -> None:
        """Let each gradient be an object of its own, where one value is that of several sources, or was given."""
        if len(gradients) == 1 and not sources:
            return
        seen = {id(weight) for weight in sources}
        for k, gradient in enumerate(gradients):
            if gradient is not None:
                if id(gradient) in seen:
                    gradients[k] = exclusive(gradient)
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
            watched = self.watched_variables()
            self._forget()
            self._values = list(watched)

    def _sources(self, leaves: list[Any], structure: pytree.Structure) -> list[Any]:
        """The tensors and variables that the sources are; a library's variable says which by ``_hf_variable``."""
        if not all(isinstance(leaf, (Tensor, Variable)) for leaf in leaves):
            leaves = [leaf._hf_variable() if hasattr(type(leaf), "_hf_variable") else leaf for leaf in leaves]
        for leaf in leaves:
            if not isinstance(leaf, (Tensor, Variable)):
                k = next(k for k, other in enumerate(leaves) if other is leaf)
                raise ArgumentTypeError(
                    "GradientTape.gradient",
                    f"{pytree.paths(structure, 'sources')[k]} is a {type(leaf).__name__}; "
                    "sources are tensors or variables.",
                )
        return leaves

    @entered
    def _targets(self, target: object) -> list[Tensor]:
        leaves, structure = pytree.flatten(target)
        for k, leaf in enumerate(leaves):
            if not isinstance(leaf, (Tensor, Variable)):
                raise ArgumentTypeError(
                    "GradientTape.gradient",
                    f"{pytree.paths(structure, 'target')[k]} is a {type(leaf).__name__}; targets are tensors.",
                )
        return [leaf._read() if isinstance(leaf, Variable) else leaf for leaf in leaves]

    def _weights(self, target: object, output_gradients: object) -> list[Any]:
        """The output gradient of each target tensor."""
        try:
            parts = pytree.flatten_up_to(pytree.flatten(target)[1], output_gradients, "output_gradients")
        except ValueError as error:
            raise ArgumentError("GradientTape.gradient", f"{error}, as in the target.") from None
        return [weight for _, weight in parts]

    @entered
    def _seeds(self, targets: list[Tensor], weights: Sequence[Any] | None) -> list[tuple[Tensor, Tensor | None]]:
        """The tracked targets and the cotangent that each starts with, None for ones."""
        if weights is None:
            return [(t, None) for t in targets if self._is_tracked(t)]
        seeds: list[tuple[Tensor, Tensor | None]] = []
        for t, weight in zip(targets, weights):
            if not self._is_tracked(t) or weight is None:
                continue
            seed = as_tensor(weight, "GradientTape.gradient", t.dtype)
            if seed.shape != t.shape:
                raise ShapeError(
                    "GradientTape.gradient",
                    f"the output gradient {seed.type} is for a target {t.type}. Give one of its shape.",
                )
            seeds.append((t, seed))
        return seeds

    def _run_backward(
        self, seeds: list[tuple[Tensor, Tensor | None]], sources: Sequence[Any], as_rows: bool = False
    ) -> list[Tensor | None]:
        """Cotangents of the sources, None for those that no seed depends on.  With ``as_rows`` sums of few rows wait
        until somebody looks at them."""
        wanted = self._wanted(sources)
        if self._is_plain and self._definitions:
            result = compiled_backward.replayed(self, self._records, seeds, wanted)
            if result is not None:
                return result
        self._take_apart()
        values = self._values
        groups = [[values[n] for n in group] for group in wanted]
        parts = [x for group in groups for x in group]
        starts = [(t, ones(t) if cotangent is None else cotangent) for t, cotangent in seeds]
        records = self._records()
        if current.trace is not None:
            totals = backward(builder, records, starts, parts, as_rows)
        else:
            with closing(_WhereTheyRan(records)) as placed:
                totals = backward(builder, placed, starts, parts, as_rows)
        result = compiled_backward.totals(builder, totals, groups)
        return [tensor_of(total) if isinstance(total, SparseGrad) else total for total in result]

    def _wanted(self, sources: Sequence[Any]) -> list[Sequence[int]]:
        """The numbers of the values whose cotangents belong to each source."""
        reads = self._reads()
        wanted: list[Sequence[int]] = []
        for source in sources:
            entry = self._entry(source)
            if isinstance(source, Variable):
                wanted.append(reads.get(entry >> 1, ()))
            elif id(source) in self._started:
                wanted.append((self._started[id(source)][1],))
            else:
                wanted.append((entry >> 1,) if entry & _ODD == 1 else ())
        return wanted

    def _parts_of(self, source: object) -> list[Any]:
        """The recorded values that a source stands for: itself, or what was read of a variable."""
        (numbers,) = self._wanted([source])
        return [self._values[n] for n in numbers]

    def _records(self) -> list[Record]:
        """What was recorded, in order."""
        count, apart = self._apart
        return [*apart, *map(record_of, self._calls(count))]

    def _take_apart(self) -> None:
        """Have single ops in the place of wholes.  What is computed for them is of no interest to other tapes."""
        count = len(self._definitions or ())
        if any(type(definition) is TapedCall for definition in (self._definitions or ())[self._apart[0] :]):
            with suspended():
                self._apart = count, expand_taped(self._records(), builder)

    @entered
    def jacobian(
        self,
        target: object,
        sources: object,
        unconnected_gradients: str = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivative of each element of the tensor ``target`` with respect to each element of ``sources``.

        Args:
            target: a tensor.
            sources: tensors and variables, alone or nested.
            unconnected_gradients: "none" or "zero": what stands for a source that the target does not depend on.
            parallel_iterations: ignored.
            experimental_use_pfor: whether all rows are computed at once; else they come one after the other, in less
                memory.

        Returns:
            The structure of ``sources``, each entry of shape ``target.shape + source.shape``.

        Raises:
            GradientError: when the records of a tape that is not persistent have been used.

        >>> x = hf.Variable([1.0, 2.0])
        >>> with hf.GradientTape() as tape:
        ...     y = x**2
        >>> tape.jacobian(y, x).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        self._check_mode(unconnected_gradients)
        self._begin()
        (target,) = self._targets(target)
        leaves, structure = pytree.flatten(sources)
        leaves = self._sources(leaves, structure)
        refuse_complex("GradientTape.jacobian", target, *leaves)
        rows = self._rows(target, target.type, leaves, experimental_use_pfor)
        jacobians: list[Tensor | None] = []
        for source, row in zip(leaves, rows):
            shape = (*target.shape, *source.shape)
            if row is None:
                self._note_reason(source, [target])
                jacobians.append(
                    builder.full(0, source.type.with_shape(shape)) if unconnected_gradients == "zero" else None
                )
            else:
                jacobians.append(builder.reshape(row, shape=shape))
        self._end()
        return pytree.unflatten(structure, jacobians)

    @entered
    def batch_jacobian(
        self,
        target: Tensor,
        source: Tensor,
        unconnected_gradients: str = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivative of ``target[i]`` with respect to ``source[i]`` for each i of the first axis.

        An entry ``target[i]`` may depend on ``source[i]`` only.

        Args:
            target: a tensor with a first axis of the batch.
            source: a tensor or variable with the same first axis.
            unconnected_gradients: "none" or "zero": what stands for a source that the target does not depend on.
            parallel_iterations: ignored.
            experimental_use_pfor: whether all rows are computed at once; else they come one after the other, in less
                memory.

        Returns:
            A tensor of shape ``target.shape + source.shape[1:]``, or None.

        Raises:
            ShapeError: where the first axes differ, or are missing.
        """
        self._check_mode(unconnected_gradients)
        self._begin()
        (target,) = self._targets(target)
        (source,) = self._sources([source], pytree.LEAF)
        refuse_complex("GradientTape.batch_jacobian", target, source)
        if not target.shape or not source.shape or not same_extents(target.shape[:1], source.shape[:1]):
            raise ShapeError(
                "GradientTape.batch_jacobian",
                f"target {target.type} and source {source.type} must have one first extent, the batch.",
            )
        (rows,) = self._rows(target, target.type.with_shape(target.shape[1:]), [source], experimental_use_pfor)
        shape = (*target.shape, *source.shape[1:])
        result = None
        if rows is not None:
            columns = builder.transpose(rows, perm=(1, 0, *range(2, len(rows.shape))))
            result = builder.reshape(columns, shape=shape)
        else:
            self._note_reason(source, [target])
            if unconnected_gradients == "zero":
                result = builder.full(0, source.type.with_shape(shape))
        self._end()
        return result

    def _rows(self, target: Tensor, type: TensorType, sources: Sequence[Any], together: bool) -> list[Tensor | None]:
        """The cotangents of the sources for each element of ``type``, the target's or without its first axis, stacked;
        None for sources on which the target does not depend."""
        examples = _examples()
        if not self._is_tracked(target):
            return [None] * len(sources)
        seeds = examples.one_hots(type)
        size, *shape = seeds.shape
        if len(shape) < len(target.shape):
            seeds = builder.broadcast(seeds, shape=(size, *target.shape), axes=(0, *range(2, len(shape) + 2)))

        def cotangents(seed: list[Tensor]) -> list[Tensor | None]:
            return self._run_backward([(target, seed[0])], sources)

        rows, is_batched = examples.over_examples("jacobian", cotangents, [seeds], size, together=together)
        return [None if x is None else axis_to_front(builder, x, flag, size) for x, flag in zip(rows, is_batched)]

    # Explanations

    def why_none(self, source: object) -> str:
        """Why the last gradient with respect to ``source`` was None.

        Args:
            source: a tensor or variable.

        Returns:
            A sentence.

        >>> x, y = hf.Variable(1.0), hf.Variable(2.0)
        >>> with hf.GradientTape() as tape:
        ...     loss = x * x
        >>> tape.gradient(loss, y) is None and bool(tape.why_none(y))
        True
        """
        known = (self._reasons or {}).get(id(source))
        if known is not None and known[0] is source:
            return known[1]
        if self._used:
            return "the last gradient call did not ask for it, or its gradient was not None"
        return self._explain(source, [])

    def _note_reason(self, source: object, targets: list[Tensor]) -> None:
        self._reasons = {**(self._reasons or {}), id(source): (source, self._explain(source, targets))}

    def _explain(self, source: object, targets: list[Tensor]) -> str:
        values = self._values or []
        (reads,) = self._wanted([source]) if isinstance(source, Variable) else ((),)
        cuts = [cut._replace(inputs=tuple([id(values[n]) for n in cut.inputs])) for cut in self._cuts]
        tracked = {id(x) for x in values if self._is_tracked(x)}
        evidence = Evidence(self._records(), tracked, cuts, [values[n] for n in reads], self._watch_accessed)
        return explain(source, targets, evidence)


def _renamed(record: Record, old: Tensor, new: Tensor) -> Record:
    """The record with ``new`` wherever it has ``old``."""
    if not any(x is old for x in (*record.inputs, *record.outputs)):
        return record
    inputs = tuple([new if x is old else x for x in record.inputs])
    outputs = record.outputs
    if not isinstance(outputs, list):
        outputs = type(outputs)([new if x is old else x for x in outputs])  # type: ignore[call-arg]
    return record._replace(inputs=inputs, outputs=outputs)
