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
