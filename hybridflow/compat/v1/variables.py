"""Variables of graphs: nodes whose values sessions have, and scopes in which they are found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hybridflow import initializers
from hybridflow.array import indexing
from hybridflow.array.creation import asarray
from hybridflow.compat.v1.errors import OutOfRangeError
from hybridflow.compat.v1.graph import Graph, Info, Operation, Tensor, default_graph, give_operators
from hybridflow.compat.v1.kinds import kind_of
from hybridflow.compat.v1.recording import as_graph_tensor, is_symbolic
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.compiler.ir import dtypes
from hybridflow.core import pytree
from hybridflow.core.context import suspended
from hybridflow.eager.operands import as_tensor, cast

GLOBAL, LOCAL, TRAINABLE = "variables", "local_variables", "trainable_variables"
REGULARIZATION, AVERAGED = "regularization_losses", "moving_average_variables"


@pytree.declare_leaf
class Variable:
    """A variable of a graph.  It has a value in each session, from when its ``initializer`` has run there.

    An operation that takes it reads it when it runs, after what it depends on by ``tf.control_dependencies``.
    """

    __array_priority__ = 1000
    __array_ufunc__ = None

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Sequence[Any] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        use_resource: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        self.graph = default_graph()
        self.trainable = True if trainable is None else bool(trainable)
        self.constraint = constraint
        with self.graph.in_body(None), self.graph.control_dependencies(None):
            self._build(initial_value, name or "Variable", dtype)
        groups = list(collections) if collections is not None else [GLOBAL]
        if self.trainable and TRAINABLE not in groups:
            groups.append(TRAINABLE)
        self.graph.add_to_collections(groups, self)

    def _build(self, initial_value: Any, name: str, dtype: Any) -> None:
        graph = self.graph
        whole = graph.unique_name(name)
        with graph.name_scope(f"{whole}/"):
            value = initial_value() if callable(initial_value) else initial_value
            self.initial_value = tensor = _converted(graph, value, dtype, "initial_value")
        info = Info(tensor.info.shape, tensor.dtype)
        self.op = graph.add("VariableV2", f"{whole}/", [], [info], _no_value)
        self._tensor = self.op.outputs[0]
        self.op.is_reference, self.op.source = True, self
        self.initializer = self._assigning("Assign", f"{whole}/Assign/", tensor, lambda held, value: value, reads=False)
        read = graph.add("Identity", f"{whole}/read/", [self._tensor], [info], _no_value)
        read.is_reference, read.source = True, self
        self._read = read.outputs[0]

    def initial_shape(self) -> tuple[int, ...]:
        """Raises ValueError where a part of it is not known."""
        shape = self._tensor.info.shape
        if shape is None or None in shape:
            raise ValueError(
                f"initial_value of {self.name} must have a shape specified: {self._tensor.shape}. Sessions have "
                "variables of fixed shapes."
            )
        return tuple([int(x) for x in shape if x is not None])

    @property
    def name(self) -> str:
        return self._tensor.name

    @property
    def dtype(self) -> Any:
        return self._tensor.dtype

    @property
    def shape(self) -> TensorShape:
        return self._tensor.shape

    @property
    def device(self) -> str:
        return self.op.device

    def get_shape(self) -> TensorShape:
        return self.shape

    def _as_graph_tensor(self) -> Tensor:
        return self._read

    def _as_graph_element(self) -> Tensor:
        return self._tensor

    def value(self) -> Tensor:
        """What stands for its value: read whenever an operation that takes it runs."""
        return self._read

    def read_value(self) -> Tensor:
        """Its value at one point: after what ``tf.control_dependencies`` says."""
        op = self.graph.add("Identity", "read_value", [self._read], [self._read.info], lambda run, values: values)
        return op.outputs[0]

    def initialized_value(self) -> Tensor:
        """Its value, or in a session in which it has none the one that it will start from."""
        op = self.graph.add(
            "InitializedValue", "initialized_value", [self.initial_value], [self._read.info], self._value_or_start
        )
        op.is_eager = True
        return op.outputs[0]

    def _value_or_start(self, run: Any, values: Sequence[Any]) -> list[Any]:
        return [run.variable(self)._read() if self in run.state.ready else values[0]]

    def eval(self, session: Any = None) -> Any:
        """Its value in a session, or the default one."""
        return self.graph.session_for(session).run(self._tensor)

    def load(self, value: Any, session: Any = None) -> None:
        """Assign a value in a session, at once."""
        found = self.graph.session_for(session)
        array = np.asarray(value, dtype=np.dtype(self.dtype))
        if not self.shape.is_compatible_with(array.shape):
            raise ValueError(f"the value has shape {array.shape}, {self.name} has {self.shape}.")
        found.state.load(self, array)

    # Assignments

    def _assigning(
        self, type: str, name: str | None, value: Any, change: Callable[[Any, Any], Any], reads: bool = True
    ) -> Operation:
        graph = self.graph
        inputs = list(value) if isinstance(value, tuple) else [value]

        def compute(run: Any, values: Sequence[Any]) -> list[Any]:
            held = run.variable(self)
            given = values[0] if len(values) == 1 else tuple(values)
            held.assign(cast(as_tensor(change(held, given), "assign"), held.dtype))
            return [held]

        op = graph.add(type, name or type, inputs, [self._tensor.info], compute)
        op.writes = [self]
        op.reads = [self] if reads else []
        return op

    def _given(self, value: Any) -> Tensor:
        tensor = _converted(self.graph, value, self.dtype, "value")
        if tensor.dtype is not None and tensor.dtype != self.dtype:
            raise TypeError(
                f"Input 'value' of 'Assign' Op has type {tensor.dtype.name} that does not match type "
                f"{self.dtype.name} of {self.name}."
            )
        return tensor

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
        validate_shape: bool = True,
    ) -> Tensor:
        """The operation that assigns; its value is the new one.  Raises ValueError for another shape."""
        tensor = self._given(value)
        if not self.shape.is_compatible_with(tensor.shape):
            raise ValueError(f"Dimensions must be equal: {self.name} has shape {self.shape}, the value {tensor.shape}.")
        return self._assigning("Assign", name, tensor, lambda held, new: new, reads=False).outputs[0]

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Tensor:
        return self._assigning("AssignAdd", name, self._given(delta), lambda held, x: held + x).outputs[0]

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Tensor:
        return self._assigning("AssignSub", name, self._given(delta), lambda held, x: held - x).outputs[0]

    def _scattered(self, type: str, indices: Any, updates: Any, name: str | None, sign: int) -> Tensor:
        places = _converted(self.graph, indices, None, "indices")

        def change(held: Any, given: Any) -> Any:
            where, values = given
            if sign:
                return indexing.scatter_add(held, where, values * sign)
            changed = +held._read()
            changed[where] = values
            return changed

        return self._assigning(type, name, (places, self._given(updates)), change).outputs[0]

    def _scattered_at(self, indices: Any, updates: Any, name: str | None) -> Tensor:
        """Elements at whole positions, one in each row of the indices, replaced."""
        places = _converted(self.graph, indices, None, "indices")

        def change(held: Any, given: Any) -> Any:
            where, values = given
            changed = +held._read()
            changed[tuple([where[..., k] for k in range(where.shape[-1])])] = values
            return changed

        return self._assigning("ScatterNdUpdate", name, (places, self._given(updates)), change).outputs[0]

    def scatter_add(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        return self._scattered("ScatterAdd", indices, updates, name, 1)

    def scatter_sub(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        return self._scattered("ScatterSub", indices, updates, name, -1)

    def scatter_update(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        return self._scattered("ScatterUpdate", indices, updates, name, 0)

    def count_up_to(self, limit: int) -> Tensor:
        """Its value, before one is added.  Raises OutOfRangeError once it has reached the limit."""

        def compute(run: Any, values: Sequence[Any]) -> list[Any]:
            held = run.variable(self)
            before = +held._read()
            if int(before.numpy()) >= limit:
                raise OutOfRangeError("count_up_to", f"Reached limit of {limit}")
            held.assign(before + 1)
            return [before]

        op = self.graph.add("CountUpTo", "CountUpTo", [], [self._tensor.info], compute)
        op.reads = op.writes = [self]
        op.is_eager = True
        return op.outputs[0]

    def __getitem__(self, key: Any) -> Any:
        return Slice.of(self, key)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("'Variable' object is not iterable.")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}>"


give_operators(Variable)


class Slice(Tensor):
    """Elements of a variable: a tensor, which ``assign`` changes in place."""

    __slots__ = ("_key", "_variable")
    _variable: Variable
    _key: Any

    @staticmethod
    def of(variable: Variable, key: Any) -> Any:
        """``variable[key]``."""
        taken = Tensor.operate("getitem", variable, key)
        found = Slice(taken.op, taken.value_index, taken.info)
        found._variable, found._key = variable, key
        taken.op.outputs[taken.value_index] = found
        return found

    def assign(self, value: Any, name: str | None = None) -> Tensor:
        """The operation that gives these elements values; its value is the whole variable."""
        variable, key = self._variable, self._key
        parts = list(key) if isinstance(key, tuple) else [key]
        places = [k for k, x in enumerate(parts) if is_symbolic(x)]
        given = (variable._given(value), *[as_graph_tensor(parts[k]) for k in places])

        def change(held: Any, values: Any) -> Any:
            new, *numbers = values if isinstance(values, tuple) else (values,)
            filled = list(parts)
            for place, number in zip(places, numbers):
                filled[place] = number
            changed = +held._read()
            changed[tuple(filled)] = new
            return changed

        return variable._assigning("StridedSliceAssign", name, given, change).outputs[0]


def _no_value(run: Any, values: Sequence[Any]) -> list[Any]:
    raise AssertionError("variables are read where they are used")


def _converted(graph: Graph, value: Any, dtype: Any, what: str) -> Tensor:
    """A value as a tensor of the graph."""
    if is_symbolic(value):
        return as_graph_tensor(value)
    from hybridflow.compat.v1.constants import constant

    found: Tensor = constant(value, dtype, name=what)
    return found


# ---- what sessions are asked to do to variables


def is_variable_initialized(variable: Variable) -> Tensor:
    """Whether a variable has a value in the session that runs this."""
    op = variable.graph.add(
        "IsVariableInitialized",
        None,
        [],
        [Info((), dtypes.bool_)],
        lambda run, values: [asarray(variable in run.state.ready)],
    )
    op.is_eager = True
    return op.outputs[0]


def report_uninitialized_variables(var_list: Any = None, name: str = "report_uninitialized_variables") -> Tensor:
    """The names of variables that have no value in the session that runs this."""
    graph = default_graph()
    chosen = global_variables() + local_variables() if var_list is None else list(var_list)

    def compute(state: Any, values: Sequence[Any]) -> list[Any]:
        names = [v.op.name.encode() for v in chosen if v not in state.ready]
        return [np.array(names, dtype=object)]

    op = graph.add("ReportUninitialized", name, [], [Info((None,), np.dtype(object))], compute)
    op.on_host = True
    return op.outputs[0]


def global_variables(scope: str | None = None) -> list[Any]:
    return default_graph().get_collection(GLOBAL, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    return default_graph().get_collection(LOCAL, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    return default_graph().get_collection(TRAINABLE, scope)


def all_variables() -> list[Any]:
    return global_variables()


def assign(ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: str | None = None) -> Any:
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    return ref.assign_add(value, name=name)


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    return ref.assign_sub(value, name=name)


def scatter_add(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    return ref.scatter_add(indices, updates, name)


def scatter_sub(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    return ref.scatter_sub(indices, updates, name)


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Any:
    return ref.count_up_to(limit)


def scatter_nd_update(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
    return ref._scattered_at(indices, updates, name)


def scatter_update(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    return ref.scatter_update(indices, updates, name)


# ---- initializers


class Initial:
    """An initializer: called with a shape and dtype, it makes the operation whose value a variable starts from."""

    def __init__(self, make: Callable[[int | None], Any], seed: int | None = None) -> None:
        self._make, self.seed = make, seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Tensor:
        graph = default_graph()
        extents = tuple(TensorShape(shape).as_list())
        dtype = kind_of(dtype or dtypes.float32)
        seed = self.seed
        if seed is None and graph.seed is not None:
            seed = graph.seed + 7919 * (graph.version + 1)
        rule = self._make(seed)

        def compute(run: Any, values: Sequence[Any]) -> list[Any]:
            with suspended():
                return [asarray(rule(extents, dtype))]

        op = graph.add("Initial", type(rule).__name__, [], [Info(extents, dtype)], compute)
        op.is_eager = True
        return op.outputs[0]


_factories: set[Any] = set()  # which are called without arguments where they stand for what they make


def initializer_of(kind: str, *names: str, **defaults: Any) -> Callable[..., Initial]:
    """An initializer of hybridflow's as one of graphs: its arguments by name, in TensorFlow's order."""

    def make(*args: Any, **kwargs: Any) -> Initial:
        given = {**defaults, **dict(zip(names, args)), **kwargs}
        seed = given.pop("seed", None)
        given.pop("dtype", None)
        if given.get("distribution") == "normal":
            given["distribution"] = "truncated_normal"
        factory = getattr(initializers, kind)
        if kind in ("Zeros", "Ones", "Constant", "Identity"):
            return Initial(lambda _: factory(**given))
        return Initial(lambda chosen: factory(**given, seed=chosen), seed)

    make.__name__ = kind
    _factories.add(make)
    return make


zeros_initializer = initializer_of("Zeros", "dtype")
ones_initializer = initializer_of("Ones", "dtype")
random_normal_initializer = initializer_of("RandomNormal", "mean", "stddev", "seed", "dtype", mean=0.0, stddev=1.0)
truncated_normal_initializer = initializer_of(
    "TruncatedNormal", "mean", "stddev", "seed", "dtype", mean=0.0, stddev=1.0
)
random_uniform_initializer = initializer_of(
    "RandomUniform", "minval", "maxval", "seed", "dtype", minval=0.0, maxval=1.0
)
variance_scaling_initializer = initializer_of("VarianceScaling", "scale", "mode", "distribution", "seed", "dtype")
glorot_uniform_initializer = initializer_of("GlorotUniform", "seed", "dtype")
glorot_normal_initializer = initializer_of("GlorotNormal", "seed", "dtype")
he_normal_initializer = initializer_of("HeNormal", "seed", "dtype")
uniform_unit_scaling_initializer = initializer_of("VarianceScaling", "scale", "seed", "dtype", distribution="uniform")
orthogonal_initializer = initializer_of("Orthogonal", "gain", "seed", "dtype")
identity_initializer = initializer_of("Identity", "gain", "dtype")


class _Constant:
    """Every element has one value, or they are those of a list, in order."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self, shape: Sequence[int], dtype: Any) -> Any:
        array = np.asarray(self._value, dtype=dtype)
        return np.full(shape, array) if not array.ndim else array.reshape(shape)


