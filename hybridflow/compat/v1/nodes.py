"""Operations and tensors of graphs, and what is known of them before a graph is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hybridflow.compat.v1.dtype_names import shown
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.core import pytree
from hybridflow.layers.keras_tensor import Connecting

Compute = Callable[[Any, Sequence[Any]], Sequence[Any]]


@pytree.declare_leaf
class Info(NamedTuple):
    """What is known of a tensor before the graph is run.

    ``shape`` is None where the rank is not known; a dtype of None is found when it is run.  ``known`` are the values
    that it has for each of the sizes that stand for unknown extents, where it is made of constants and shapes alone.
    ``is_size``: it is one, or several, of a shape's extents.  ``sized`` are the shapes that it has for each of those
    sizes, where it was computed of others.
    """

    shape: tuple[int | None, ...] | None
    dtype: Any
    known: tuple[np.ndarray, ...] | None = None
    is_size: bool = False
    sized: tuple[tuple[int, ...], ...] | None = None


class Operation:
    """A node of a graph.  ``compute(run, values)`` makes the values of its outputs of those of its inputs.

    ``effect``: it does something beside that, or draws; ``body``: the body of a loop or branch to which it belongs.
    """

    def __init__(
        self, graph: Any, type: str, name: str, inputs: Sequence[Tensor], infos: Sequence[Info], compute: Compute
    ) -> None:
        self.graph, self.type, self.name = graph, type, name
        self.inputs = tuple(inputs)
        self.compute = compute
        self.control_inputs: list[Operation] = []
        self.attributes: dict[str, Any] = {}
        self.outputs = [Tensor(self, k, info) for k, info in enumerate(infos)]
        self.number = 0
        self.body: object = None
        self.device = ""
        self.on_host = False  # computed outside of programs, of arrays
        self.bodies: list[Any] = []
        self.reads: list[Any] = []  # variables, besides those among its inputs
        self.writes: list[Any] = []
        self.is_eager = False  # runs op by op: what it does is not the same at each run
        self.is_reference = False  # stands for what its variable holds whenever that is asked for
        self.source: Any = None  # what outside of the graph it stands for: a variable, a gradient, a queue

    @property
    def values(self) -> Callable[[], tuple[Tensor, ...]]:
        return lambda: tuple(self.outputs)

    @property
    def node_def(self) -> Any:
        return NodeDef(self.name, self.type, self._sources(), self.attributes, self.device)

    @property
    def op_def(self) -> Any:
        return NodeDef(self.type, self.type, [], {}, "")

    def _sources(self) -> list[str]:
        names = [t.op.name if t.value_index == 0 else t.name for t in self.inputs]
        return names + [f"^{op.name}" for op in self.control_inputs]

    def get_attr(self, name: str) -> Any:
        """Raises ValueError where there is no such attribute."""
        if name not in self.attributes:
            has = ", ".join(self.attributes) or "none"
            raise ValueError(f"Operation {self.name!r} has no attr named {name!r}. Its attributes: {has}.")
        value = self.attributes[name]
        return shown(value) if isinstance(value, np.dtype) else value

    def run(self, feed_dict: object = None, session: object = None) -> None:
        """Run it in a session, or the default one."""
        self.graph.session_for(session).run(self, feed_dict)

    def colocation_groups(self) -> list[str]:
        return [f"loc:@{self.name}"]

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


class NodeDef(NamedTuple):
    """An operation as plain values; prints as TensorFlow's text does."""

    name: str
    op: str
    input: list[str]
    attr: dict[str, Any]
    device: str

    def __str__(self) -> str:
        lines = [f'name: "{self.name}"', f'op: "{self.op}"', *(f'input: "{x}"' for x in self.input)]
        for key in sorted(self.attr):
            lines += ["attr {", f'  key: "{key}"', f"  value: {self.attr[key]!r}", "}"]
        return "\n".join(lines)


