"""Which writer summaries go to, at which step, and whether at all; and what is written, at once or by a program."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor
from hybridflow.effects.runtime_text import RuntimeText, RuntimeValues
from hybridflow.errors import ArgumentError, ArgumentTypeError, entered
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.summary import events
from hybridflow.summary.events import EventFile, Node
from hybridflow.tracing.effect_token import call_in_order


class _Scope(NamedTuple):
    """What was said of summaries here, within the trace ``trace``, or outside of all.  What a program says itself holds
    for it; the rest is asked for when it runs."""

    writer: Any = None
    step: ArrayLike | None = None
    conditions: tuple[Any, ...] = ()
    trace: Any = None


_scope: ContextVar[_Scope] = ContextVar("hybridflow.summary", default=_Scope())  # noqa: B039  # which is never changed


class SummaryWriter:
    """Summary writer: writes summaries into a file of its own in a folder; ``hf.summary.create_file_writer`` makes it.

    The file is there when something is written. Writers are closed at the end of a ``with`` block over them.

    Args:
        logdir: the folder.
        filename_suffix: what the file's name ends with.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with hf.summary.SummaryWriter(folder) as writer, writer.as_default():
    ...     hf.summary.scalar("loss", 0.5, step=1)
    >>> len(os.listdir(folder))
    1
    """

    def __init__(self, logdir: Any, filename_suffix: str = "") -> None:
        self.logdir = os.fspath(logdir)
        self._suffix = filename_suffix
        self._file: EventFile | None = None
        self._is_closed = False

    def as_default(self, step: ArrayLike | None = None) -> _Within:
        """A block in which summaries go to this writer.

        Args:
            step: the step of the summaries in it, or None.

        Returns:
            A context manager.
        """
        return _Within(writer=self, **({} if step is None else {"step": step}))

    def set_as_default(self, step: ArrayLike | None = None) -> None:
        """Let summaries go to this writer from here on.

        Args:
            step: the step of the summaries from here on, or None.
        """
        self.as_default(step).__enter__()

    def init(self) -> None:
        """Make the file now."""
        self.file()

    def file(self) -> EventFile:
        """The file that is written.

        Returns:
            The file.

        Raises:
            ArgumentError: once the writer is closed.
        """
        if self._is_closed:
            raise ArgumentError("summary", f"the writer of {self.logdir!r} is closed.")
        if self._file is None:
            self._file = EventFile(self.logdir, self._suffix)
        return self._file

    def flush(self) -> None:
        """Have all that was written on the disk."""
        if self._file is not None and not self._is_closed:
            self._file.flush()

    def close(self) -> None:
        """Flush, and end."""
        if self._file is not None and not self._is_closed:
            self._file.close()
        self._is_closed = True

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SummaryWriter {self.logdir!r}{', closed' if self._is_closed else ''}>"


class _Within:
    """A block in which something else is said of summaries."""

    def __init__(self, condition: Any = None, **said: Any) -> None:
        self._said, self._condition = said, condition
        self._before: list[Any] = []

    def __enter__(self) -> Any:
        before, trace = _scope.get(), now().trace
        # What was said outside of a trace is not the program's: it is asked for when that runs.
        base = before if trace is None or before.trace is not None else _Scope()
        more = () if self._condition is None else (self._condition,)
        self._before.append(_scope.set(base._replace(**self._said, conditions=(*base.conditions, *more), trace=trace)))
        return self._said.get("writer")

    def __exit__(self, *error: object) -> None:
        _scope.reset(self._before.pop())


@entered
def create_file_writer(
    logdir: object,
    max_queue: object = None,
    flush_millis: object = None,
    filename_suffix: str = "",
    name: object = None,
) -> SummaryWriter:
    """Make a writer of summaries for TensorBoard (extra ``tensorboard``).

    Args:
        logdir: the folder.
        max_queue: for programs that pass it; the system's buffer is all that comes between.
        flush_millis: for programs that pass it; ``flush`` empties that buffer.
        filename_suffix: what the file's name ends with.
        name: accepted for compatibility; it has no effect.

    Returns:
        An ``hf.summary.SummaryWriter``.

    >>> import tempfile
    >>> writer = hf.summary.create_file_writer(tempfile.mkdtemp())
    >>> with writer.as_default():
    ...     hf.summary.scalar("loss", 0.5, step=1)
    >>> writer.close()
    """
    return SummaryWriter(logdir, filename_suffix)


def record_if(condition: object) -> _Within:
    """Scope in which summaries are written where a condition is true.

    Args:
        condition: a bool, a bool tensor ``[]``, or a function without arguments that returns one, which is called for
            each summary.

    Returns:
        A context manager.

    >>> with hf.summary.record_if(lambda: False):
    ...     hf.summary.should_record_summaries()
    False
    """
    return _Within(condition=condition)


def set_step(step: object) -> None:
    """Set the default step of summaries.

    Args:
        step: an int, an integer variable or tensor ``[]``, or None.

    Returns:
        None.

    >>> hf.summary.experimental.set_step(3)
    >>> hf.summary.experimental.get_step()
    3
    >>> hf.summary.experimental.set_step(None)
    """
    if step is not None and not isinstance(step, (int, np.integer, Tensor, Variable)):
        raise ArgumentTypeError("summary.set_step", f"the step is {step!r}; give an int, a variable, or a tensor.")
    _Within(step=step).__enter__()


def get_step() -> Any:
    """The default step of summaries.

    Returns:
        What ``set_step`` or ``as_default`` was given, or None.

    >>> print(hf.summary.experimental.get_step())
    None
    """
    return _scope.get().step


@entered
def should_record_summaries() -> Any:
    """Whether summaries are written here: there is a writer, and no condition against it.

    Returns:
        A bool, in a compiled function a bool tensor ``[]``.

    >>> hf.summary.should_record_summaries()
    False
    """
    scope, trace = _scope.get(), now().trace
    if trace is None:
        return scope.writer is not None and _holds(scope.conditions)
    here = scope if scope.trace is not None else _Scope()
    late = RuntimeValues([*_evaluated(here.conditions)], unwrapped=True)

    def answer(*arrays: np.ndarray) -> np.ndarray:
        around = _around()
        return np.array((here.writer or around.writer) is not None and _all(late.filled(arrays), around))

    return call_in_order(answer, late.tensors(), [TensorType((), dtypes.bool_)])[0]


@entered
def flush(writer: SummaryWriter | None = None) -> None:
    """Have on the disk what was written.

    Args:
        writer: a writer; None for the step of the enclosing block.

    Returns:
        None.

    >>> import tempfile
    >>> with hf.summary.create_file_writer(tempfile.mkdtemp()) as writer, writer.as_default(step=0):
    ...     hf.summary.flush()
    """
    chosen = writer or _scope.get().writer
    if chosen is None:
        return
    if now().trace is None:
        chosen.flush()
    else:
        call_in_order(lambda: chosen.flush(), (), ())


# What is written


@entered
def scalar(name: str, data: ArrayLike, step: ArrayLike | None = None, description: str | None = None) -> None:
    """Write a number: a curve over the steps.

    In a compiled function this is done each time it runs, with the values of then, in the order of the program. A
    writer and a step that are said outside of it are those of the call. Without a writer nothing is written.

    Args:
        name: the name of the summary.
        data: one number: a tensor ``[]``, or what becomes one.
        step: the step, an int or an integer tensor ``[]``; None for the step of the enclosing block.
        description: a description in Markdown.

    Returns:
        None.

    Raises:
        ArgumentError: where there is no step, or more than one number.

    >>> import tempfile
    >>> with hf.summary.create_file_writer(tempfile.mkdtemp()) as writer, writer.as_default(step=0):
    ...     hf.summary.scalar("loss", hf.asarray(0.25))
    """
    value = as_tensor(data, "summary.scalar")
    if value.size != 1:
        raise ArgumentError("summary.scalar", f"{name!r} is {value.type}; it must be one number.")
    _write(lambda values: events.scalar(name, values), value, step)


@entered
def histogram(
    name: str, data: ArrayLike, step: ArrayLike | None = None, buckets: int = 30, description: str | None = None
) -> None:
    """Write a histogram of the elements of a tensor.

    Args:
        name: the name of the summary.
        data: a tensor of any shape, of numbers.
        step: the step, an int or an integer tensor ``[]``; None for the step of the enclosing block.
        buckets: the number of buckets.
        description: a description in Markdown.

    Returns:
        None.

    Raises:
        ArgumentError: where there is no step.

    >>> import tempfile
    >>> with hf.summary.create_file_writer(tempfile.mkdtemp()) as writer, writer.as_default(step=0):
    ...     hf.summary.histogram("weights", hf.arange(5.0), buckets=4)
    """
    _write(lambda values: events.histogram(name, values, buckets), as_tensor(data, "summary.histogram"), step)


@entered
def image(
    name: str, data: ArrayLike, step: ArrayLike | None = None, max_outputs: int = 3, description: str | None = None
) -> None:
    """Write pictures as PNG files.

    Args:
        name: the name of the summary.
        data: a tensor ``[k, height, width, channels]`` of floats from 0 to 1, or uint8, with 1 to 4 channels.
        step: the step, an int or an integer tensor ``[]``; None for the step of the enclosing block.
        max_outputs: the largest number of pictures.
        description: a description in Markdown.

    Returns:
        None.

    Raises:
        ArgumentError: where there is no step, or ``data`` has another shape.

    >>> import tempfile
    >>> with hf.summary.create_file_writer(tempfile.mkdtemp()) as writer, writer.as_default(step=0):
    ...     hf.summary.image("grey", hf.full((1, 4, 4, 1), 0.5))
    """
    _write(lambda values: events.image(name, values, max_outputs), as_tensor(data, "summary.image"), step)


@entered
def audio(
    name: str,
    data: object,
    sample_rate: int,
    step: ArrayLike | None = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> None:
    """Write sounds as WAV files.

    Args:
        name: the name of the summary.
        data: a tensor ``[k, frames, channels]`` of floats from -1 to 1.
        sample_rate: frames in a second.
        step: the step, an int or an integer tensor ``[]``; None for the step of the enclosing block.
        max_outputs: the largest number of sounds.
        encoding: "wav" or None.
        description: a description in Markdown.

    Returns:
        None.

    Raises:
        ArgumentError: where there is no step, or ``data`` has another shape.

    >>> import tempfile
    >>> with hf.summary.create_file_writer(tempfile.mkdtemp()) as writer, writer.as_default(step=0):
    ...     hf.summary.audio("tone", hf.sin(hf.arange(80.0))[None, :, None], 8000)
    """
    if encoding not in (None, "wav"):
        raise ArgumentError("summary.audio", f"encoding is {encoding!r}; it must be 'wav'.")
    _write(lambda values: events.audio(name, values, sample_rate, max_outputs), as_tensor(data, "summary.audio"), step)


@entered
def text(name: str, data: object, step: ArrayLike | None = None, description: str | None = None) -> None:
    """Write a text in Markdown, or a list of them.

    Args:
        name: the name of the summary.
        data: the text, or a list of texts.
        step: the step, an int or an integer tensor ``[]``; None for the step of the enclosing block.
        description: a description in Markdown.

    Returns:
        None.

    Raises:
        ArgumentError: where there is no step.
        ArgumentTypeError: for what is no text.

    >>> import tempfile
    >>> with hf.summary.create_file_writer(tempfile.mkdtemp()) as writer, writer.as_default(step=0):
    ...     hf.summary.text("note", "*nothing* was shuffled")
    """
    texts = list(data) if isinstance(data, (list, tuple)) else [data]
    if not all(isinstance(one, (str, RuntimeText)) for one in texts):
        raise ArgumentTypeError("summary.text", f"{name!r} is {data!r:.60}; give a text, or a list of texts.")
    _write(lambda *texts_now: events.text(name, texts_now), texts, step)


@entered
def hparams(values: dict[str, Any]) -> None:
    """Write the hyperparameters that a run was started with, for TensorBoard's table of runs.

    Args:
        values: numbers, texts and bools by name.

    Returns:
        None.

    >>> import tempfile
    >>> with hf.summary.create_file_writer(tempfile.mkdtemp()) as writer, writer.as_default(step=0):
    ...     hf.summary.hparams({"rate": 0.1, "optimizer": "adam"})
    """
    _write(lambda values: events.hparams(values), [dict(values)], 0)


@entered
def graph(graph_data: object) -> None:
    """Write a graph: that of a concrete function, op by op.

    Args:
        graph_data: what ``f.get_concrete_function(...)`` returns.

    Returns:
        None.

    Raises:
        ArgumentTypeError: for anything else.

    >>> import tempfile
    >>> with hf.summary.create_file_writer(tempfile.mkdtemp()) as writer, writer.as_default(step=0):
    ...     hf.summary.graph(hf.function(hf.exp).get_concrete_function(hf.TensorSpec((None,))))
    """
    if not isinstance(graph_data, ConcreteFunction):
        raise ArgumentTypeError(
            "summary.graph", f"{graph_data!r:.60} is no concrete function; see get_concrete_function."
        )
    writer = _scope.get().writer
    if writer is not None and _holds(_scope.get().conditions):
        writer.file().add_graph(_nodes(graph_data))


def _nodes(concrete: ConcreteFunction) -> list[Node]:
    names: dict[int, str] = {}
    result = []
    for number, node in enumerate([*concrete.graph.inputs, *concrete.graph.nodes]):
        names[id(node)] = f"{node.op.name}_{number}"
        result.append(Node(names[id(node)], node.op.name, tuple(names[id(x)] for x in node.inputs if id(x) in names)))
    return result


def _write(make: Callable[..., Any], data: object, step: object) -> None:
    """Write what ``make`` makes of the data, now or when the program that is traced comes to it."""
    scope, trace = _scope.get(), now().trace
    values = list(data) if isinstance(data, list) else [data]
    here = scope if trace is None or scope.trace is not None else _Scope()
    chosen = here.step if step is None else step

    def write(arguments: Sequence[Any]) -> None:
        said, conditions, values = arguments[0], arguments[1], arguments[2:]
        around = here if trace is None else _around()
        writer = here.writer or around.writer
        if writer is None or not _all(conditions, around if trace is not None else _Scope()):
            return
        at = around.step if said is None else said
        if at is None:
            raise ArgumentError("summary", "there is no step: give step=, or call hf.summary.experimental.set_step.")
        writer.file().add(int(np.asarray(at)), make(*[np.asarray(x) if isinstance(x, Tensor) else x for x in values]))

    operands = [chosen, list(_evaluated(here.conditions)), *values]
    if trace is None:
        if here.writer is not None:
            write(operands)
        return
    late = RuntimeValues(operands, unwrapped=True)
    call_in_order(lambda *arrays: write(late.filled(arrays)), late.tensors(), ())


def _around() -> _Scope:
    """What is said outside of the program that runs."""
    return _scope.get()


def _evaluated(conditions: Sequence[Any]) -> list[Any]:
    return [one() if callable(one) and not isinstance(one, (Tensor, Variable)) else one for one in conditions]


def _holds(conditions: Sequence[Any]) -> bool:
    return all(bool(one) for one in _evaluated(conditions))


def _all(conditions: Sequence[Any], around: _Scope) -> bool:
    return all(bool(np.asarray(one)) for one in conditions) and _holds(around.conditions)
