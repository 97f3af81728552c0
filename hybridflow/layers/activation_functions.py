"""Activations as functions, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hybridflow import code_traits
from hybridflow.array.elementwise import exp, sigmoid, tanh
from hybridflow.core.serialization import kind_of
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentTypeError
from hybridflow.layers.named_activations import FURTHER
from hybridflow.nn.functional import (
    elu,
    gelu,
    hard_sigmoid,
    hard_swish,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu,
    relu6,
    selu,
    silu,
    softmax,
    softplus,
    softsign,
)

if TYPE_CHECKING:
    from hybridflow.eager.public_op import PublicOp


def linear(x: Tensor) -> Tensor:
    """The input itself."""
    return x


def exponential(x: Tensor) -> Any:
    """``exp(x)``."""
    return exp(x)


_BY_NAME: dict[str, Any] = {
    "elu": elu,
    "exponential": exponential,
    "gelu": gelu,
    "hard_sigmoid": hard_sigmoid,
    "hard_swish": hard_swish,
    "leaky_relu": leaky_relu,
    "linear": linear,
    "log_sigmoid": log_sigmoid,
    "log_softmax": log_softmax,
    "relu": relu,
    "relu6": relu6,
    "selu": selu,
    "sigmoid": sigmoid,
    "silu": silu,
    "softmax": softmax,
    "softplus": softplus,
    "softsign": softsign,
    "swish": silu,
    "tanh": tanh,
    **FURTHER,
    "hard_silu": hard_swish,
}


def activation(identifier: object) -> Callable[[Any], Any]:
    """The function that is meant: by name, itself, or ``linear`` for None.

    Raises ArgumentError for an unknown name, ArgumentTypeError for what cannot be called.
    """
    if identifier is None:
        return linear
    if isinstance(identifier, str):
        result: Callable[[Any], Any] = kind_of(_BY_NAME, identifier, "activation")
        return result
    if not callable(identifier):
        raise ArgumentTypeError("activation", f"{identifier!r} is neither a name nor a function.")
    return identifier


def name_of_activation(function: PublicOp | Callable[..., Any]) -> Any:
    """The name that ``activation`` knows; the function itself where it has none."""
    for name, known in _BY_NAME.items():
        if known is function:
            return None if name == "linear" else name
    called = getattr(function, "__name__", None)  # TensorFlow's function of the same name
    is_compat = "compat" in code_traits.of_module(getattr(function, "__module__", None) or "")
    return called if is_compat and called in _BY_NAME else function
