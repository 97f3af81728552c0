"""Scopes in which variables are made, and found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hybridflow import initializers
from hybridflow.compat.v1.dtype_names import kind_of
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.initializers import FACTORIES, Initial, glorot_uniform_initializer, zeros_initializer
from hybridflow.compat.v1.regularizers import penalty
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.compat.v1.variable_functions import global_variables, trainable_variables
from hybridflow.compat.v1.variables import LOCAL, REGULARIZATION, Variable
from hybridflow.compiler.ir import dtypes
from hybridflow.core.type_aliases import DTypeLike, ShapeLike

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


AUTO_REUSE = "AUTO_REUSE"


class VariableScope:
    """What ``get_variable`` heeds within a scope."""

    def __init__(self, name: str, reuse: object = None, **settings: Any) -> None:
        self._name, self.reuse = name, reuse
        self.initializer = settings.get("initializer")
        self.regularizer = settings.get("regularizer")
        self.custom_getter, self.constraint = settings.get("custom_getter"), settings.get("constraint")
        self.dtype = settings.get("dtype") or dtypes.float32
        self.original_name_scope = ""

    @property
    def name(self) -> str:
        return self._name

    def reuse_variables(self) -> None:
        """From here on take variables that there are."""
        self.reuse = True

    def set_initializer(self, initializer: object) -> None:
        self.initializer = initializer

    def set_regularizer(self, regularizer: object) -> None:
        self.regularizer = regularizer

    def get_variable(self, name: str, *args: Any, **kwargs: Any) -> Any:
        with variable_scope(self):
            return get_variable(name, *args, **kwargs)

    def global_variables(self) -> list[Any]:
        return global_variables(f"{self._name}/" if self._name else None)

    def trainable_variables(self) -> list[Any]:
        return trainable_variables(f"{self._name}/" if self._name else None)


class _Store:
    """The variables of a graph by name, and the scope in which the next one is made."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.scope = VariableScope("")
        self.counts: dict[str, int] = {}


def _store() -> _Store:
    graph = default_graph()
    if graph.store is None:
        graph.store = _Store()
    result: _Store = graph.store
    return result


def get_variable_scope() -> VariableScope:
    return _store().scope


