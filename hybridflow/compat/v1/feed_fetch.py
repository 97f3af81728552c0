"""What goes into the runs of sessions, and what comes out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compat.v1.graph import Graph
from hybridflow.compat.v1.nodes import Operation, Tensor
from hybridflow.compat.v1.recording import is_symbolic
from hybridflow.core.tensor import Tensor as Value
from hybridflow.errors import InvalidArgumentError

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


def flat_feeds(feed_dict: Mapping[Any, Any]) -> dict[Any, Any]:
    """Feeds of one tensor each, where several were given as one key."""
    result: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        if isinstance(key, (tuple, list)):
            result |= flat_feeds(dict(zip(key, value)))
        else:
            result[key] = value
    return result


def fed(graph: Graph, feed: TensorLike) -> Tensor:
    """The tensor that a key of a ``feed_dict`` means.  Raises TypeError for what is none."""
    try:
        result: Tensor = graph.as_graph_element(feed, allow_operation=False)
    except (KeyError, ValueError) as error:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from None
    return result


class Feed:
    """Makes an array of what is fed to a tensor.  Raises ValueError or TypeError where it does not fit."""

    __slots__ = ("_dtype", "_shape", "_tensor")

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._dtype = None if tensor.dtype is None or tensor.dtype == object else np.dtype(tensor.dtype)
        self._shape = tensor.info.shape

    def __call__(self, value: TensorLike) -> Any:
        if is_symbolic(value):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, "
                f"strings, lists, numpy ndarrays. It was fed to {self._tensor.name!r}."
            )
        if self._dtype is None:
            return value
        if isinstance(value, Value):
            value = value.numpy()
        try:
            array = np.asarray(value, dtype=self._dtype)
        except (TypeError, ValueError) as error:
            raise ValueError(f"Cannot feed {value!r:.60} to the tensor {self._tensor.name!r}: {error}") from None
        shape = self._shape
        if shape is not None:
            actual = array.shape
            fits = len(actual) == len(shape)
            if fits:
                for extent, wanted in zip(actual, shape):
                    if wanted is not None and wanted != extent:
                        fits = False
                        break
            if not fits:
                raise ValueError(
                    f"Cannot feed value of shape {actual} for Tensor {self._tensor.name!r}, which has shape "
                    f"'{self._tensor.shape}'"
                )
        return array


def fetched(graph: Graph, fetches: TensorLike, places: list[Any]) -> Callable[[Any], Any]:
    """How to put fetched values together; appends what is to be fetched."""
    if fetches is None:
        raise TypeError("Fetch argument None has invalid type: give a tensor or an operation.")
    if isinstance(fetches, (list, tuple)):
        parts = [fetched(graph, x, places) for x in fetches]
        if hasattr(fetches, "_fields"):
            return lambda values: type(fetches)(*[part(values) for part in parts])
        if isinstance(fetches, tuple):
            return lambda values: tuple([part(values) for part in parts])
        return lambda values: [part(values) for part in parts]
    if isinstance(fetches, Mapping):
        keys = list(fetches)
        parts = [fetched(graph, fetches[key], places) for key in keys]
        kind: Any = type(fetches)
        return lambda values: kind([(key, part(values)) for key, part in zip(keys, parts)])
    if hasattr(fetches, "_as_fetches"):  # rows of a gradient, and other things of several tensors
        return fetched(graph, fetches._as_fetches(), places)
    try:
        places.append(graph.as_graph_element(fetches))
    except (TypeError, ValueError, KeyError) as error:
        error_kind: type[Exception] = TypeError if isinstance(error, TypeError) else ValueError
        text = error.args[0] if error.args else error
        raise error_kind(
            f"Fetch argument {fetches!r} has invalid type {type(fetches)} or cannot be fetched: {text}"
        ) from None
    return next


def as_fetched(value: TensorLike) -> Any:
    """What ``run`` returns: arrays that are the caller's own, and scalars."""
    if isinstance(value, Value):
        array = value.numpy()
        return array.copy() if array.ndim else array[()]
    if isinstance(value, np.ndarray) and not value.ndim:
        return value[()]
    return value


def unfed(op: Operation) -> Exception:
    dtype = op.outputs[0].dtype
    return InvalidArgumentError(
        "session",
        f"You must feed a value for placeholder tensor {op.name!r} with dtype {dtype} and shape {op.outputs[0].shape}",
    )
