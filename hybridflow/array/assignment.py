"""Making variables and assigning to them: what needs the functions that are built on the class (see ``operators``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.array import elementwise
from hybridflow.array.creation import asarray
from hybridflow.array.indexing import gather_nd, take
from hybridflow.compiler.ir.dtypes import is_float
from hybridflow.core.context import current, now
from hybridflow.core.method_install import give
from hybridflow.core.promotion import weak_kind
from hybridflow.core.string_tensor import is_string
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import DTypeError, ShapeError
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.calls.variable_locks import with_locks

_AS_IT_IS = frozenset((Tensor, float, int))  # types of most of what is added: operators take them as they are


def _start(
    self: Variable, initial: ArrayLike, trainable: bool = True, dtype: DTypeLike | None = None, name: str | None = None
) -> None:
    """A variable that starts as ``initial``: anything that ``hf.asarray`` takes, or a function that returns such.

    Inside a traced function it must be guarded so that it is made once; raises TraceError otherwise.
    """
    trace = current.trace
    if trace is not None:
        trace.before_variable_creation()
    tensor = asarray(initial() if callable(initial) else initial, dtype=dtype)
    if is_string(tensor.dtype):
        raise DTypeError("Variable", f"{tensor.type} holds texts, and variables hold numbers. Keep the tensor itself.")
    self._begin(tensor if trace is None else trace.initial_value(tensor), trainable, name)


def _assign(
    self: Variable, value: ArrayLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
) -> Variable:
    """Set the value, and return the variable.

    Python numbers, lists and NumPy arrays are converted to the variable's dtype.

    Args:
        value: a tensor, array, nested list or number of the variable's shape.
        use_locking: ignored.
        name: ignored.
        read_value: ignored.

    Returns:
        The variable.

    Raises:
        DTypeError: when a tensor has another dtype.
        ShapeError: when the shape differs.

    >>> hf.Variable([1.0, 2.0]).assign([3.0, 4.0]).numpy().tolist()
    [3.0, 4.0]
    """
    tensor = value if type(value) is Tensor and _fits(self, value) else _fitting(self, value)
    state = now()
    for tape in state.tapes:
        tape.note_assign(self, tensor)
    if state.trace is not None:
        state.trace.write_variable(self, tensor)
    else:
        self._write(tensor)
    return self


def _assign_add(
    self: Variable, delta: ArrayLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
) -> Variable:
    """Add ``delta`` to the value.

    Args:
        delta: what is added, broadcast to the variable's shape.
        use_locking: ignored.
        name: ignored.
        read_value: ignored.

    Returns:
        The variable.

    Raises:
        DTypeError: when a tensor has another dtype.
        ShapeError: when the shape does not fit.

    >>> hf.Variable([1.0, 2.0]).assign_add(1.0).numpy().tolist()
    [2.0, 3.0]
    """
    return _updated(self, elementwise.add, _of_all_replicas(self, delta) if self._sums_replicas else delta)


def _assign_sub(
    self: Variable, delta: object, use_locking: bool = False, name: str | None = None, read_value: bool = True
) -> Variable:
    """Subtract ``delta`` from the value.

    Args:
        delta: what is subtracted, broadcast to the variable's shape.
        use_locking: ignored.
        name: ignored.
        read_value: ignored.

    Returns:
        The variable.

    Raises:
        DTypeError: when a tensor has another dtype.
        ShapeError: when the shape does not fit.

    >>> hf.Variable([1.0, 2.0]).assign_sub(1.0).numpy().tolist()
    [0.0, 1.0]
    """
    return _updated(self, elementwise.subtract, _of_all_replicas(self, delta) if self._sums_replicas else delta)


def _scatter_add(self: Variable, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable:
    """Add the rows of ``hf.IndexedSlices`` to those at their indices.

    Args:
        sparse_delta: ``hf.IndexedSlices`` of rows like the variable's.
        use_locking: ignored.
        name: ignored.

    Returns:
        The variable.

    >>> table = hf.Variable(hf.zeros((3, 2)))
    >>> rows = hf.IndexedSlices(values=hf.ones((2, 2)), indices=[2, 2])
    >>> table.scatter_add(rows).numpy().tolist()
    [[0.0, 0.0], [0.0, 0.0], [2.0, 2.0]]
    """
    return _changed(self, "rows_added", sparse_delta)


def _scatter_sub(self: Variable, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable:
    """Subtract the rows of ``hf.IndexedSlices`` from those at their indices.

    Args:
        sparse_delta: ``hf.IndexedSlices`` of rows like the variable's.
        use_locking: ignored.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "rows_subtracted", sparse_delta)


