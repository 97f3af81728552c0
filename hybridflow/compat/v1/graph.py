"""Graphs of operations that a session runs later: what programs of TensorFlow 1 build."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hybridflow.compat.v1.kinds import shown
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.core import pytree

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
        self, graph: Graph, type: str, name: str, inputs: Sequence[Tensor], infos: Sequence[Info], compute: Compute
    ) -> None:
        self.graph, self.type, self.name = graph, type, name
        self.inputs = tuple(inputs)
        self.compute = compute
        self.control_inputs: list[Operation] = []
        self.attributes: dict[str, Any] = {}
        self.outputs = [Tensor(self, k, info) for k, info in enumerate(infos)]
        self.number = 0
        self.body: Any = None
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
        found = self.attributes[name]
        return shown(found) if isinstance(found, np.dtype) else found

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
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
class Tensor:
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
    def graph(self) -> Graph:
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

    def set_shape(self, shape: Any) -> None:
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

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value in a session, or the default one."""
        return self.graph.session_for(session).run(self, feed_dict)

    def __getitem__(self, key: Any) -> Any:
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

    def __array__(self, *_: Any, **__: Any) -> Any:
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
    def apply(self: Any, other: Any) -> Any:
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


class Graph:
    """Operations, in the order in which they were made, and collections of what belongs to them."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names: dict[str, int] = {}
        self._collections: dict[Any, list[Any]] = {}
        self._scope = ""
        self._controls: tuple[Operation, ...] = ()
        self._device: Any = ""  # or a function of an operation
        self._finalized = False
        self.body: Any = None  # of a loop or branch that is being built
        self.seed: int | None = None
        self.store: Any = None  # of variables by name, see ``variables``

    # Being the default

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Operations that are made in the block belong to this graph."""
        token = _graphs.set((*_graphs.get(), self))
        try:
            yield self
        finally:
            _graphs.reset(token)

    def session_for(self, session: Any) -> Any:
        """The session, or the innermost default one.  Raises ValueError where there is none."""
        found = session or default_session()
        if found is None:
            raise ValueError(
                "Cannot evaluate without a session: use `with sess.as_default()`, or pass an explicit session to "
                "`eval(session=sess)`."
            )
        return found

    # Operations

    def add(
        self,
        type: str,
        name: str | None,
        inputs: Sequence[Tensor],
        infos: Sequence[Info],
        compute: Compute,
        attributes: dict[str, Any] | None = None,
    ) -> Operation:
        """Append an operation.  Raises RuntimeError once the graph is finalized, ValueError for another graph's
        tensors."""
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        for tensor in inputs:
            if tensor.graph is not self:
                raise ValueError(f"Tensor {tensor.name!r} must be from the same graph as {name or type!r}.")
        # A name that ends with a slash is a whole one, which was made unique before.
        unique = name[:-1] if name and name.endswith("/") else self.unique_name(name or type)
        op = Operation(self, type, unique, inputs, infos, compute)
        op.attributes = dict(attributes or {})
        if infos and infos[0].dtype is not None:
            op.attributes.setdefault("dtype" if not inputs else "T", infos[0].dtype)
        op.device = canonical(self._device(op) or "") if callable(self._device) else self._device
        op.body, op.number = self.body, len(self._operations)
        op.control_inputs = [x for x in self._controls if not any(t.op is x for t in inputs)]
        self._operations.append(op)
        self._by_name[unique] = op
        return op

    def get_operations(self) -> list[Operation]:
        return list(self._operations)

    @property
    def version(self) -> int:
        return len(self._operations)

    def get_operation_by_name(self, name: str) -> Operation:
        """Raises KeyError where there is none."""
        if name not in self._by_name:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.{self._near(name)}")
        return self._by_name[name]

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor ``"operation:number"``.  Raises ValueError for another form, KeyError where there is none."""
        op, colon, index = name.partition(":")
        if not colon or not index.isdigit():
            raise ValueError(f"{name!r} is no name of a tensor, which are of the form '<op_name>:<output_index>'.")
        if op not in self._by_name or int(index) >= len(self._by_name[op].outputs):
            raise KeyError(f"The name {name!r} refers to a Tensor which does not exist.{self._near(op)}")
        return self._by_name[op].outputs[int(index)]

    def _near(self, name: str) -> str:
        import difflib

        found = difflib.get_close_matches(name, self._by_name, 1)
        return f" Did you mean {found[0]!r}?" if found else ""

    def as_graph_element(self, value: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """A tensor or operation, given itself, its name, or a variable.  Raises TypeError, ValueError or KeyError."""
        value = value._as_graph_element() if hasattr(value, "_as_graph_element") else value
        if isinstance(value, str):
            if ":" in value and allow_tensor:
                return self.get_tensor_by_name(value)
            return self.get_operation_by_name(value)
        if isinstance(value, (Tensor, Operation)):
            if value.graph is not self:
                raise ValueError(f"{value!r} is not an element of this graph.")
            if (allow_tensor and isinstance(value, Tensor)) or (allow_operation and isinstance(value, Operation)):
                return value
        raise TypeError(f"Can not convert a {type(value).__name__} into a Tensor or Operation.")

    def as_graph_def(self, *_: Any, **__: Any) -> GraphDef:
        return GraphDef([op.node_def for op in self._operations])

    def finalize(self) -> None:
        """Let nothing be added any more."""
        self._finalized = True

    def unfinalize(self) -> None:
        """Let it grow again."""
        self._finalized = False

    @property
    def finalized(self) -> bool:
        return self._finalized

    # Scopes

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """The name within the present scope, with a number behind it where it is taken."""
        if not re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", name) and not (
            self._scope and re.fullmatch(r"[\w.\\/>-]+", name)
        ):
            raise ValueError(f"{name!r} is not a valid scope name.")
        whole = f"{self._scope}/{name}" if self._scope else name
        key = whole.lower()
        count = self._names.get(key, 0)
        if mark_as_used:
            self._names[key] = count + 1
        if count:
            found = f"{whole}_{count}"
            while found.lower() in self._names:
                count += 1
                found = f"{whole}_{count}"
            if mark_as_used:
                self._names[found.lower()] = 1
                self._names[key] = count + 1
            return found
        return whole

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Names of operations made in the block begin with this one; gives it, with a slash."""
        before = self._scope
        if not name:
            self._scope = ""
        elif name.endswith("/"):
            self._scope = name[:-1]
        else:
            self._scope = self.unique_name(name)
        try:
            yield f"{self._scope}/" if self._scope else ""
        finally:
            self._scope = before

    def get_name_scope(self) -> str:
        return self._scope

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """Operations made in the block run after these; None forgets those of the blocks around."""
        before = self._controls
        if control_inputs is None:
            self._controls = ()
        else:
            found = [self.as_graph_element(x) for x in control_inputs]
            ops = [x.op if isinstance(x, Tensor) else x for x in found]
            self._controls = (*before, *(op for op in dict.fromkeys(ops) if op not in before))
        try:
            yield
        finally:
            self._controls = before

    @contextmanager
    def device(self, name: Any) -> Iterator[None]:
        """Note a device for operations made in the block; sessions run where hybridflow runs."""
        before = self._device
        self._device = name if callable(name) else "" if name is None else canonical(name)
        try:
            yield
        finally:
            self._device = before

    @contextmanager
    def in_body(self, body: Any) -> Iterator[None]:
        """Operations made in the block belong to the body of a loop or branch."""
        before, controls = self.body, self._controls
        self.body, self._controls = body, ()
        try:
            yield
        finally:
            self.body, self._controls = before, controls

    # Collections

    def add_to_collection(self, name: Any, value: Any) -> None:
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        for name in dict.fromkeys([names] if isinstance(names, str) else names):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with ``scope`` those whose name it matches at the beginning."""
        found = list(self._collections.get(name, []))
        if scope:
            pattern = re.compile(scope)
            found = [x for x in found if hasattr(x, "name") and pattern.match(x.name)]
        return found

    def get_collection_ref(self, name: Any) -> list[Any]:
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        return [name for name, values in self._collections.items() if values]

    def clear_collection(self, name: Any) -> None:
        self._collections.pop(name, None)


def canonical(device: Any) -> str:
    """A device's name as TensorFlow writes it: ``"/cpu:0"`` is ``"/device:CPU:0"``."""
    text = device if isinstance(device, str) else device.to_string()
    return re.sub(r"/(?:device:)?(cpu|gpu):", lambda m: f"/device:{m[1].upper()}:", text, flags=re.I)


