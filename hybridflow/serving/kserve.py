"""A model of KServe's Python server for models of hybridflow::

import kserve
from hybridflow.serving.kserve import Model

model = Model("digits", "/mnt/models/digits.hf", max_batch=64)
model.load()
kserve.ModelServer().start([model])
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from hybridflow.serving.endpoint import DATATYPES
from hybridflow.serving.errors import RequestError
from hybridflow.serving.hosted import FILES, HostedModel, Input


def __getattr__(name: str) -> Any:
    if name == "Model":
        return _model()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _model() -> Any:
    try:
        import kserve
        from kserve.errors import InferenceError, InvalidInput
    except ImportError:
        raise ImportError("hf.serving.kserve needs KServe: pip install 'hybridflow[kserve]'.") from None

    class Model(kserve.Model):
        """A model that KServe's server serves, with its first and its second protocol.

        Args:
            name: its name.
            source: what ``hf.serving.app`` takes for a model, or a folder with a model.hf, model.onnx or model.keras.
            settings: arguments of ``hf.serving.app``, such as ``max_batch``.
        """

        def __init__(self, name: str, source: object, **settings: object) -> None:
            super().__init__(name)
            self._model = HostedModel(name, _file(source), settings)

        def load(self) -> bool:
            """Load and warm the model."""
            self._model.load()
            self.ready = True
            return True

        def stop(self) -> None:
            """Take no more requests."""
            self.ready = False
            self._model.close()

        async def get_input_types(self) -> list[dict[str, Any]]:
            """The inputs by name, datatype and shape."""
            return self._model.inputs

        async def get_output_types(self) -> list[dict[str, Any]]:
            """The outputs by name, datatype and shape."""
            return self._model.outputs

        async def predict(self, payload: Any, headers: object = None, response_headers: object = None) -> Any:
            """The outputs for the inputs of a request."""
            first = isinstance(payload, Mapping)
            try:
                inputs = self._instances(payload) if first else [_input(one) for one in payload.inputs]
                outputs = await asyncio.wrap_future(self._model.submit(inputs))
            except RequestError as error:
                raise (InvalidInput if error.status == 400 else InferenceError)(str(error)) from None
            results = self._model.named(outputs)
            if first:
                parts = {name: array.tolist() for name, _, array in results}
                return {"predictions": parts if len(parts) > 1 else next(iter(parts.values()))}
            return kserve.InferResponse(
                response_id=payload.id,
                model_name=self.name,
                infer_outputs=[
                    kserve.InferOutput(name=name, shape=list(array.shape), datatype=datatype, data=array)
                    for name, datatype, array in results
                ],
                requested_outputs=getattr(payload, "request_outputs", None),
            )

        def _instances(self, payload: Mapping[str, Any]) -> list[Input]:
            """The input of the first protocol: rows in a list."""
            inputs = self._model.inputs
            if len(inputs) != 1 or not isinstance(payload.get("instances"), list):
                raise RequestError(400, 'a request is an object with "instances", of a model with one input.')
            name, datatype = inputs[0]["name"], inputs[0]["datatype"]
            try:
                array = np.asarray(payload["instances"])
                array = array.astype(DATATYPES[datatype], casting="same_kind" if array.size else "unsafe")
            except (ValueError, TypeError) as error:
                raise RequestError(400, f"{name} does not fit {datatype}: {error!s:.200}.") from None
            return [Input(name, array.shape, datatype, lambda: array)]

    return Model


def _input(one: Any) -> Input:
    return Input(one.name, one.shape, one.datatype, one.as_numpy)


def _file(source: object) -> Any:
    """The model in a folder that has one."""
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        for name in FILES:
            path = os.path.join(source, name)
            if os.path.isfile(path):
                return path
    return source
