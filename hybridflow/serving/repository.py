"""The models of a server by name and version: loaded, warmed, replaced and taken away while requests run."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hybridflow.errors import ArgumentError
from hybridflow.serving import endpoint as endpoints
from hybridflow.serving.batching import Batcher
from hybridflow.serving.endpoint import Endpoint
from hybridflow.serving.errors import RequestError
from hybridflow.serving.metrics import Metrics

_NAMES = "model.hf", "model", "model.onnx", "model.keras"  # of a file in the folder of a version


class Settings(NamedTuple):
    """How models are served; see ``hf.serving.app``."""

    max_batch: int = 64
    max_delay_ms: float = 0.0
    workers: int = 1
    queue: int = 1024
    max_body: int = 64 << 20
    deterministic: bool = False
    max_requests: int = 1024


class Served(NamedTuple):
    """A model that answers."""

    name: str
    version: str
    endpoint: Endpoint
    batcher: Batcher


class Repository:
    """The models.  A source is a file, a folder of numbered folders, or a function.

    Args:
        sources: where each model comes from, by name.
        settings: how they are served.
        metrics: where it is counted.
    """

    def __init__(self, sources: Mapping[str, Any], settings: Settings, metrics: Metrics) -> None:
        for name in sources:
            if not name or "/" in name:
                raise ArgumentError("serve", f"{name!r} is no name of a model.")
        self._sources, self._settings, self._metrics = dict(sources), settings, metrics
        self._served: dict[str, dict[str, Served]] = {}
        self._errors: dict[str, str] = {}
        self._loading = threading.Lock()
        self.is_stopping = False

    @property
    def names(self) -> list[str]:
        """The names of all models, loaded or not."""
        return list(self._sources)

    @property
    def is_ready(self) -> bool:
        """Whether all models answer."""
        return not self.is_stopping and all(name in self._served for name in self._sources)

    def load_all(self) -> None:
        """Load all models.  Raises the first error."""
        for name in self._sources:
            self.load(name)

    def load(self, name: str) -> None:
        """Load a model, or load it anew: the new one is warmed beside the old one, which then answers what it was
        asked."""
        self._check_known(name)
        with self._loading:
            loaded: dict[str, Served] = {}
            try:
                for version, make in self._versions(name).items():
                    loaded[version] = self._serve(name, version, make)
            except Exception as error:
                self._errors[name] = str(error)
                for one in loaded.values():
                    one.batcher.close()
                raise
            self._errors.pop(name, None)
            before = self._served.get(name, {})
            self._served = {**self._served, name: loaded}  # at once: whoever looks sees one or the other
        for old in before.values():
            old.batcher.close()

    def unload(self, name: str) -> None:
        """Take a model away, once it has answered what it was asked."""
        self._check_known(name)
        with self._loading:
            before = self._served.get(name, {})
            self._served = {other: versions for other, versions in self._served.items() if other != name}
        for old in before.values():
            old.batcher.close()

    def close(self) -> None:
        """Take no more requests; returns when all are answered."""
        self.is_stopping = True
        for versions in self._served.values():
            for one in versions.values():
                one.batcher.close()

    def find(self, name: str, version: str | None = None) -> Served:
        """A model that answers: of that version, or the newest.  Raises RequestError where there is none."""
        versions = self._served.get(name)
        if not versions:
            self._check_known(name)
            raise RequestError(503, f"{name} is not loaded. {self._errors.get(name, '')}".strip(), retry=5)
        if version is None:
            return versions[max(versions, key=_order)]
        if version not in versions:
            raise RequestError(404, f"{name} has no version {version!r:.40}; it has {', '.join(versions)}.")
        return versions[version]

    def versions(self, name: str) -> list[str]:
        """The versions that answer."""
        return sorted(self._served.get(name, ()), key=_order)

    def index(self) -> list[dict[str, Any]]:
        """What there is, as the protocol lists it."""
        result = []
        for name in self._sources:
            for version in self.versions(name) or [""]:
                state = "READY" if version else "UNAVAILABLE"
                result.append({"name": name, "version": version, "state": state, "reason": self._errors.get(name, "")})
        return result

    def _check_known(self, name: str) -> None:
        if name not in self._sources:
            raise RequestError(404, f"there is no model {name!r:.60}; there are {', '.join(self._sources)}.")

    def _versions(self, name: str) -> dict[str, Callable[[], Endpoint]]:
        source = self._sources[name]
        if not isinstance(source, (str, os.PathLike)):
            return {"1": functools.partial(endpoints.of_function, source)}
        path = os.fspath(source)
        if not os.path.isdir(path):
            return {"1": functools.partial(endpoints.load, path)}
        result: dict[str, Callable[[], Endpoint]] = {}
        for entry in sorted(os.listdir(path)):
            inner = os.path.join(path, entry)
            if entry.isdecimal() and os.path.isdir(inner):
                file = next((f for f in _NAMES if os.path.isfile(os.path.join(inner, f))), None)
                if file is not None:
                    result[entry] = functools.partial(endpoints.load, os.path.join(inner, file))
        if not result:
            raise ArgumentError("serve", f"{path} has no folder such as 1/ with a {' or '.join(_NAMES)}.")
        return result

    def _serve(self, name: str, version: str, make: Callable[[], Endpoint]) -> Served:
        settings = self._settings
        endpoint = make()
        most = settings.max_batch if endpoint.is_batched and not settings.deterministic else 1
        for rows in dict.fromkeys((1, 2, most)):  # programs of the file are compiled before anybody asks
            endpoint(endpoint.example(rows))
        labels = {"model": name, "version": version}
        batcher = Batcher(
            endpoint, most, settings.max_delay_ms / 1000, settings.workers, settings.queue, self._metrics, labels
        )
        self._metrics.add("hf_loads_total", 1.0, **labels)
        return Served(name, version, endpoint, batcher)


def _order(version: str) -> tuple[int, str]:
    return (int(version) if version.isdecimal() else 0, version)