def _scatter_update(
    self: Variable, sparse_delta: object, use_locking: bool = False, name: str | None = None
) -> Variable:
    """Set the rows of ``hf.IndexedSlices`` at their indices; of equal indices the last counts.

    Args:
        sparse_delta: ``hf.IndexedSlices`` of rows like the variable's.
        use_locking: ignored.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "rows_set", sparse_delta)


def _scatter_max(self: Variable, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable:
    """Keep the larger of the rows of the variable and of ``hf.IndexedSlices``, element by element.

    Args:
        sparse_delta: ``hf.IndexedSlices`` of rows like the variable's.
        use_locking: ignored.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "rows_largest", sparse_delta)


def _scatter_min(self: Variable, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable:
    """Keep the smaller of the rows of the variable and of ``hf.IndexedSlices``, element by element.

    Args:
        sparse_delta: ``hf.IndexedSlices`` of rows like the variable's.
        use_locking: ignored.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "rows_smallest", sparse_delta)


def _scatter_mul(self: Variable, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable:
    """Multiply the rows at the indices of ``hf.IndexedSlices`` by its rows.

    Args:
        sparse_delta: ``hf.IndexedSlices`` of rows like the variable's.
        use_locking: ignored.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "rows_multiplied", sparse_delta)


def _scatter_div(self: Variable, sparse_delta: object, use_locking: bool = False, name: str | None = None) -> Variable:
    """Divide the rows at the indices of ``hf.IndexedSlices`` by its rows.

    Args:
        sparse_delta: ``hf.IndexedSlices`` of rows like the variable's.
        use_locking: ignored.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "rows_divided", sparse_delta)


def _batch_scatter_update(
    self: Variable, sparse_delta: object, use_locking: bool = False, name: str | None = None
) -> Variable:
    """Set rows within each part of a batch, as ``scatter_update`` does for a whole variable.

    Args:
        sparse_delta: ``hf.IndexedSlices``, whose indices [..., n] name rows along their last axis; the axes before are
            those of the variable.
        use_locking: ignored.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "rows_set_in_batch", sparse_delta)


def _sparse_read(self: Variable, indices: ArrayLike, name: str | None = None) -> Tensor:
    """The rows at the indices.

    Args:
        indices: integers.
        name: ignored.

    Returns:
        A tensor of shape ``indices.shape + variable.shape[1:]``.

    >>> hf.Variable([10.0, 20.0, 30.0]).sparse_read([2, 0]).tolist()
    [30.0, 10.0]
    """
    return take(self, indices, axis=0)


def _gather_nd(self: Variable, indices: ArrayLike, name: str | None = None) -> Tensor:
    """What is at places: ``hf.gather_nd(variable, indices)``.

    Args:
        indices: integers, of which the last axis holds one position for each leading axis.
        name: ignored.

    Returns:
        A tensor of shape ``indices.shape[:-1] + variable.shape[indices.shape[-1]:]``.

    >>> hf.Variable([[1.0, 2.0], [3.0, 4.0]]).gather_nd([[1, 0]]).tolist()
    [3.0]
    """
    return gather_nd(self, indices)


def _scatter_nd_add(self: Variable, indices: ArrayLike, updates: ArrayLike, name: str | None = None) -> Variable:
    """Add ``updates`` at places.

    Args:
        indices: integers, of which the last axis holds one position for each leading axis.
        updates: values for those positions, in the variable's dtype.
        name: ignored.

    Returns:
        The variable.

    >>> hf.Variable([0.0, 0.0, 0.0]).scatter_nd_add([[1], [1]], [2.0, 3.0]).numpy().tolist()
    [0.0, 5.0, 0.0]
    """
    return _changed(self, "added_at", indices, updates)


def _scatter_nd_sub(self: Variable, indices: ArrayLike, updates: ArrayLike, name: str | None = None) -> Variable:
    """Subtract ``updates`` at places.

    Args:
        indices: integers, of which the last axis holds one position for each leading axis.
        updates: values for those positions, in the variable's dtype.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "subtracted_at", indices, updates)


def _scatter_nd_update(self: Variable, indices: ArrayLike, updates: ArrayLike, name: str | None = None) -> Variable:
    """Set ``updates`` at places.

    Args:
        indices: integers, of which the last axis holds one position for each leading axis.
        updates: values for those positions, in the variable's dtype.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "set_at", indices, updates)


