"""Decoders: the steps that they have seen, kept as keys and values, and text that goes on token by token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.applications.text.pretrained import Pretrained
from hybridflow.array.creation import arange, asarray, zeros
from hybridflow.array.elementwise import clip, logical_and, where
from hybridflow.array.indexing import take
from hybridflow.array.shapes import expand_dims
from hybridflow.core.tensor import Tensor
from hybridflow.effects.runtime_raise import check_all
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.jit.function import function
from hybridflow.nn.attention import scaled_dot_product_attention

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


class Cache(NamedTuple):
    """Keys and values of the steps that a decoder has seen, of each layer, and how many steps these are."""

    keys: tuple[Tensor, ...]  # [batch, heads, places, features] of each layer
    values: tuple[Tensor, ...]
    length: Any


class Decoder(Pretrained):
    """A language model that goes on with what it has seen."""

    _cache_shape: tuple[int, int, int]  # layers, heads, features
    _positions: int
    _compiled: Any = None

    def start(self, batch: int = 1, places: int | None = None) -> Cache:
        """An empty cache for so many rows, with room for ``places`` steps: all that the model can see by default.

        Args:
            batch: the number of rows.
            places: the number of positions that the cache has room for; by default all of the model's.

        Returns:
            A cache of float32 zeros, [batch, heads, places, width] for each layer.

        Raises:
            ArgumentError: for places that the model does not have.
        """
        layers, count, width = self._cache_shape
        places = self._positions if places is None else places
        if not isinstance(places, (int, np.integer)) or not 1 <= places <= self._positions:
            raise ArgumentError(self.name, f"places is {places!r}; the model has {self._positions} positions.")
        empty = tuple([zeros((batch, count, places, width)) for _ in range(layers)])
        return Cache(empty, empty, asarray(0))

    def __call__(self, tokens: ArrayLike, cache: Cache | None = None) -> Any:
        """Logits of the next token at each step; with a cache, a pair of these and the cache that goes on.

        ``tokens`` are integers [batch, steps].  With a cache they follow what it has seen; where it has no room for
        them, an ArgumentError is raised.
        """
        tokens = asarray(tokens)
        if tokens.ndim != 2:
            raise ShapeError(self.name, f"tokens are [batch, steps]; the shape is {tuple(tokens.shape)}.")
        if cache is not None and cache.keys:
            steps, places = tokens.shape[1], cache.keys[0].shape[2]
            message = f"the cache has {places} places, and no room for {steps} more steps."
            fits = cache.length + steps <= places
            check_all(fits, ArgumentError, lambda: ArgumentError(self.name, message), (), message)
        return self._forward(tokens, cache)

    def _forward(self, tokens: object, cache: Cache | None) -> Any:
        raise NotImplementedError

    def generate(self, tokens: ArrayLike, count: int, end: int | None = None) -> np.ndarray:
        """The likeliest ``count`` tokens after each row of ``tokens``, one after another.

        With ``end`` it stops where all rows have that token; rows that had it before go on with it.

        Args:
            tokens: integers [batch, steps].
            count: the number of tokens to add.
            end: the token that ends a row, or None.

        Returns:
            The tokens of the prompt and those that follow them, an integer array [batch, steps + count]; fewer where
            all rows have ended.

        Raises:
            ShapeError: for tokens that are not integers [batch, steps].
            ArgumentError: for more steps than the model has positions.
        """
        prompt = np.asarray(tokens)
        if prompt.ndim != 2 or prompt.dtype.kind not in "iu" or not prompt.shape[1]:
            raise ShapeError(self.name, f"tokens are integers [batch, steps]; they are {prompt.dtype}{prompt.shape}.")
        if not isinstance(count, (int, np.integer)) or count < 0 or prompt.shape[1] + count > self._positions:
            raise ArgumentError(
                self.name, f"{prompt.shape[1]} and {count!r} more tokens are not within {self._positions} positions."
            )
        if self._compiled is None:
            self._compiled = function(self._forward)
        cache = self.start(len(prompt), prompt.shape[1] + count)
        result, step = [prompt], prompt
        done = np.zeros(len(prompt), bool)
        for _ in range(count):
            logits, cache = self._compiled(asarray(step), cache)
            step = np.argmax(logits.numpy()[:, -1], -1).astype(prompt.dtype)[:, None]
            if end is not None:
                step[done] = end
                done |= step[:, 0] == end
            result.append(step)
            if end is not None and done.all():
                break
        return np.concatenate(result, axis=1)


def attended(
    query: ArrayLike, key: Tensor, value: ArrayLike, cache: Cache | None, layer: int, shared: bool
) -> tuple[Any, Any, Any]:
    """Attention to earlier steps; with a cache also to those in it.  Returns the result, and keys and values."""
    if cache is None:
        return scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=shared), key, value
    steps, places = key.shape[2], cache.keys[layer].shape[2]
    place = arange(places)
    source = place - cache.length  # the new step that belongs there
    is_new = expand_dims(logical_and(source >= 0, source < steps), -1)
    chosen = clip(source, 0, steps - 1)
    keys = where(is_new, take(key, chosen, axis=2), cache.keys[layer])
    values = where(is_new, take(value, chosen, axis=2), cache.values[layer])
    mask = expand_dims(place, 0) <= expand_dims(arange(steps) + cache.length, -1)
    return scaled_dot_product_attention(query, keys, values, mask, enable_gqa=shared), keys, values


def positions_of(tokens: Tensor, cache: Cache | None) -> Any:
    """The positions of new steps."""
    place = arange(tokens.shape[1])
    return place if cache is None else place + cache.length