class GraphDef(NamedTuple):
    """All operations of a graph as plain values."""

    node: list[NodeDef]

    def __str__(self) -> str:
        return "\n".join("node {\n" + "\n".join(f"  {x}" for x in str(n).splitlines()) + "\n}" for n in self.node)


@pytree.declare_leaf
class Tensor(Connecting):
    """One of the values that an operation of a graph makes.  It has a value in ``Session.run`` only."""

    __slots__ = ("__weakref__", "_info", "_shape", "op", "value_index")
    __array_priority__ = 1000
    __array_ufunc__ = None
    # What operators do, by name; set by the module that knows functions.
    operate: ClassVar[Callable[..., Any]]

    def __init__(self, op: Operation, index: int, info: Info) -> None:
        self.op, self.value_index, self._info = op, index, info
        self._shape = TensorShape(info.shape)

    @property
    def graph(self) -> Any:
        return self.op.graph

    @property
    def name(self) -> str:
        return f"{self.op.name}:{self.value_index}"

    @property
    def dtype(self) -> Any:
        return shown(self._info.dtype)

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        return self._shape

    def get_shape(self) -> TensorShape:
        return self._shape

    def set_shape(self, shape: object) -> None:
        """Add to what is known of the shape.  Raises ValueError where that is another one."""
        self._shape = self._shape.merge_with(shape)
        extents = None if self._shape.ndims is None else tuple(self._shape.as_list())
        sized = self._info.sized
        if sized is None or not all(self._shape.is_compatible_with(shape) for shape in sized):
            sized = None
        self._info = self._info._replace(shape=extents, sized=sized)

    @property
    def info(self) -> Info:
        return self._info

    def consumers(self) -> list[Operation]:
        return [op for op in self.graph.get_operations() if any(t is self for t in op.inputs)]

    def eval(self, feed_dict: object = None, session: object = None) -> Any:
        """Its value in a session, or the default one."""
        return self.graph.session_for(session).run(self, feed_dict)

    def __getitem__(self, key: object) -> Any:
        return Tensor.operate("getitem", self, key)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("'Tensor' object is not iterable: use tf.unstack, or a session to get its value.")

    def __len__(self) -> int:
        raise TypeError(f"len is not well defined for the tensor {self.name!r}; use tf.shape(x)[0].")

    def __bool__(self) -> bool:
        raise TypeError(
            "Using a `tf.Tensor` as a Python `bool` is not allowed. Use `if t is not None:` instead of `if t:` to test "
            "if a tensor is defined, and tf.cond to choose by the value of a tensor."
        )

    def __array__(self, *_: object, **__: object) -> Any:
        raise NotImplementedError(f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array: run a session.")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        dtype = "?" if self.dtype is None else self.dtype.name
        return f"<tf.Tensor {self.name!r} shape={self.shape} dtype={dtype}>"

    def __str__(self) -> str:
        shape = "" if self.shape.ndims is None else f", shape={self.shape}"
        return f'Tensor("{self.name}"{shape}, dtype={"?" if self.dtype is None else self.dtype.name})'


def _operator(name: str, reflected: bool) -> Callable[[Any, Any], Any]:
    def apply(self: object, other: object) -> Any:
        return Tensor.operate(name, other, self) if reflected else Tensor.operate(name, self, other)

    return apply


def _unary(name: str) -> Callable[[Any], Any]:
    return lambda self: Tensor.operate(name, self)


def give_operators(kind: type) -> None:
    """Let instances of a class take part in Python's arithmetic."""
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"):
        setattr(kind, f"__{name}__", _operator(name, False))
        setattr(kind, f"__r{name}__", _operator(name, True))
    for name in ("lt", "le", "gt", "ge"):
        setattr(kind, f"__{name}__", _operator(name, False))
    for name in ("neg", "abs", "invert"):
        setattr(kind, f"__{name}__", _unary(name))


give_operators(Tensor)
