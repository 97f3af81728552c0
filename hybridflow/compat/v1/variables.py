"""Variables of graphs: nodes whose values sessions have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array import indexing
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.errors import OutOfRangeError
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.initializers import constant_initializer
from hybridflow.compat.v1.nodes import Info, Operation, Tensor, give_operators
from hybridflow.compat.v1.recording import as_graph_tensor, is_symbolic
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.core import pytree
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.eager.operands import as_tensor, cast

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike


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
        initial_value: TensorLike | Callable[[], Any] | None = None,
        trainable: bool | None = None,
        collections: Sequence[Any] | None = None,
        validate_shape: bool = True,
        caching_device: object = None,
        name: str | None = None,
        variable_def: object = None,
        dtype: Any = None,
        expected_shape: object = None,
        import_scope: object = None,
        constraint: Callable[..., Any] | None = None,
        use_resource: object = None,
        synchronization: object = None,
        aggregation: object = None,
        shape: object = None,
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

    def _build(self, initial_value: Any, name: str, dtype: DTypeLike) -> None:
        graph = self.graph
        whole = graph.unique_name(name)
        with graph.name_scope(f"{whole}/"):
            value = initial_value() if callable(initial_value) else initial_value
            self.initial_value = tensor = convert_to_tensor(value, dtype, "initial_value")
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

    def eval(self, session: object = None) -> Any:
        """Its value in a session, or the default one."""
        return self.graph.session_for(session).run(self._tensor)

    def load(self, value: TensorLike, session: object = None) -> None:
        """Assign a value in a session, at once."""
        session_used = self.graph.session_for(session)
        array = np.asarray(value, dtype=np.dtype(self.dtype))
        if not self.shape.is_compatible_with(array.shape):
            raise ValueError(f"the value has shape {array.shape}, {self.name} has {self.shape}.")
        session_used.state.load(self, array)

    # Assignments

    def _assigning(
        self, type: str, name: str | None, value: Any, change: Callable[[Any, Any], Any], reads: bool = True
    ) -> Operation:
        graph = self.graph
        inputs = list(value) if isinstance(value, tuple) else [value]

        def compute(run: Any, values: Sequence[Any]) -> list[Any]:
            held = run.variable(self)
            operand = values[0] if len(values) == 1 else tuple(values)
            held.assign(cast(as_tensor(change(held, operand), "assign"), held.dtype))
            return [held]

        op = graph.add(type, name or type, inputs, [self._tensor.info], compute)
        op.writes = [self]
        op.reads = [self] if reads else []
        return op

    def _as_update(self, value: ArrayLike) -> Tensor:
        tensor = convert_to_tensor(value, self.dtype, "value")
        if tensor.dtype is not None and tensor.dtype != self.dtype:
            raise TypeError(
                f"Input 'value' of 'Assign' Op has type {tensor.dtype.name} that does not match type "
                f"{self.dtype.name} of {self.name}."
            )
        return tensor

    def assign(
        self,
        value: ArrayLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
        validate_shape: bool = True,
    ) -> Tensor:
        """The operation that assigns; its value is the new one.  Raises ValueError for another shape."""
        tensor = self._as_update(value)
        if not self.shape.is_compatible_with(tensor.shape):
            raise ValueError(f"Dimensions must be equal: {self.name} has shape {self.shape}, the value {tensor.shape}.")
        return self._assigning("Assign", name, tensor, lambda held, new: new, reads=False).outputs[0]

    def assign_add(
        self, delta: ArrayLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Tensor:
        return self._assigning("AssignAdd", name, self._as_update(delta), lambda held, x: held + x).outputs[0]

    def assign_sub(
        self, delta: ArrayLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Tensor:
        return self._assigning("AssignSub", name, self._as_update(delta), lambda held, x: held - x).outputs[0]

    def _scattered(self, type: str, indices: ArrayLike, updates: ArrayLike, name: str | None, sign: int) -> Tensor:
        places = convert_to_tensor(indices, None, "indices")

        def change(held: Any, update: Any) -> Any:
            where, values = update
            if sign:
                return indexing.scatter_add(held, where, values * sign)
            changed = +held._read()
            changed[where] = values
            return changed

        return self._assigning(type, name, (places, self._as_update(updates)), change).outputs[0]

    def _scattered_at(self, indices: ArrayLike, updates: ArrayLike, name: str | None) -> Tensor:
        """Elements at whole positions, one in each row of the indices, replaced."""
        places = convert_to_tensor(indices, None, "indices")

        def change(held: Any, update: Any) -> Any:
            where, values = update
            changed = +held._read()
            changed[tuple([where[..., k] for k in range(where.shape[-1])])] = values
            return changed

        return self._assigning("ScatterNdUpdate", name, (places, self._as_update(updates)), change).outputs[0]

    def scatter_add(self, indices: ArrayLike, updates: ArrayLike, name: str | None = None) -> Tensor:
        return self._scattered("ScatterAdd", indices, updates, name, 1)

    def scatter_sub(self, indices: ArrayLike, updates: ArrayLike, name: str | None = None) -> Tensor:
        return self._scattered("ScatterSub", indices, updates, name, -1)

    def scatter_update(self, indices: ArrayLike, updates: ArrayLike, name: str | None = None) -> Tensor:
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

    def __getitem__(self, key: object) -> Any:
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
    _key: object

    @staticmethod
    def of(variable: Variable, key: object) -> Any:
        """``variable[key]``."""
        taken = Tensor.operate("getitem", variable, key)
        result = Slice(taken.op, taken.value_index, taken.info)
        result._variable, result._key = variable, key
        taken.op.outputs[taken.value_index] = result
        return result

    def assign(self, value: ArrayLike, name: str | None = None) -> Tensor:
        """The operation that gives these elements values; its value is the whole variable."""
        variable, key = self._variable, self._key
        parts = list(key) if isinstance(key, tuple) else [key]
        places = [k for k, x in enumerate(parts) if is_symbolic(x)]
        operands = (variable._as_update(value), *[as_graph_tensor(parts[k]) for k in places])

        def change(held: Any, values: TensorLike) -> Any:
            new, *numbers = values if isinstance(values, tuple) else (values,)
            filled = list(parts)
            for place, number in zip(places, numbers):
                filled[place] = number
            changed = +held._read()
            changed[tuple(filled)] = new
            return changed

        return variable._assigning("StridedSliceAssign", name, operands, change).outputs[0]


def _no_value(run: object, values: Sequence[Any]) -> list[Any]:
    raise AssertionError("variables are read where they are used")


def state_variable(name: str, shape: tuple[int, ...], dtype: Any, start: float) -> Variable:
    """A variable that is not trained, every element of which starts from one value."""
    initial = constant_initializer(start)
    return Variable(lambda: initial(shape, dtype), trainable=False, name=name)
