"""Names that TensorFlow 1 had for functions of TensorFlow 2, and rooms of these as namespaces of graphs."""

from __future__ import annotations

import functools
import importlib
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

from hybridflow.autodiff import custom
from hybridflow.compat import export
from hybridflow.compat.tf import names as tf_names
from hybridflow.compat.v1.graph_stack import computing
from hybridflow.compat.v1.naming import Namespace
from hybridflow.compat.v1.recording import Recorded, is_symbolic
from hybridflow.core import pytree

# Of TensorFlow 1's ``tf``: where TensorFlow 2 has the same function.
_RENAMED = """
matrix_inverse linalg.inv, matrix_determinant linalg.det, cholesky linalg.cholesky,
cholesky_solve linalg.cholesky_solve, trace linalg.trace, matrix_solve linalg.solve,
matrix_triangular_solve linalg.triangular_solve, qr linalg.qr, svd linalg.svd, self_adjoint_eig linalg.eigh,
self_adjoint_eigvals linalg.eigvalsh, matrix_band_part linalg.band_part, matrix_set_diag linalg.set_diag,
matrix_diag_part linalg.diag_part, diag_part linalg.tensor_diag_part, log_sigmoid math.log_sigmoid,
cross linalg.cross, matrix_solve_ls linalg.lstsq, invert_permutation math.invert_permutation,
segment_sum math.segment_sum, segment_mean math.segment_mean, unsorted_segment_sum math.unsorted_segment_sum,
unsorted_segment_mean math.unsorted_segment_mean, confusion_matrix math.confusion_matrix,
bincount math.bincount, rint math.rint, polyval math.polyval, is_non_decreasing math.is_non_decreasing,
is_strictly_increasing math.is_strictly_increasing, space_to_depth nn.space_to_depth,
depth_to_space nn.depth_to_space, conj math.conj, real math.real, imag math.imag, read_file io.read_file,
write_file io.write_file, matching_files io.matching_files, FixedLenFeature io.FixedLenFeature,
VarLenFeature io.VarLenFeature, FixedLenSequenceFeature io.FixedLenSequenceFeature, top_k math.top_k,
segment_max math.segment_max, segment_min math.segment_min, segment_prod math.segment_prod,
unsorted_segment_max math.unsorted_segment_max, unsorted_segment_min math.unsorted_segment_min,
unsorted_segment_prod math.unsorted_segment_prod, unsorted_segment_sqrt_n math.unsorted_segment_sqrt_n,
matrix_transpose linalg.matrix_transpose, betainc math.betainc, lgamma math.lgamma,
digamma math.digamma, erfc math.erfc, count_nonzero math.count_nonzero, cumprod math.cumprod,
"""
RENAMED: dict[str, str] = dict(pair.split() for pair in _RENAMED.replace("\n", " ").split(",") if pair.strip())


def type_of(name: str) -> str:
    """The type of operations of a function, as TensorFlow would call it: ``reduce_sum`` is ReduceSum."""
    return re.sub(r"(?:^|_)(\w)", lambda m: m[1].upper(), name)


def recorded(dotted: str) -> Any:
    """What TensorFlow 2 has under a dotted name, its functions as ones that record.  Raises AttributeError."""
    result = tf_names.function_of(dotted)
    result = result.function if isinstance(result, Recorded) else result
    if not isinstance(result, types.FunctionType):
        return result
    last = dotted.rpartition(".")[2]
    meaning = export.MEANINGS.get(dotted)
    if meaning is None:
        return Recorded(result, type_of(last), last)
    return Recorded(_with_old_names(result, meaning.v1_names), meaning.op_type or type_of(last), last)


def _with_old_names(function: Callable[..., Any], old: Mapping[str, str]) -> Callable[..., Any]:
    """The function, which takes arguments by TensorFlow 1's names too."""
    if not old:
        return function

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return function(*args, **{old.get(name, name): value for name, value in kwargs.items()})

    return call


def room(path: str, extra: Mapping[str, Any] | None = None, fallback: Any = None) -> Namespace:
    """The namespace ``tf.path``: names of its own, then those of TensorFlow 2's room, then those of a fallback."""

    def look_up(name: str) -> Any:
        try:
            return recorded(f"{path}.{name}")
        except (AttributeError, ImportError):
            if name in tf_names.inner_rooms(path):
                return room(f"{path}.{name}")
            return None if fallback is None else fallback(name)

    return Namespace(f"tf.{path}", extra or {}, look_up)


def module_of(path: str) -> Any:
    """A room of TensorFlow 2 as it is: what is in it computes at once."""
    return importlib.import_module(f"{tf_names.TF}.{path}")


def function(func: Callable[..., object] | None = None, *args: object, **kwargs: object) -> Any:
    """``tf.function``: given tensors of a graph, what it does is recorded there."""
    if func is None:
        return lambda one: function(one, *args, **kwargs)
    compiled = tf_names.function_of("function")(func, *args, **kwargs)

    @functools.wraps(func)
    def call(*args: object, **named: object) -> Any:
        is_symbolic_call = any(map(is_symbolic, pytree.flatten((args, named))[0]))
        return func(*args, **named) if is_symbolic_call else compiled(*args, **named)

    return call


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """``tf.custom_gradient``: ``f(*tensors) -> (outputs, grad_fn)``, both called with values whenever it runs."""

    @functools.wraps(f)
    def gradient_function(*args: object) -> Any:
        with computing():
            outputs, derivative = f(*args)
        return outputs, _computed(derivative)

    return Recorded(custom.custom_gradient(gradient_function), "IdentityN", getattr(f, "__name__", "custom_gradient"))


def _computed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        with computing():
            return function(*args, **kwargs)

    return call
