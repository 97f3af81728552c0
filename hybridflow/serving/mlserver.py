"""A runtime of MLServer for models of hybridflow.

``model-settings.json`` names it and the model; ``extra`` may have the arguments of ``hf.serving.app``::

    {"name": "digits", "implementation": "hybridflow.serving.mlserver.Runtime",
     "parameters": {"uri": "./digits.hf", "extra": {"max_batch": 64}}}
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from hybridflow.serving.errors import RequestError
from hybridflow.serving.hosted import FILES, HostedModel, Input


def __getattr__(name: str) -> Any:
    if name == "Runtime":
        return _runtime()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _runtime() -> Any:
    try:
        from mlserver import MLModel, types
        from mlserver.codecs import NumpyCodec
        from mlserver.errors import MLServerError
        from mlserver.utils import get_model_uri
    except ImportError:
        raise ImportError("hf.serving.mlserver needs MLServer: pip install 'hybridflow[mlserver]'.") from None

    class Runtime(MLModel):
        """A model that MLServer serves."""

        async def load(self) -> bool:
            """Load and warm the model."""
            path = await get_model_uri(self._settings, wellknown_filenames=list(FILES))
            parameters = self._settings.parameters
            extra = (parameters.extra if parameters is not None else None) or {}
            self._model = HostedModel(self.name, path, extra)
            await asyncio.to_thread(self._model.load)
            self.inputs = [types.MetadataTensor(**port) for port in self._model.inputs]
            self.outputs = [types.MetadataTensor(**port) for port in self._model.outputs]
            return True

        async def predict(self, payload: Any) -> Any:
            """The outputs for the inputs of a request."""
            inputs = [
                Input(one.name, one.shape, one.datatype, functools.partial(NumpyCodec.decode_input, one))
                for one in payload.inputs
            ]
            try:
                outputs = await asyncio.wrap_future(self._model.submit(inputs))
            except RequestError as error:
                raise MLServerError(str(error), error.status) from None
            wanted = {one.name for one in payload.outputs or ()}
            return types.InferenceResponse(
                id=payload.id,
                model_name=self.name,
                model_version=self.version,
                outputs=[
                    NumpyCodec.encode_output(name, array)
                    for name, _, array in self._model.named(outputs)
                    if not wanted or name in wanted
                ],
            )

        async def unload(self) -> bool:
            """Take no more requests."""
            await asyncio.to_thread(self._model.close)
            return True

    return Runtime
