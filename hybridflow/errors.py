"""The exception tree, and the one place that finds the user's file and line.

Every message reads ``[stage] what is wrong. What was expected. What to do.  (file.py:31)``.  Each class is also
the builtin exception that a Python user would catch, so ``except ValueError`` around a bad shape works.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from hybridflow import code_traits, flags

P = ParamSpec("P")
R = TypeVar("R")

_FOR_USERS = frozenset(("stands in", "records"))
_INTERNAL = (*code_traits.FOLDERS, "<hybridflow")


@functools.lru_cache(maxsize=1024)  # asked for each frame between an op and the user's line
def is_internal(filename: str) -> bool:
    """Whether a code object's file belongs to hybridflow itself rather than to its user."""
    return filename.startswith(_INTERNAL)


def user_location(depth: int = 1) -> str | None:
    """``file:line`` of the innermost stack frame outside hybridflow, or None when there is none."""
    frame = sys._getframe(depth)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not is_internal(filename) and not _is_stdlib_or_generated(frame):
            return f"{filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None


def asked_by_user() -> bool:
    """Whether code of the user's called what asks, or code of ours that runs in its place, rather than other code."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and _is_stdlib_or_generated(frame):
        frame = frame.f_back
    if frame is None:
        return False
    filename = frame.f_code.co_filename
    return not is_internal(filename) or not _FOR_USERS.isdisjoint(code_traits.of_file(filename))


def called_by_user() -> str | None:
    """The name of the function, or class, of ours that the user's code has called; None where that asks by itself."""
    frame: types.FrameType | None = sys._getframe(1)
    result = None
    while frame is not None and is_internal(frame.f_code.co_filename):
        name = frame.f_code.co_name
        if name.startswith("__"):
            name = type(frame.f_locals.get("self")).__name__
        if name.isidentifier() and not name.startswith(("_", "call", "wrap")) and _is_public(frame.f_code.co_filename):
            result = name.rstrip("_")
        frame = frame.f_back
    return result


def _is_public(filename: str) -> bool:
    """Whether it holds functions that users call, rather than what comes between."""
    of_package = filename.startswith(code_traits.PACKAGE) and os.sep in filename.removeprefix(code_traits.PACKAGE)
    return of_package and "between" not in code_traits.of_file(filename)


def _is_stdlib_or_generated(frame: types.FrameType) -> bool:
    """Whether its code is neither ours nor the user's: what leaves a ``with`` block, and what ``dataclass`` writes into
    a module that has a file.
    """
    filename = frame.f_code.co_filename
    return filename == contextlib.__file__ or (filename == "<string>" and "__file__" in frame.f_globals)


def short_location(where: str | None) -> str:
    """A location as shown to people: the file's base name, or the cell of a notebook, and the line."""
    if not where:
        return ""
    filename, _, line = where.rpartition(":")
    return f"{_cell(filename) or os.path.basename(filename) or filename}:{line}"


def _cell(filename: str) -> str | None:
    """``In[3]`` for the code of a cell, whose file is a name that IPython made up."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    name_code = getattr(getattr(shell, "compile", None), "format_code_name", None)
    label = None if name_code is None else name_code(filename)
    return label[1] if label is not None and label[0] == "Cell" else None


def of_user(error: BaseException) -> BaseException:
    """The error, with a traceback of the user's own frames alone, so far: for whoever the user calls to raise on.

    ``HF_TRACEBACK=full`` keeps all of them.
    """
    if flags.TRACEBACK.value == "full":
        return error
    frames = []
    entry = error.__traceback__
    while entry is not None:
        if not is_internal(entry.tb_frame.f_code.co_filename):
            frames.append(entry)
        entry = entry.tb_next
    chain: types.TracebackType | None = None
    for entry in reversed(frames):
        # A signal handler may raise at an instruction that belongs to no line.
        chain = types.TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno or 0)
    return error.with_traceback(chain)


def entered(function: Callable[P, R]) -> Callable[P, R]:
    """A function that users call: what it raises has a traceback of their frames, and this one; what Python or NumPy
    raise of arguments that they were given is an error of ours."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            raise of_user(of_arguments(error, function))  # noqa: B904  # the very error

    return call


_ENTERED = entered(lambda: None).__code__


def hands_on(function: types.FunctionType) -> bool:
    """Whether it is what ``entered`` made of the function that it wraps, to which it gives just what it is given."""
    if function.__code__ is not _ENTERED or not function.__closure__:
        return False
    return function.__closure__[0].cell_contents is getattr(function, "__wrapped__", None)


@contextlib.contextmanager
def writing_to(path: Any) -> Iterator[None]:
    """Around what writes to an open file: an OSError, as of a full disk, says which file it is."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


def of_arguments(error: BaseException, function: Callable[..., Any]) -> BaseException:
    """What a function raises: the error; or, for what Python or NumPy themselves say of its arguments (that one is no
    number, cannot be iterated over, is missing) an error of ours that says the same.

    Errors of code of the user's that was called stay as they are, and so do those that are no arguments' fault.
    """
    if isinstance(error, HybridflowError) or not isinstance(error, _OF_ARGUMENTS) or is_of_program(error):
        return error
    if isinstance(error, RecursionError) and _is_deep(sys._getframe(1)):
        return error  # whoever called so deep, with whatever arguments
    entry = error.__traceback__
    while entry is not None:
        filename = entry.tb_frame.f_code.co_filename
        if not is_internal(filename) and _NUMPY not in filename:
            return error
        entry = entry.tb_next
    name = getattr(function, "__name__", "call")
    kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentError
    result = kind(name, f"it takes other arguments, {_parameters(function)}: {str(error).rstrip('.')}.")
    result.__cause__ = error if flags.TRACEBACK.value == "full" else None
    result.__suppress_context__ = True
    return result


def _is_deep(frame: types.FrameType | None) -> bool:
    """Whether half of the frames that Python allows lie beneath one already."""
    left = sys.getrecursionlimit() // 2
    while frame is not None and left:
        frame, left = frame.f_back, left - 1
    return frame is not None


OF_PROGRAM = "raised by compiled code"  # how the note begins of an error of the user's that a program raised


def is_of_program(error: BaseException) -> bool:
    """Whether it is an error of the user's that a compiled program raised."""
    return any(note.startswith(OF_PROGRAM) for note in getattr(error, "__notes__", ()))


