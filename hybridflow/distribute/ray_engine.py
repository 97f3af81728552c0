"""Ray places the processes of a run: ``hybridflow run --engine ray``.

Each is beside an actor, which watches it.  What processes exchange goes by sockets, and never through Ray's store.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hybridflow.distribute.watcher import Watcher
from hybridflow.errors import ArgumentError, WorkerLost


class RayEngine:
    """The cluster of ``RAY_ADDRESS``, or else one that is started on this machine for as long as this lives.

    ``threads`` are the cores that Ray keeps free for each process.  ``most``: what a cluster on this machine has room
    for.  ``timeout``: seconds within which Ray is to place processes.  Raises ArgumentError without Ray.
    """

    def __init__(self, threads: int, most: int, timeout: float) -> None:
        self._ray = _loaded()
        self._threads, self._timeout = threads, timeout
        if os.environ.get("RAY_ADDRESS"):
            self._ray.init(log_to_driver=False, logging_level="warning")
        else:
            self._ray.init(
                address="local",
                num_cpus=threads * most,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="error",
                object_store_memory=80 << 20,  # it carries nothing of ours
                _node_ip_address="127.0.0.1",
            )
        self._actor = self._ray.remote(num_cpus=threads, max_restarts=0)(_Watcher)

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *error: object) -> None:
        self._ray.shutdown()

    def room(self) -> int:
        """How many processes there is room for now, each on one machine with all its cores."""
        nodes = self._ray._private.state.available_resources_per_node()  # what is public says the sum alone
        return sum(int(node.get("CPU", 0)) // self._threads for node in nodes.values())

    def place(self, count: int) -> list[Any]:
        """So many actors.  Raises WorkerLost where Ray has not placed them in time."""
        actors = [self._actor.remote() for _ in range(count)]
        placed, waiting = self._ray.wait(
            [actor.host.remote() for actor in actors], num_returns=count, timeout=self._timeout
        )
        if waiting:
            self.remove(actors)
            raise WorkerLost(
                "run",
                f"Ray has placed {len(placed)} of {count} processes, {self._threads} cores each, in {self._timeout:g} "
                "seconds.",
            )
        return actors

    def begin(self, watcher: object, method: str, *arguments: object) -> Any:
        """Have an actor do something."""
        return getattr(watcher, method).remote(*arguments)

    def wait(self, begun: Sequence[Any], timeout: float | None = None) -> Any:
        """The first one that is done; None where none is in time."""
        return next(iter(self._ray.wait(list(begun), num_returns=1, timeout=timeout)[0]), None)

    def value(self, begun: object) -> Any:
        """What came out.  Raises WorkerLost where the actor, or its machine, is gone."""
        try:
            return self._ray.get(begun)
        except self._ray.exceptions.RayTaskError as error:
            raise WorkerLost("run", f"{error.cause}") from None
        except self._ray.exceptions.RayError as error:
            raise WorkerLost("run", f"its actor is gone: {type(error).__name__}") from None

    def remove(self, watchers: Sequence[Any]) -> None:
        """End actors; the processes end with them."""
        for watcher in watchers:
            self._ray.kill(watcher)


class _Watcher(Watcher):
    """A watcher on some machine of the cluster."""

    def host(self) -> str:
        address: str = _loaded().util.get_node_ip_address()
        return address


def _loaded() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ArgumentError("run", "Ray is not installed: pip install 'hybridflow[ray]'.") from None
    return ray
