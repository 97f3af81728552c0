"""Functions that connect layers where they are given symbols, as those of ``keras.ops`` do."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import hybridflow as hf
from hybridflow.core import pytree
from hybridflow.layers.keras_tensor import Symbol, first_symbol


def over_symbols(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; of symbols it is a layer, whose inputs are the symbols among the arguments."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if first_symbol((*args, kwargs)) is None:
            return function(*args, **kwargs)
        leaves, structure = pytree.flatten((args, kwargs))
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Symbol)]

        def apply(inputs: Iterable[Any]) -> Any:
            filled = list(leaves)
            for place, value in zip(places, inputs if len(places) > 1 else [inputs]):
                filled[place] = value
            args_filled, named = pytree.unflatten(structure, filled)
            return function(*args_filled, **named)

        symbols = [leaves[place] for place in places]
        return hf.layers.Lambda(apply)(symbols if len(symbols) > 1 else symbols[0])

    return call


def activation_over_symbols(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same of an activation, which without options is a layer that files can hold."""
    over_any = over_symbols(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], Symbol):
            return hf.layers.Activation(name)(args[0])
        return over_any(*args, **kwargs)

    return call


def of_name(dotted: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``keras.ops`` or ``keras.activations`` that takes symbols."""
    if dotted.startswith("keras.ops."):
        return over_symbols(function)
    return activation_over_symbols(function, dotted.rpartition(".")[2])