def _scatter_nd_max(self: Variable, indices: ArrayLike, updates: ArrayLike, name: str | None = None) -> Variable:
    """Keep the larger of what is there and ``updates`` at places.

    Args:
        indices: integers, of which the last axis holds one position for each leading axis.
        updates: values for those positions, in the variable's dtype.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "largest_at", indices, updates)


def _scatter_nd_min(self: Variable, indices: ArrayLike, updates: ArrayLike, name: str | None = None) -> Variable:
    """Keep the smaller of what is there and ``updates`` at places.

    Args:
        indices: integers, of which the last axis holds one position for each leading axis.
        updates: values for those positions, in the variable's dtype.
        name: ignored.

    Returns:
        The variable.
    """
    return _changed(self, "smallest_at", indices, updates)


@uninterruptible.loaded
def _scattering() -> Any:
    from hybridflow.array import scattering  # which few programs need

    return scattering


def _changed(variable: Variable, how: str, *args: object) -> Variable:
    change: Callable[..., Tensor] = getattr(_scattering(), how)
    return with_locks((variable._gate,), lambda: variable.assign(change(variable._read(), *args)))


def _of_all_replicas(variable: Variable, delta: Any) -> Tensor:
    """What all replicas of a strategy add, where this is one of them."""
    trace = now().trace
    axis = None if trace is None else trace.strategy_axis()
    if axis is None:
        return delta
    is_tensor = isinstance(delta, (Tensor, Variable))
    delta_here = as_tensor(delta, "assign", None if is_tensor else variable.dtype)
    return builder.all_reduce(delta_here, axis=axis.name, size=axis.size, reduce="sum")


def _updated(variable: Variable, op: Callable[..., Tensor], delta: object) -> Variable:
    if type(delta) not in _AS_IT_IS and not isinstance(delta, (Tensor, Variable)) and weak_kind(delta) is None:
        delta = as_tensor(delta, "assign", variable.dtype)  # arrays and lists, as in ``assign``
    state = now()
    if state.trace is None and not state.tapes:
        seen = variable._current()
        result = op(seen, delta)
        if variable._write(result if _fits(variable, result) else _fitting(variable, result), expected=seen):
            return variable  # nobody else has written meanwhile
    return with_locks((variable._gate,), lambda: variable.assign(op(variable._read(), delta)))


def _fits(variable: Variable, tensor: Tensor) -> bool:
    """Whether a tensor, which is no symbolic one, has the variable's type."""
    new, old = tensor._array, variable._tensor._array
    return bool(new.dtype == old.dtype and new.shape == old.shape)


def _fitting(variable: Variable, value: ArrayLike) -> Tensor:
    """What is assigned, as a tensor of the variable's type."""
    is_tensor = isinstance(value, (Tensor, Variable))
    tensor = as_tensor(value, "assign", None if is_tensor else variable.dtype)
    if now().narrow is not None and is_float(tensor.dtype) and is_float(variable.dtype):
        tensor = cast(tensor, variable.dtype)  # in a layer that computes in another one
    if tensor.dtype != variable.dtype:
        raise DTypeError(
            "assign", f"{variable._title()} cannot take {tensor.type}. Convert it with x.astype(hf.{variable.dtype})."
        )
    if tensor.shape != variable.shape:
        raise ShapeError(
            "assign",
            f"{variable._title()} cannot take {tensor.type}: its shape is fixed. Reshape the value, or make "
            "another variable.",
        )
    return tensor


def install() -> None:
    """Give the class these methods; called once, when the package is imported."""
    give(Variable, "__init__", _start)
    give(Variable, "assign", _assign)
    give(Variable, "assign_add", _assign_add)
    give(Variable, "assign_sub", _assign_sub)
    give(Variable, "scatter_add", _scatter_add)
    give(Variable, "scatter_sub", _scatter_sub)
    give(Variable, "scatter_update", _scatter_update)
    give(Variable, "scatter_nd_add", _scatter_nd_add)
    give(Variable, "scatter_nd_sub", _scatter_nd_sub)
    give(Variable, "scatter_nd_update", _scatter_nd_update)
    give(Variable, "scatter_mul", _scatter_mul)
    give(Variable, "scatter_div", _scatter_div)
    give(Variable, "batch_scatter_update", _batch_scatter_update)
    give(Variable, "sparse_read", _sparse_read)
    give(Variable, "gather_nd", _gather_nd)
    give(Variable, "scatter_max", _scatter_max)
    give(Variable, "scatter_min", _scatter_min)
    give(Variable, "scatter_nd_max", _scatter_nd_max)
    give(Variable, "scatter_nd_min", _scatter_nd_min)
