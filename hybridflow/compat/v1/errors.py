"""What sessions raise, by TensorFlow's names."""

from __future__ import annotations

from hybridflow.errors import ArgumentError, HybridflowError, InvalidArgumentError


class OpError(HybridflowError):
    """The base of errors of a session."""


class FailedPreconditionError(OpError, RuntimeError):
    """A variable has no value yet."""


class OutOfRangeError(OpError, IndexError):
    """A queue or a data set is at its end."""


class NotFoundError(OpError, FileNotFoundError):
    """A file, or a variable in it, is not there."""


class CancelledError(OpError, RuntimeError):
    """A queue was closed while something waited to put an element into it."""


class UnimplementedError(OpError, NotImplementedError):
    """A graph asks for what sessions here cannot do."""


__all__ = [
    "ArgumentError",
    "CancelledError",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OutOfRangeError",
    "UnimplementedError",
]
