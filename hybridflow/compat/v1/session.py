"""Sessions: they hold the values of a graph's variables, and run parts of the graph as compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.compat.adapters.settings import list_physical_devices
from hybridflow.compat.v1 import graph_stack
from hybridflow.compat.v1.feed_fetch import Feed, fed, fetched, flat_feeds
from hybridflow.compat.v1.graph import Graph, default_graph
from hybridflow.compat.v1.nodes import Tensor
from hybridflow.compat.v1.partial_runs import PartialRun
from hybridflow.compat.v1.programs import Program
from hybridflow.compat.v1.state import State
from hybridflow.compat.v1.variables import Variable
from hybridflow.runtime import fork_safe_locks

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


class Callable_(NamedTuple):
    """What ``make_callable`` returns."""

    session: Any
    fetches: object
    feeds: list[Any]

    def __call__(self, *values: TensorLike) -> Any:
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

    def __init__(self, target: str = "", graph: Graph | None = None, config: object = None) -> None:
        self.graph = graph or default_graph()
        self.sess_str = target
        self._state = State()
        self._programs: dict[Any, Program] = {}
        self._calls: dict[Any, _Prepared] = {}
        self._lock = fork_safe_locks.make()
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
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: object = None,
        run_metadata: object = None,
    ) -> Any:
        """The values of ``fetches`` (tensors, operations, names, or lists, tuples and dicts of them), given those in
        ``feed_dict``: of placeholders, or of any other tensor in the place of what computes it."""
        prepared = None
        if feed_dict and any(isinstance(key, (tuple, list)) for key in feed_dict):
            feed_dict = flat_feeds(feed_dict)
        try:
            key = (fetches if type(fetches) is not list else (list, *fetches), *(feed_dict or ()))
            prepared = self._calls.get(key)
        except TypeError:  # what is nested has no hash
            key = None
        if prepared is None:
            prepared = self._prepare(fetches, feed_dict or {})
            if key is not None and all(isinstance(feed, (Tensor, Variable)) for feed in feed_dict or ()):
                self._calls[key] = prepared
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        values = [feed(value) for feed, value in zip(prepared.feeds, (feed_dict or {}).values())]
        return prepared.result(prepared.program(values))

    def _prepare(self, fetches: TensorLike, feed_dict: Mapping[Any, Any]) -> _Prepared:
        places: list[Any] = []
        rebuild = fetched(self.graph, fetches, places)
        targets = list(dict.fromkeys(places))
        feeds = [_as_read(fed(self.graph, feed)) for feed in feed_dict]
        targets = [_as_read(x) if isinstance(x, Tensor) and _as_read(x) in feeds else x for x in targets]
        places = [_as_read(x) if isinstance(x, Tensor) and _as_read(x) in feeds else x for x in places]
        key = (tuple(targets), tuple(feeds))
        with self._lock:
            program = self._programs.get(key)
            if program is None:
                program = self._programs[key] = Program(self._state, targets, feeds)
        index = [targets.index(place) for place in places]
        return _Prepared(program, [Feed(tensor) for tensor in feeds], rebuild, index)

    def make_callable(
        self, fetches: object, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Any:
        """A function of the values of ``feed_list`` that runs ``fetches``."""
        return Callable_(self, fetches, list(feed_list or ()))

    def partial_run_setup(self, fetches: TensorLike, feeds: Sequence[Any] | None = None) -> Any:
        """Begin a run that goes on in several ``partial_run``; each fetch and feed can be used once."""
        targets: list[Any] = []
        fetched(self.graph, fetches, targets)
        return PartialRun(self._state, targets, [self.graph.as_graph_element(x) for x in feeds or ()])

    def partial_run(self, handle: Any, fetches: TensorLike, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Go on with a run: values of more fetches, given more feeds.  What was computed before stays."""
        places: list[Any] = []
        rebuild = fetched(self.graph, fetches, places)
        feeds = {self.graph.as_graph_element(x): value for x, value in (feed_dict or {}).items()}
        return rebuild(iter(handle.more(places, feeds)))

    def list_devices(self) -> list[Any]:
        """The devices that there are, each with ``name`` and ``device_type``."""
        return list(list_physical_devices())

    def as_default(self) -> AbstractContextManager[Any]:
        """A block in which ``tensor.eval()`` and ``op.run()`` use this session."""
        return graph_stack.open_session(self)

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

    def __exit__(self, *error: object) -> None:
        for _ in range(2):
            self._scopes.pop().__exit__(None, None, None)
        self.close()


class InteractiveSession(Session):
    """A session that is the default one from when it is made until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: object = None) -> None:
        super().__init__(target, graph, config)
        graph_stack.interactive(self)

    def close(self) -> None:
        super().close()
        if graph_stack.default_session() is self:
            graph_stack.interactive(None)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)


def _as_read(tensor: Tensor) -> Tensor:
    """Of a variable what operations read: fed, it is what they find, and the variable keeps its value."""
    result: Tensor = tensor.op.source.value() if tensor.op.is_reference else tensor
    return result


class _Prepared(NamedTuple):
    """What a call of ``run`` does: its program, and how values come in and go out."""

    program: Program
    feeds: list[Feed]
    rebuild: Callable[[Any], Any]
    places: list[int]

    def result(self, values: Sequence[Any]) -> Any:
        return self.rebuild(iter([values[k] for k in self.places]))