@contextmanager
def variable_scope(
    name_or_scope: Any,
    default_name: str | None = None,
    values: TensorLike | None = None,
    initializer: Callable[..., Any] | None = None,
    regularizer: Callable[..., Any] | None = None,
    caching_device: object = None,
    partitioner: object = None,
    custom_getter: Callable[..., Any] | None = None,
    reuse: bool | str | None = None,
    dtype: DTypeLike | None = None,
    use_resource: object = None,
    constraint: Callable[..., Any] | None = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Variables of ``get_variable`` in the block are found below this name; ``reuse=True`` takes those that there
    are, ``tf.AUTO_REUSE`` makes what there is not yet."""
    store, graph = _store(), default_graph()
    before = store.scope
    if isinstance(name_or_scope, VariableScope):
        entered, name = name_or_scope, name_or_scope.name
        scope_name = name.rpartition("/")[2]
        inherited: VariableScope = entered
    else:
        if name_or_scope is None:
            if default_name is None:
                raise TypeError("If default_name is None then name_or_scope is required")
            name_or_scope = _unique(store, before.name, default_name)
        name = f"{before.name}/{name_or_scope}" if before.name else str(name_or_scope)
        scope_name, inherited = str(name_or_scope), before
    scope = VariableScope(
        name,
        reuse if reuse is not None else inherited.reuse,
        initializer=inherited.initializer if initializer is None else initializer,
        regularizer=regularizer or inherited.regularizer,
        custom_getter=custom_getter or inherited.custom_getter,
        constraint=constraint or inherited.constraint,
        dtype=dtype or inherited.dtype,
    )
    store.scope = scope
    try:
        if auxiliary_name_scope and scope_name:
            with graph.name_scope(scope_name) as opened:
                scope.original_name_scope = opened
                yield scope
        else:
            yield scope
    finally:
        store.scope = before
        for key in [key for key in store.counts if key.startswith(f"{name}/")]:  # whoever comes again counts anew
            del store.counts[key]


def _unique(store: _Store, outer: str, name: str) -> str:
    key = f"{outer}/{name}"
    count = store.counts.get(key, 0)
    store.counts[key] = count + 1
    return f"{name}_{count}" if count else name


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: object = None,
    partitioner: object = None,
    validate_shape: bool = True,
    use_resource: object = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: object = None,
    aggregation: object = None,
) -> Variable:
    """The variable of that name in the present scope: made, or found where the scope reuses variables."""
    scope = get_variable_scope()
    getter = custom_getter or scope.custom_getter
    options = {
        "shape": shape,
        "dtype": dtype or scope.dtype,
        "initializer": scope.initializer if initializer is None else initializer,
        "regularizer": scope.regularizer if regularizer is None else regularizer,
        "trainable": trainable,
        "collections": collections,
        "reuse": scope.reuse,
        "constraint": constraint or scope.constraint,
    }
    whole = f"{scope.name}/{name}" if scope.name else name
    if getter is not None:
        result: Variable = getter(_get_or_create, whole, **options)
        return result
    return _get_or_create(whole, **options)


def _get_or_create(
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Sequence[Any] | None = None,
    reuse: object = None,
    constraint: Callable[..., Any] | None = None,
    **_: object,
) -> Variable:
    known = _store().variables
    if name in known:
        if not reuse:
            raise ValueError(
                f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in "
                "VarScope?"
            )
        return _checked(known[name], name, shape, dtype)
    if reuse is True:
        raise ValueError(
            f"Variable {name} does not exist, or was not created with tf.get_variable(). Did you mean to set "
            "reuse=tf.AUTO_REUSE in VarScope?"
        )
    result = _create_variable(name, shape, dtype, initializer, regularizer, trainable, collections)
    result.constraint = constraint
    return result


def _checked(variable: Variable, name: str, shape: ShapeLike, dtype: DTypeLike) -> Variable:
    if shape is not None and not variable.shape.is_compatible_with(shape):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {TensorShape(shape)} and found shape "
            f"{variable.shape}."
        )
    if kind_of(dtype) != variable.dtype:
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype {dtype} and found dtype {variable.dtype}."
        )
    return variable


def _create_variable(
    name: str,
    shape: Any,
    dtype: Any,
    initializer: Any,
    regularizer: Any,
    trainable: Any,
    collections: Any,
) -> Variable:
    graph = default_graph()
    with graph.name_scope(None), graph.control_dependencies(None):
        if initializer is None:
            initializer = glorot_uniform_initializer() if dtypes.is_float(kind_of(dtype)) else zeros_initializer()
        if isinstance(initializer, type) or any(initializer is make for make in FACTORIES):
            initializer = initializer()
        if callable(initializer):
            if shape is None:
                raise ValueError(f"Shape of a new variable ({name}) must be fully defined, but instead was <unknown>.")
            if not TensorShape(shape).is_fully_defined():
                raise ValueError(f"Shape of a new variable ({name}) must be fully defined, but instead was {shape}.")
            start: Any = lambda: _started(initializer, shape, dtype)  # noqa: E731
        else:
            if shape is not None:
                raise ValueError("If initializer is a constant, do not specify shape.")
            start = initializer
        variable = Variable(start, trainable, collections, name=name, dtype=dtype)
        _store().variables[name] = variable
        if regularizer is not None:
            with graph.name_scope(f"{name}/Regularizer/"):
                loss = penalty(regularizer, variable)
            if loss is not None:
                graph.add_to_collection(REGULARIZATION, loss)
    return variable


def _started(initializer: Any, shape: Any, dtype: Any) -> Any:
    """What an initializer makes: one of graphs, of hybridflow's, or a function."""
    graph = default_graph()
    if isinstance(initializer, initializers.Initializer):
        return Initial(lambda _: initializer)(shape, dtype)
    with graph.name_scope("Initializer"):
        try:
            return initializer(TensorShape(shape).as_list(), dtype=dtype)
        except TypeError:
            return initializer(TensorShape(shape).as_list())


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Any:
    """Said of a variable that is to lie in parts on several machines: here it is in one."""
    return lambda shape, **_: [num_shards if k == axis else 1 for k in range(len(shape))]


def variable_axis_size_partitioner(max_shard_bytes: int, axis: int = 0, *_: object, **__: object) -> Any:
    """The same."""
    return fixed_size_partitioner(1, axis)


def min_max_variable_partitioner(max_partitions: int = 1, axis: int = 0, *_: object, **__: object) -> Any:
    """The same."""
    return fixed_size_partitioner(1, axis)


def get_local_variable(*args: Any, **kwargs: Any) -> Variable:
    """``get_variable``, of one that is not trained or saved."""
    return get_variable(*args, **{**kwargs, "trainable": False, "collections": [LOCAL]})
