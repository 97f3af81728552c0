"""``tf.layers.Dense`` and the like of TensorFlow 1: objects that call the function of their kind with one scope."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from hybridflow.compat.v1 import layers
from hybridflow.compat.v1.scopes import AUTO_REUSE, VariableScope, variable_scope
from hybridflow.compat.v1.variable_functions import global_variables


class Layer:
    """A function of ``tf.layers`` with all its arguments but the inputs; calls share their variables."""

    _function: Callable[..., Any]

    def __init__(self, *args: Any, name: str | None = None, **kwargs: Any) -> None:
        parameters = list(inspect.signature(self._function).parameters)[1:]
        taken = dict(zip(parameters, args)) | kwargs
        if unknown := [key for key in taken if key not in parameters]:
            raise TypeError(f"tf.layers.{type(self).__name__} has no argument {unknown[0]!r} in hybridflow.")
        self._options = {key: value for key, value in taken.items() if key not in ("name", "reuse", "_reuse")}
        self._name: str | None = taken.get("name", name)
        self._scope: VariableScope | None = None
        self._takes_name = "reuse" in parameters

    @property
    def name(self) -> str | None:
        return self._name if self._scope is None else self._scope.name.rpartition("/")[2]

    def __call__(self, inputs: object, **kwargs: object) -> Any:
        options = self._options | kwargs
        if not self._takes_name:  # there are no variables
            return self._function(inputs, **options)
        if self._scope is None:
            with variable_scope(self._name, self._function.__name__, auxiliary_name_scope=False) as scope:
                self._scope = scope
        return self._function(inputs, **options, name=self._scope, reuse=AUTO_REUSE)

    apply = __call__

    @property
    def weights(self) -> list[Any]:
        """Its variables, once it was called."""
        start = None if self._scope is None else f"{self._scope.name}/"
        return [] if start is None else [v for v in global_variables() if v.name.startswith(start)]

    variables = weights

    @property
    def trainable_weights(self) -> list[Any]:
        return [v for v in self.weights if v.trainable]

    trainable_variables = trainable_weights

    @property
    def non_trainable_weights(self) -> list[Any]:
        return [v for v in self.weights if not v.trainable]

    def __getattr__(self, name: str) -> Any:
        for variable in () if name.startswith("_") else self.weights:
            if variable.op.name.rpartition("/")[2] == name:
                return variable
        raise AttributeError(f"tf.layers.{type(self).__name__} has no {name!r} in hybridflow, or not before a call.")


def _class(name: str, function: Callable[..., Any]) -> type[Layer]:
    return type(name, (Layer,), {"_function": staticmethod(function), "__doc__": function.__doc__})


NAMES: dict[str, Any] = {
    "Layer": Layer,
    "Dense": _class("Dense", layers.dense),
    "Conv2D": _class("Conv2D", layers.conv2d),
    "Conv2DTranspose": _class("Conv2DTranspose", layers.conv2d_transpose),
    "MaxPooling2D": _class("MaxPooling2D", layers.max_pooling2d),
    "AveragePooling2D": _class("AveragePooling2D", layers.average_pooling2d),
    "Flatten": _class("Flatten", layers.flatten),
    "Dropout": _class("Dropout", layers.dropout),
    "BatchNormalization": _class("BatchNormalization", layers.batch_normalization),
}
