"""Sessions: they hold the values of a graph's variables, and run parts of the graph as compiled programs."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array.creation import asarray, zeros
from hybridflow.array.random import Generator, global_generator
from hybridflow.compat.adapters.settings import list_physical_devices
from hybridflow.compat.v1 import graph as graphs
from hybridflow.compat.v1.errors import FailedPreconditionError, UnimplementedError
from hybridflow.compat.v1.evaluation import Run, as_value, needed
from hybridflow.compat.v1.graph import Graph, Operation, Tensor, default_graph
from hybridflow.compat.v1.recording import Sizes, as_graph_tensor, is_constant, is_symbolic
from hybridflow.core import pytree
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor as Value
from hybridflow.core.variable import Variable
from hybridflow.jit.function import function
from hybridflow.runtime import locks


class Callable_(NamedTuple):
    """What ``make_callable`` returns."""

    session: Any
    fetches: Any
    feeds: list[Any]

    def __call__(self, *values: Any) -> Any:
        return self.session.run(self.fetches, dict(zip(self.feeds, values)))


class Session:
    """Runs operations of a graph: ``session.run(fetches, feed_dict)``.  It has the graph's variables for itself.

    What fetches need, and no more, becomes one compiled program, kept for each set of fetches and feeds.

    >>> import hybridflow.compat.v1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as sess:
    ...     x = tf.placeholder(tf.float32, [None])
    ...     total = tf.reduce_sum(x * 2)
    ...     float(sess.run(total, {x: [1.0, 2.0, 3.0]}))
    12.0
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        self.graph = graph or default_graph()
        self.sess_str = target
        self._state = State()
        self._programs: dict[Any, _Program] = {}
        self._calls: dict[Any, _Prepared] = {}
        self._lock = locks.make()
        self._closed = False
        self._scopes: list[AbstractContextManager[Any]] = []

    @property
    def state(self) -> State:
        """The values that it has."""
        return self._state

    @property
    def graph_def(self) -> Any:
        return self.graph.as_graph_def()

    def run(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """The values of ``fetches`` (tensors, operations, names, or lists, tuples and dicts of them), given those in
        ``feed_dict``: of placeholders, or of any other tensor in the place of what computes it."""
        prepared = None
        if feed_dict and any(isinstance(key, (tuple, list)) for key in feed_dict):
            feed_dict = _flat_feeds(feed_dict)
        try:
            key = (fetches if type(fetches) is not list else (list, *fetches), *(feed_dict or ()))
            prepared = self._calls.get(key)
        except TypeError:  # what is nested has no hash
            key = None
        if prepared is None:
            prepared = self._prepare(fetches, feed_dict or {})
            if key is not None and all(isinstance(feed, Tensor) for feed in feed_dict or ()):
                self._calls[key] = prepared
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        values = [feed(value) for feed, value in zip(prepared.feeds, (feed_dict or {}).values())]
        return prepared.result(prepared.program(values))

    def _prepare(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> _Prepared:
        places: list[Any] = []
        rebuild = _fetched(self.graph, fetches, places)
        targets = list(dict.fromkeys(places))
        feeds = [_fed(self.graph, feed) for feed in feed_dict]
        for tensor in feeds:
            if tensor.op.is_reference:
                raise TypeError(f"{tensor.name} is a variable, which is assigned, and cannot be fed.")
        key = (tuple(targets), tuple(feeds))
        with self._lock:
            program = self._programs.get(key)
            if program is None:
                program = self._programs[key] = _Program(self._state, targets, feeds)
        index = [targets.index(place) for place in places]
        return _Prepared(program, [_Feed(tensor) for tensor in feeds], rebuild, index)

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False) -> Any:
        """A function of the values of ``feed_list`` that runs ``fetches``."""
        return Callable_(self, fetches, list(feed_list or ()))

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> Any:
        """Begin a run that goes on in several ``partial_run``; each fetch and feed can be used once."""
        targets: list[Any] = []
        _fetched(self.graph, fetches, targets)
        return _Partial(self._state, targets, [self.graph.as_graph_element(x) for x in feeds or ()])

    def partial_run(self, handle: Any, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Go on with a run: values of more fetches, given more feeds.  What was computed before stays."""
        places: list[Any] = []
        rebuild = _fetched(self.graph, fetches, places)
        given = {self.graph.as_graph_element(x): value for x, value in (feed_dict or {}).items()}
        return rebuild(iter(handle.more(places, given)))

    def list_devices(self) -> list[Any]:
        """The devices that there are, each with ``name`` and ``device_type``."""
        return list(list_physical_devices())

    def as_default(self) -> AbstractContextManager[Any]:
        """A block in which ``tensor.eval()`` and ``op.run()`` use this session."""
        return graphs.open_session(self)

    def close(self) -> None:
        """Let go of all values."""
        self._closed = True
        self._programs.clear()
        self._calls.clear()
        self._state.close()

    def __enter__(self) -> Session:
        scopes = [self.graph.as_default(), self.as_default()]
        for scope in scopes:
            scope.__enter__()
        self._scopes += scopes
        return self

    def __exit__(self, *error: Any) -> None:
        for _ in range(2):
            self._scopes.pop().__exit__(None, None, None)
        self.close()


class InteractiveSession(Session):
    """A session that is the default one from when it is made until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        graphs.interactive(self)

    def close(self) -> None:
        super().close()
        if graphs.default_session() is self:
            graphs.interactive(None)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)


def _flat_feeds(feed_dict: Mapping[Any, Any]) -> dict[Any, Any]:
    """Feeds of one tensor each, where several were given as one key."""
    found: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        if isinstance(key, (tuple, list)):
            found |= _flat_feeds(dict(zip(key, value)))
        else:
            found[key] = value
    return found


def _fed(graph: Graph, feed: Any) -> Tensor:
    """The tensor that a key of a ``feed_dict`` means.  Raises TypeError for what is none."""
    try:
        found: Tensor = graph.as_graph_element(feed, allow_operation=False)
    except (KeyError, ValueError) as error:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from None
    return found


class _Prepared(NamedTuple):
    """What a call of ``run`` does: its program, and how values come in and go out."""

    program: _Program
    feeds: list[_Feed]
    rebuild: Callable[[Any], Any]
    places: list[int]

    def result(self, values: Sequence[Any]) -> Any:
        return self.rebuild(iter([values[k] for k in self.places]))


class _Feed:
    """Makes an array of what is fed to a tensor.  Raises ValueError or TypeError where it does not fit."""

    __slots__ = ("_dtype", "_shape", "_tensor")

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._dtype = None if tensor.dtype is None or tensor.dtype == object else np.dtype(tensor.dtype)
        self._shape = tensor.info.shape

    def __call__(self, value: Any) -> Any:
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
            own = array.shape
            fits = len(own) == len(shape)
            if fits:
                for extent, wanted in zip(own, shape):
                    if wanted is not None and wanted != extent:
                        fits = False
                        break
            if not fits:
                raise ValueError(
                    f"Cannot feed value of shape {own} for Tensor {self._tensor.name!r}, which has shape "
                    f"'{self._tensor.shape}'"
                )
        return array


def _fetched(graph: Graph, fetches: Any, places: list[Any]) -> Callable[[Any], Any]:
    """How to put fetched values together; appends what is to be fetched."""
    if fetches is None:
        raise TypeError("Fetch argument None has invalid type: give a tensor or an operation.")
    if isinstance(fetches, (list, tuple)):
        parts = [_fetched(graph, x, places) for x in fetches]
        if hasattr(fetches, "_fields"):
            return lambda values: type(fetches)(*[part(values) for part in parts])
        if isinstance(fetches, tuple):
            return lambda values: tuple([part(values) for part in parts])
        return lambda values: [part(values) for part in parts]
    if isinstance(fetches, Mapping):
        keys = list(fetches)
        parts = [_fetched(graph, fetches[key], places) for key in keys]
        kind: Any = type(fetches)
        return lambda values: kind([(key, part(values)) for key, part in zip(keys, parts)])
    if hasattr(fetches, "_as_fetches"):  # rows of a gradient, and other things of several tensors
        return _fetched(graph, fetches._as_fetches(), places)
    try:
        places.append(graph.as_graph_element(fetches))
    except (TypeError, ValueError, KeyError) as error:
        own: type[Exception] = TypeError if isinstance(error, TypeError) else ValueError
        text = error.args[0] if error.args else error
        raise own(f"Fetch argument {fetches!r} has invalid type {type(fetches)} or cannot be fetched: {text}") from None
    return next


class State:
    """What a session keeps: values of variables, and what random operations draw from."""

    def __init__(self) -> None:
        self._variables: dict[Any, Variable] = {}
        self.ready: set[Any] = set()  # those variables that have a value
        self._generators: dict[Operation, Generator] = {}
        self._resources: dict[Any, Any] = {}
        self.lock = locks.make()

    def variable(self, variable: Any) -> Variable:
        """The session's own of a graph's variable, which may have no value yet."""
        found = self._variables.get(variable)
        if found is None:
            with self.lock, suspended():
                if variable not in self._variables:
                    shape = variable.initial_shape()
                    start = zeros(shape, dtype=np.dtype(variable.dtype))
                    self._variables[variable] = Variable(start, variable.trainable, name=variable.name.split(":")[0])
            found = self._variables[variable]
        return found

    def resource(self, key: Any, make: Callable[[], Any]) -> Any:
        """What a queue or an iterator has in this session."""
        if key not in self._resources:
            with self.lock:
                if key not in self._resources:
                    self._resources[key] = make()
        return self._resources[key]

    def close(self) -> None:
        """Wake those who wait for elements of queues."""
        for resource in list(self._resources.values()):
            if hasattr(resource, "close"):
                resource.close()
        self._resources.clear()

    def load(self, variable: Any, array: np.ndarray) -> None:
        """Give a variable a value, from outside of any program."""
        held = self.variable(variable)
        with suspended():
            held.assign(array)
        self.ready.add(variable)

    def check(self, variables: Sequence[Any]) -> None:
        """Raise FailedPreconditionError for one that has no value."""
        for variable in variables:
            if variable not in self.ready:
                raise FailedPreconditionError(
                    "session",
                    f"Attempting to use uninitialized value {variable.name.split(':')[0]}. Run "
                    "tf.global_variables_initializer() first.",
                )

    def generator(self, op: Operation) -> Generator:
        """What a random operation draws from: its own sequence where it or its graph has a seed."""
        graph_seed, own_seed = op.source or (None, None)
        if graph_seed is None and own_seed is None:
            return global_generator()
        found = self._generators.get(op)
        if found is None:
            with self.lock, suspended():
                first = 87654321 if graph_seed is None else graph_seed
                second = op.number if own_seed is None else own_seed
                found = self._generators.setdefault(op, Generator(_mixed(first, second)))
        return found


def _mixed(first: int, second: int) -> int:
    return ((first & 0x7FFFFFFF) << 31 | (second & 0x7FFFFFFF)) & 0x7FFFFFFFFFFFFFFF


class _Known:
    """A session's state as one program sees it, with the constants that feeds leave as they are."""

    def __init__(self, state: State, feeds: Sequence[Tensor]) -> None:
        self._state = state
        self._fed = {tensor.op for tensor in feeds}
        self._changed: dict[Operation, bool] = {}
        self.variable, self.generator = state.variable, state.generator
        self.ready = state.ready

    def _is_changed(self, op: Operation) -> bool:
        """Whether what is fed decides about an operation's results."""
        stack = [op]
        while stack:
            top = stack[-1]
            if top in self._changed:
                stack.pop()
            elif top in self._fed:
                self._changed[top] = True
            elif missing := [t.op for t in top.inputs if t.op not in self._changed]:
                stack += missing
            else:
                self._changed[top] = any(self._changed[t.op] for t in top.inputs)
        return self._changed[op]

    def known(self, op: Operation) -> list[Any] | None:
        """The values of an operation that are known before anything runs."""
        if not op.outputs or not all(map(is_constant, op.outputs)) or self._is_changed(op):
            return None
        values: list[Any] = []
        for tensor in op.outputs:
            value = (tensor.info.known or ())[0]
            if tensor.info.is_size:
                values.append(Sizes(value.tolist()) if value.ndim else int(value))
            else:
                with suspended():
                    values.append(asarray(value))
        return values


class _Program:
    """The part of a graph that some fetches need, given some feeds.

    What is on the host (queues, texts, data sets) runs before the program, if it needs nothing of that, or after it.
    """

    def __init__(self, state: State, targets: Sequence[Any], feeds: Sequence[Tensor]) -> None:
        self._state, self._targets, self._feeds = state, list(targets), list(feeds)
        self._known = _Known(state, feeds)
        operations = needed(targets, feeds)[0]
        self._before, self._inside, self._after = _stages(operations, set(feeds))
        self._unfed = next(
            (op for op in operations if op.type == "Placeholder" and op.outputs[0] not in self._feeds), None
        )
        made = {t for op in self._inside for t in op.outputs}
        # What comes from the host into the program, and what goes out of it.
        early = {t for op in self._before for t in op.outputs}
        used = [t for op in self._inside for t in op.inputs]
        self._given = [t for t in self._feeds if t.dtype is not None and t.dtype != object]
        self._given += [t for t in dict.fromkeys(used) if t in early and t not in self._given]
        late = [t for op in self._after for t in op.inputs] + [t for t in targets if isinstance(t, Tensor)]
        self._results = [t for t in dict.fromkeys(late) if t in made or t.op.is_reference]
        self._variables = _variables(self._inside, self._results)
        self._checked = False
        self._is_open = any(op.is_eager or _finds_shapes(op) for op in self._inside)
        self._has_gradients = any(op.type == "SymbolicGradient" for op in self._inside)
        self._count = 0
        self._compiled = function(self._once, name="session_run")

    def __call__(self, fed: Sequence[Any]) -> list[Any]:
        if self._unfed is not None:
            raise _unfed(self._unfed)
        if not self._checked:
            self._state.check([v for v in self._variables.reads if v not in self._state.ready])
            for variable in self._variables.all:
                self._state.variable(variable)
        values: dict[Tensor, Any] = dict(zip(self._feeds, fed))
        self._host(self._before, values)
        if self._inside or self._results:
            found = self._program([values[t] for t in self._given])
            for tensor, value in zip(self._results, found):
                values[tensor] = value
        if not self._checked:
            self._state.ready.update(self._variables.writes)
            self._checked = not self._is_open
        self._host(self._after, values)
        return [self._fetched(target, values) for target in self._targets]

    def _program(self, given: list[Any]) -> Sequence[Any]:
        # What runs once, as initializers do, is not worth a program of its own, unless it is differentiated.
        self._count += 1
        if self._is_open or (self._count == 1 and not self._has_gradients):
            return self._once(*[asarray(x) for x in given])
        return self._compiled(*given)

    def _once(self, *given: Any) -> list[Any]:
        run = Run(self._known, dict(zip(self._given, given)))
        run.do(self._inside)
        return [as_value(run.value(tensor)) for tensor in self._results]

    def _host(self, operations: Sequence[Operation], values: dict[Tensor, Any]) -> None:
        for op in operations:
            known = [_as_array(values[t]) if t in values else _constant(t) for t in op.inputs]
            for tensor, value in zip(op.outputs, op.compute(self._state, known)):
                values.setdefault(tensor, value)

    @staticmethod
    def _fetched(target: Any, values: dict[Tensor, Any]) -> Any:
        if not isinstance(target, Tensor):
            return None
        return _as_fetched(values[target] if target in values else _constant(target))


def _finds_shapes(op: Operation) -> bool:
    """Whether a function in Python says only when it runs which shape it returns: no compiled program does."""
    return op.type == "PyFunc" and not all(t.shape.is_fully_defined() for t in op.outputs)


def _constant(tensor: Tensor) -> Any:
    if tensor.info.known is None:
        raise UnimplementedError("session", f"{tensor.name} is computed of what only comes after it.")
    return tensor.info.known[0]


def _as_array(value: Any) -> Any:
    return value.numpy() if isinstance(value, Value) else value


def _as_fetched(value: Any) -> Any:
    """What ``run`` returns: arrays that are the caller's own, and scalars."""
    if isinstance(value, Value):
        array = value.numpy()
        return array.copy() if array.ndim else array[()]
    if isinstance(value, np.ndarray) and not value.ndim:
        return value[()]
    return value


def _unfed(op: Operation) -> Exception:
    from hybridflow.errors import InvalidArgumentError

    dtype = op.outputs[0].dtype
    return InvalidArgumentError(
        "session",
        f"You must feed a value for placeholder tensor {op.name!r} with dtype {dtype} and shape {op.outputs[0].shape}",
    )


class _Variables(NamedTuple):
    """Of a program: all variables, those that must have a value before it, and those that have one after it."""

    all: list[Any]
    reads: list[Any]
    writes: list[Any]


def _variables(operations: Sequence[Operation], results: Sequence[Tensor]) -> _Variables:
    found: dict[Any, None] = {}
    reads: dict[Any, None] = {}
    writes: dict[Any, None] = {}
    for op in operations:
        for variable in _read_by(op):
            found[variable] = None
            if variable not in writes:
                reads[variable] = None
        for variable in getattr(op, "writes", ()):
            found[variable] = writes[variable] = None
    for tensor in results:
        if tensor.op.is_reference:
            found[tensor.op.source] = None
            if tensor.op.source not in writes:
                reads[tensor.op.source] = None
    return _Variables(list(found), list(reads), list(writes))


def _read_by(op: Operation) -> list[Any]:
    if op.is_reference:
        return []
    return [t.op.source for t in op.inputs if t.op.is_reference] + list(getattr(op, "reads", ()))


def _stages(
    operations: Sequence[Operation], fed: set[Tensor]
) -> tuple[list[Operation], list[Operation], list[Operation]]:
    """Operations on the host that come first, those of the program, and those on the host that come after it."""
    before: list[Operation] = []
    inside: list[Operation] = []
    after: list[Operation] = []
    late: set[Operation] = set()
    within: set[Operation] = set()
    for op in operations:
        sources = [t.op for t in op.inputs if t not in fed] + op.control_inputs
        if not op.on_host:
            if any(source in late for source in sources) and op.type != "NoOp":
                raise UnimplementedError(
                    "session",
                    f"{op.name} needs what {next(s.name for s in sources if s in late)} does on the host, "
                    "after the program. Run them one after the other.",
                )
            if op.type == "NoOp":
                continue
            inside.append(op)
            within.add(op)
        elif all((source not in within and source not in late) or _is_constant_op(source) for source in sources):
            before.append(op)
        else:
            after.append(op)
            late.add(op)
    return before, inside, after


def _is_constant_op(op: Operation) -> bool:
    return bool(op.outputs) and all(map(is_constant, op.outputs))


class _Partial:
    """A run in several steps."""

    def __init__(self, state: State, targets: Sequence[Any], feeds: Sequence[Tensor]) -> None:
        self._targets, self._feeds = set(targets), set(feeds)
        self._state = _Known(state, list(feeds))
        self._session = state
        self._values: dict[Tensor, Any] = {}
        self._done: set[Operation] = set()

    def more(self, fetches: Sequence[Any], given: Mapping[Tensor, Any]) -> list[Any]:
        for tensor, value in given.items():
            if tensor not in self._feeds:
                raise RuntimeError(f"{tensor.name!r} was not among the feeds of partial_run_setup, or is fed twice.")
            self._feeds.discard(tensor)
            self._values[tensor] = asarray(_Feed(tensor)(value))
        for fetch in fetches:
            if fetch not in self._targets:
                raise RuntimeError(f"{fetch.name!r} was not among the fetches of partial_run_setup.")
        operations = [op for op in needed(fetches, self._values)[0] if op not in self._done]
        for op in operations:
            if op.type == "Placeholder":
                raise _unfed(op)
        variables = _variables(operations, [t for t in fetches if isinstance(t, Tensor)])
        self._session.check(variables.reads)
        run = Run(self._state, dict(self._values))
        run.do(operations)
        self._session.ready.update(variables.writes)
        self._done.update(op for op in operations if not op.is_reference)
        for op in operations:
            for tensor in op.outputs:
                if run.is_known(tensor):
                    self._values[tensor] = run.value(tensor)
        return [_as_fetched(as_value(run.value(t))) if isinstance(t, Tensor) else None for t in fetches]


def names_of(module: types.ModuleType) -> list[str]:
    """The public names of a module."""
    return [name for name in vars(module) if not name.startswith("_")]


__all__ = ["InteractiveSession", "Session", "State", "as_graph_tensor", "pytree"]