# ---- which graph there is

_graphs: ContextVar[tuple[Graph, ...]] = ContextVar("hybridflow_graphs", default=())
_computes: ContextVar[bool] = ContextVar("hybridflow_computes", default=False)
_sessions: ContextVar[tuple[Any, ...]] = ContextVar("hybridflow_sessions", default=())


class _Process:
    """The graph of those who open none, and whether functions record where no graph is open: as each module's are
    used to (None), or everywhere, or nowhere."""

    graph: Graph | None = None
    session: Any = None  # of InteractiveSession
    records: bool | None = None


def default_graph() -> Graph:
    """The innermost open graph, or that of the process."""
    opened = _graphs.get()
    if opened:
        return opened[-1]
    if _Process.graph is None:
        _Process.graph = Graph()
    return _Process.graph


def reset_default_graph() -> None:
    """Forget the graph of the process.  Raises AssertionError within ``as_default``."""
    if _graphs.get():
        raise AssertionError("Do not use tf.reset_default_graph() to clear nested graphs.")
    _Process.graph = None


def default_session() -> Any:
    opened = _sessions.get()
    return opened[-1] if opened else _Process.session


def open_session(session: Any) -> AbstractContextManager[Any]:
    """Let a session be the default one in a block."""
    return _in_session(session)


@contextmanager
def _in_session(session: Any) -> Iterator[Any]:
    token = _sessions.set((*_sessions.get(), session))
    try:
        yield session
    finally:
        _sessions.reset(token)


def interactive(session: Any) -> None:
    """Make a session the default one of the process; None for none."""
    _Process.session = session


def set_recording(records: bool | None) -> None:
    """Whether functions record where no graph is open: everywhere, nowhere, or (None) as each module's do."""
    _Process.records = records


@contextmanager
def computing() -> Iterator[None]:
    """Compute at once in the block, whatever graph is open: in functions that a pipeline calls."""
    token = _computes.set(True)
    try:
        yield
    finally:
        _computes.reset(token)


def is_recording(by_default: bool) -> bool:
    """Whether a function that records ``by_default`` does so here."""
    if _computes.get():
        return False
    if _graphs.get():
        return True
    return by_default if _Process.records is None else _Process.records
