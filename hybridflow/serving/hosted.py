"""A model in somebody else's server: what the adaptors for MLServer and KServe have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from hybridflow.errors import ArgumentError
from hybridflow.serving import protocol
from hybridflow.serving.endpoint import NAMES, Port
from hybridflow.serving.errors import RequestError
from hybridflow.serving.metrics import Metrics
from hybridflow.serving.repository import Repository, Served, Settings

FILES = "model.hf", "model.onnx", "model.keras"  # that a folder may have


class Input(NamedTuple):
    """An array of a request, of which ``read`` makes NumPy's."""

    name: str
    shape: Any
    datatype: str
    read: Callable[[], np.ndarray]


class HostedModel:
    """A model by its name, with the batches of ``hf.serving.app``.

    Args:
        name: its name.
        source: what ``hf.serving.app`` takes for a model.
        settings: arguments of ``hf.serving.app``, such as ``max_batch``.

    Raises:
        ArgumentError: for settings that there are not.
    """

    def __init__(self, name: str, source: object, settings: Mapping[str, Any]) -> None:
        unknown = [key for key in settings if key not in Settings._fields]
        if unknown:
            raise ArgumentError(
                "serving", f"there is no setting {unknown[0]!r}; there are {', '.join(Settings._fields)}."
            )
        self.name = name
        self._repository = Repository({name: source}, Settings(**settings), Metrics())

    def load(self) -> None:
        """Load and warm it, or load it anew."""
        self._repository.load(self.name)

    def close(self) -> None:
        """Take no more requests; returns when all are answered."""
        self._repository.close()

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """The inputs as the protocol describes them."""
        return [port.metadata() for port in self._served.endpoint.inputs]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """The outputs as the protocol describes them."""
        return [port.metadata() for port in self._served.endpoint.outputs]

    @property
    def _served(self) -> Served:
        return self._repository.find(self.name)

    def submit(self, inputs: Iterable[Input]) -> Future[list[np.ndarray]]:
        """Hand in a request, whose outputs the future has.  Raises RequestError for what the model does not take."""
        served = self._served
        ports = {port.name: port for port in served.endpoint.inputs}
        arrays: dict[str, np.ndarray] = {}
        for one in inputs:
            if one.name not in ports:
                raise RequestError(400, f"there is no input {one.name!r:.60}; the model has {', '.join(ports)}.")
            if one.name in arrays:
                raise RequestError(400, f"the input {one.name} comes twice.")
            arrays[one.name] = _array(one, ports[one.name])
        missing = [name for name in ports if name not in arrays]
        if missing:
            raise RequestError(400, f"the input {missing[0]} is missing.")
        ordered = [arrays[name] for name in ports]
        served.endpoint.check(ordered)
        return served.batcher.submit(ordered)

    def named(self, outputs: Iterable[np.ndarray]) -> list[tuple[str, str, np.ndarray]]:
        """The outputs with their names and those of their dtypes."""
        ports = self._served.endpoint.outputs
        return [(port.name, NAMES[port.dtype], np.asarray(array)) for port, array in zip(ports, outputs, strict=True)]


def _array(one: Input, port: Port) -> np.ndarray:
    shape = protocol.shape_of({"shape": list(one.shape), "datatype": one.datatype}, port)
    try:
        return np.ascontiguousarray(one.read(), port.dtype).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        text = f"{port.name} does not fit {NAMES[port.dtype]}{list(shape)}: {error!s:.200}."
        raise RequestError(400, text) from None