_OF_ARGUMENTS = (TypeError, ValueError, OverflowError, RecursionError)
_NUMPY = f"{os.sep}numpy{os.sep}"


def _parameters(function: Callable[..., Any]) -> str:
    """The parameters of a function as a call of it is written."""
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "those of its documentation"
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


class TraceEnd(BaseException):
    """What ends a trace that another one follows.  No Exception: code that is traced must not catch it."""


class StringsWantedError(TraceEnd):
    """A call has tensors of texts among its arguments or results, and its program is none of their codes."""


class HybridflowError(Exception):
    """Base of all hybridflow errors.

    ``stage`` is the op or stage that failed, ``where`` the user's ``file:line``; it is looked up on the stack
    when it is not given (pass ``where`` when the fault lies with code that ran earlier, as in a traced graph).
    """

    def __init__(self, stage: str, message: str, where: str | None = None) -> None:
        self.stage = stage
        self.where = where if where is not None else user_location(2)
        tail = f"  ({short_location(self.where)})" if self.where else ""
        super().__init__(f"[{stage}] {message}{tail}")

    @property
    def message(self) -> str:
        """The whole text."""
        return str(self)

    def __reduce__(self) -> Any:
        return again, (type(self), self.args, self.__dict__)


def again(kind: type[HybridflowError], args: tuple[Any, ...], state: dict[str, Any]) -> HybridflowError:
    """An error that was pickled, as between the processes of a pool: with the text and place that it had."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class OperandError(HybridflowError):
    """What an operation was given does not fit it: the base of errors of shapes, dtypes, arguments and values."""


class ShapeError(OperandError, ValueError):
    """Shapes or axes do not fit the operation."""


class SymbolicExtentError(ShapeError):
    """An op would have to calculate with a symbolic extent: the function needs a trace with known extents."""


class DeferredQuestionError(SymbolicExtentError):
    """A derivative's code asks for a symbolic extent when the trace is over."""


class SignatureError(ShapeError, TypeError):
    """An argument has another shape than the ``input_signature`` of a function says."""


class LinAlgError(OperandError, ValueError):
    """There is no such decomposition, inverse or solution of the matrix; also NumPy's ``numpy.linalg.LinAlgError``."""


class AxisError(ShapeError, IndexError):
    """An axis is one that the tensor does not have."""


class DTypeError(OperandError, TypeError):
    """A dtype does not fit the operation, or two dtypes cannot be combined."""


class ArgumentError(OperandError, ValueError):
    """An argument's value is not one that the function accepts."""


class ArgumentTypeError(OperandError, TypeError):
    """An argument's Python type is not one that the function accepts."""


class InvalidArgumentError(ArgumentError, AssertionError):
    """Values are not as an assertion about them says."""


class IndexRangeError(OperandError, IndexError):
    """An index lies outside the axis that it indexes."""


class DivisionError(OperandError, ZeroDivisionError):
    """Integer division or remainder by zero."""


class IntegerOverflowError(OperandError, OverflowError):
    """A Python int that a tensor decides about outgrew the 64 bits that it has in compiled functions."""


class TraceError(HybridflowError, TypeError):
    """A traced tensor was used in a way that needs its value, or outside the trace that made it."""


class ConcretizationError(TraceError):
    """Python would have to know while tracing what a tensor decides.  A compiled function that is called runs eagerly
    then, and says so once; it is an error where the function is ``strict``, or is not called."""


class GradientError(HybridflowError, RuntimeError):
    """A gradient was asked of a tape that cannot give it."""


class CheckpointError(HybridflowError, ValueError):
    """A file that is damaged, or of something else than what is to be restored from it."""


class OnnxError(HybridflowError, ValueError):
    """A file that is no ONNX model, is damaged, or asks for what there is not here."""


class DataError(HybridflowError, ValueError):
    """A file of data that is damaged, or holds something else than was asked for."""


class SharingError(HybridflowError, BufferError):
    """Memory cannot be shared with another library in the way that was asked for."""


class DonatedError(HybridflowError, RuntimeError):
    """A tensor was used that had been given up to a call (``donate_argnums``)."""


class WorkerError(HybridflowError, RuntimeError):
    """A process that works for a loader of data died, or takes too long."""


class ReplicaError(HybridflowError, RuntimeError):
    """A process that shares the replicas out with this one failed, or does something else."""


class WorkerLost(ReplicaError):
    """A process that shares the replicas out with this one has ended."""


class CollectiveTimeout(ReplicaError, TimeoutError):
    """A process did not come to a collective in time."""


class DeviceError(HybridflowError, RuntimeError):
    """A device is missing, or tensors lie on different devices."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A GPU has no room for what was asked for; the message says for what, and which buffers are the largest."""


class CompileError(HybridflowError, RuntimeError):
    """Code generation or machine-code loading failed: a defect of hybridflow, with the graph in the message."""


class VerifyError(HybridflowError, RuntimeError):
    """A graph broke a rule of the IR: a defect of the pass that is named."""


class ParseError(HybridflowError, ValueError):
    """The text form of a graph could not be read."""
