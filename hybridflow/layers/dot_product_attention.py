"""Attention without heads: queries look at values, by scores of their likeness to keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from hybridflow.array import random
from hybridflow.array.creation import ones, tril
from hybridflow.array.elementwise import logical_and, tanh, where
from hybridflow.array.reductions import sum
from hybridflow.array.shapes import expand_dims, matrix_transpose
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import cast
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.layer import Layer, LayerOptions, check_rate, last_extent
from hybridflow.nn.functional import dropout, softmax


class _Attention(Layer):
    """Called with ``[query, value]`` or ``[query, value, key]``, each ``[batch, steps, features]``."""

    supports_masking = True
    scale: Any = None

    def __init__(self, use_scale: bool, dropout: float, seed: int | None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        check_rate(self, "dropout", dropout)
        self.use_scale, self.dropout, self.seed = bool(use_scale), float(dropout), seed
        self.generator = None if seed is None else random.Generator(seed)

    def _check(self, inputs: object) -> None:
        if not isinstance(inputs, (list, tuple)) or len(inputs) not in (2, 3):
            raise ArgumentError(self.name, "the layer takes a list of query and value, and key if that is another one.")
        for x in inputs:
            self._check_tensor(x, "the layer takes a list of tensors")
            if x.ndim != 3:
                raise ShapeError(self.name, f"an input is {x.type}; it must be [batch, steps, features].")

    def _build(self, inputs: Sequence[Any]) -> None:
        self._check(inputs[0])
        super()._build(inputs)

    def scores(self, query: Tensor, key: Tensor) -> Any:
        """How well keys fit queries.

        Args:
            query: a tensor [batch, query steps, features].
            key: a tensor [batch, steps, features].

        Returns:
            A tensor [batch, query steps, steps].
        """
        raise NotImplementedError(f"{type(self).__name__} has to define scores(self, query, key)")

    def call(
        self,
        inputs: Tensor,
        mask: Tensor | None = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        """The attention of queries to values.

        Args:
            inputs: a list: queries [batch, query steps, features], values [batch, steps, features], and keys like the
                values if they are others.
            mask: a list of the masks of queries and values, each a bool tensor or None; or None.
            training: whether the model is being trained.
            return_attention_scores: whether the shares of values are returned too.
            use_causal_mask: whether steps see none that come after them.

        Returns:
            A tensor [batch, query steps, features]; with shares [batch, query steps, steps] if asked for.
        """
        self._check(inputs)
        query, value, key = inputs[0], inputs[1], inputs[-1] if len(inputs) == 3 else inputs[1]
        of_query, of_value = (*mask, None)[:2] if isinstance(mask, (list, tuple)) and mask else (None, None)
        scores = self.scores(query, key)
        seen = None if of_value is None else expand_dims(of_value, axis=-2)
        if use_causal_mask:
            before = tril(ones(scores.shape[-2:], dtype="bool"))
            seen = before if seen is None else logical_and(seen, before)
        if seen is not None:
            least = 65504.0 if scores.dtype == dtypes.float16 else 1e9
            scores = where(seen, scores, scores - least)
        shares = softmax(scores)
        if self.dropout and training:
            shares = dropout(shares, self.dropout, training=True, generator=self.generator)
        result = shares @ value
        if of_query is not None:
            result = result * cast(expand_dims(of_query, axis=-1), result.dtype)
        return (result, shares) if return_attention_scores else result

    def compute_mask(self, inputs: object, mask: Sequence[Tensor | None] | None = None) -> Any:
        """The mask of the result: that of the queries.

        Args:
            inputs: the list of inputs.
            mask: a list of masks, or None.

        Returns:
            A bool tensor, or None.
        """
        return mask[0] if isinstance(mask, (list, tuple)) and mask else None


class Attention(_Attention):
    """Dot-product attention: values, weighed by the softmax of products of query and key.

    With ``score_mode="concat"`` scores are the sum of ``tanh(query + key)`` over features, times a weight.
    ``use_scale`` adds a weight that multiplies within.

    It is called with ``[query, value]`` or ``[query, value, key]``, and ``mask`` is that of the query and that of the
    value: results for masked queries are 0, and masked values are not looked at.

    Args:
        use_scale: whether the scores are multiplied with a weight that is trained.
        score_mode: ``"dot"`` or ``"concat"``.
        dropout: the dropout rate of the attention weights in training.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> x = hf.asarray([[[1.0, 0.0], [0.0, 1.0]]])
    >>> y, shares = hf.layers.Attention()([x, x], use_causal_mask=True, return_attention_scores=True)
    >>> y.shape, shares[0, 0].tolist()
    ((1, 2, 2), [1.0, 0.0])
    """

    def __init__(
        self,
        use_scale: bool = False,
        score_mode: str = "dot",
        dropout: float = 0.0,
        seed: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(use_scale, dropout, seed, **options)
        if score_mode not in ("dot", "concat"):
            raise ArgumentError(self.name, f"score_mode is {score_mode!r}; it must be 'dot' or 'concat'.")
        self.score_mode = score_mode

    def build(self, input_shape: tuple[Any, ...]) -> None:
        self.scale = self.add_weight((), "ones") if self.use_scale else None
        self.concat_score_weight = self.add_weight((), "ones") if self.score_mode == "concat" else None

    def scores(self, query: Tensor, key: Tensor) -> Any:
        if self.score_mode == "dot":
            scores = query @ matrix_transpose(key)
            return scores if self.scale is None else scores * self.scale
        both = query[:, :, None] + key[:, None]
        return self.concat_score_weight * sum(tanh(both if self.scale is None else self.scale * both), axis=-1)


class AdditiveAttention(_Attention):
    """Additive (Bahdanau) attention: values, weighed by the softmax of ``sum(scale * tanh(query + key))`` over
    features, see ``Attention``.

    Source: Bahdanau and others, "Neural Machine Translation by Jointly Learning to Align and Translate", 2014.

    Args:
        use_scale: whether the scores are multiplied with a weight that is trained.
        dropout: the dropout rate of the attention weights in training.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.AdditiveAttention()([hf.ones((2, 3, 4)), hf.ones((2, 5, 4))]).shape
    (2, 3, 4)
    """

    def __init__(
        self, use_scale: bool = True, dropout: float = 0.0, seed: int | None = None, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(use_scale, dropout, seed, **options)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        extent = last_extent(self, input_shape[0])
        self.scale = self.add_weight((extent,), "glorot_uniform") if self.use_scale else None

    def scores(self, query: Tensor, key: Tensor) -> Any:
        hidden = tanh(query[:, :, None] + key[:, None])
        return sum(hidden if self.scale is None else self.scale * hidden, axis=-1)