def constant_initializer(value: Any = 0, dtype: Any = None, verify_shape: bool = False) -> Initial:
    return Initial(lambda _: _Constant(value))


# ---- scopes

AUTO_REUSE = "AUTO_REUSE"


class VariableScope:
    """What ``get_variable`` heeds within a scope."""

    def __init__(self, name: str, reuse: Any = None, **settings: Any) -> None:
        self._name, self.reuse = name, reuse
        self.initializer = settings.get("initializer")
        self.regularizer = settings.get("regularizer")
        self.custom_getter = settings.get("custom_getter")
        self.dtype = settings.get("dtype") or dtypes.float32
        self.original_name_scope = ""

    @property
    def name(self) -> str:
        return self._name

    def reuse_variables(self) -> None:
        """From here on take variables that there are."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
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
    found: _Store = graph.store
    return found


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """Those of which ``tf.train.ExponentialMovingAverage`` keeps averages."""
    return default_graph().get_collection(AVERAGED, scope)


def get_variable_scope() -> VariableScope:
    return _store().scope


@contextmanager
def variable_scope(
    name_or_scope: Any,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: Any = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Variables of ``get_variable`` in the block are found below this name; ``reuse=True`` takes those that there
    are, ``tf.AUTO_REUSE`` makes what there is not yet."""
    store, graph = _store(), default_graph()
    before = store.scope
    if isinstance(name_or_scope, VariableScope):
        given, name = name_or_scope, name_or_scope.name
        scope_name = name.rpartition("/")[2]
        inherited: VariableScope = given
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
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Any = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
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
        "constraint": constraint,
    }
    whole = f"{scope.name}/{name}" if scope.name else name
    if getter is not None:
        found: Variable = getter(_found_or_made, whole, **options)
        return found
    return _found_or_made(whole, **options)


