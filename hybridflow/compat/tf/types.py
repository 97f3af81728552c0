"""TensorFlow's ``tf.types``."""

from __future__ import annotations

import inspect
from typing import Any

from hybridflow.compat.export import export, tf_export
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.jit.function import Function


@tf_export("types.experimental.TraceType")
class TraceType:
    """``tf.types.experimental.TraceType``: what an argument is to a function.

    Functions look at the parts of arguments that they use, and ask no such type.
    """

    def is_subtype_of(self, other: object) -> bool:
        raise NotImplementedError(f"{type(self).__name__} has to define is_subtype_of(self, other)")

    def most_specific_common_supertype(self, others: object) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has to define most_specific_common_supertype(self, others)")

    def placeholder_value(self, placeholder_context: object = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has to define placeholder_value(self, placeholder_context)")


@tf_export("types.experimental.SupportsTracingProtocol")
class SupportsTracingProtocol:
    """``tf.types.experimental.SupportsTracingProtocol``."""


export(ArrayLike, "types.experimental.TensorLike")
export(Function, "types.experimental.GenericFunction", "types.experimental.PolymorphicFunction")
export(ConcreteFunction, "types.experimental.ConcreteFunction", "types.experimental.Callable")
export(inspect.Signature, "types.experimental.FunctionType")