def _found_or_made(
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    reuse: Any = None,
    constraint: Any = None,
    **_: Any,
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
    found = _made(name, shape, dtype, initializer, regularizer, trainable, collections)
    found.constraint = constraint
    return found


def _checked(variable: Variable, name: str, shape: Any, dtype: Any) -> Variable:
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


def _made(
    name: str, shape: Any, dtype: Any, initializer: Any, regularizer: Any, trainable: Any, collections: Any
) -> Variable:
    graph = default_graph()
    with graph.name_scope(None), graph.control_dependencies(None):
        if initializer is None:
            initializer = glorot_uniform_initializer() if dtypes.is_float(kind_of(dtype)) else zeros_initializer()
        if isinstance(initializer, type) or any(initializer is make for make in _factories):
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
                loss = regularizer(variable)
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


def model_variables(scope: str | None = None) -> list[Any]:
    """Those in the collection of that name."""
    return default_graph().get_collection("model_variables", scope)


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Any:
    """Said of a variable that is to lie in parts on several machines: here it is in one."""
    return lambda shape, **_: [num_shards if k == axis else 1 for k in range(len(shape))]


def variable_axis_size_partitioner(max_shard_bytes: int, axis: int = 0, *_: Any, **__: Any) -> Any:
    """The same."""
    return fixed_size_partitioner(1, axis)


def min_max_variable_partitioner(max_partitions: int = 1, axis: int = 0, *_: Any, **__: Any) -> Any:
    """The same."""
    return fixed_size_partitioner(1, axis)


def get_local_variable(*args: Any, **kwargs: Any) -> Variable:
    """``get_variable``, of one that is not trained or saved."""
    return get_variable(*args, **{**kwargs, "trainable": False, "collections": [LOCAL]})
