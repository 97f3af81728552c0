"""BERT.  Source: Devlin, Chang, Lee and Toutanova, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", 2018."""

from __future__ import annotations

from typing import Any

from hybridflow.applications.text.pretrained import Pretrained, heads, joined
from hybridflow.array.creation import arange, asarray, zeros_like
from hybridflow.array.elementwise import tanh
from hybridflow.array.indexing import take
from hybridflow.array.shapes import expand_dims
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.nn.attention import scaled_dot_product_attention
from hybridflow.nn.functional import gelu


class BERT(Pretrained):
    """BERT, an encoder that sees all of a text, whose parameters have the names of Hugging Face's ``BertModel``.

    ``model(tokens, token_type_ids, attention_mask)`` returns a pair: the features of each step, and those of the text,
    made of its first step.  ``load`` and ``BERT.from_folder`` read files.

    Args:
        vocab_size: the number of tokens.
        hidden_size: the features of a step.
        num_hidden_layers: the number of blocks.
        num_attention_heads: the heads of attention.
        intermediate_size: features within a block.
        max_position_embeddings: the most steps that it can see.
        type_vocab_size: kinds of texts, as question and answer.
        layer_norm_eps: what keeps divisions finite.
        seed: of random parameters.

    >>> model = hf.applications.text.BERT(11, 8, 1, 2, 16, 8)
    >>> steps, text = model([[1, 2, 3]])
    >>> steps.shape, text.shape
    ((1, 3, 8), (1, 8))
    """

    _prefix = "bert."
    _ignored = ("position_ids", ".beta", ".gamma")
    _checked = {"model_type": "bert", "is_decoder": False, "hidden_act": "gelu", "position_embedding_type": "absolute"}

    def __init__(
        self,
        vocab_size: int = 30522,
        hidden_size: int = 768,
        num_hidden_layers: int = 12,
        num_attention_heads: int = 12,
        intermediate_size: int = 3072,
        max_position_embeddings: int = 512,
        type_vocab_size: int = 2,
        layer_norm_eps: float = 1e-12,
        seed: int = 0,
    ) -> None:
        if num_attention_heads < 1 or hidden_size % num_attention_heads:
            raise ArgumentError(
                "BERT", f"hidden_size is {hidden_size}, which {num_attention_heads} heads do not share."
            )
        self._heads, self._layers, self._epsilon = num_attention_heads, num_hidden_layers, layer_norm_eps
        width = hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (vocab_size, width),
            "embeddings.position_embeddings.weight": (max_position_embeddings, width),
            "embeddings.token_type_embeddings.weight": (type_vocab_size, width),
            **_pair("embeddings.LayerNorm", width),
        }
        for layer in range(num_hidden_layers):
            name = f"encoder.layer.{layer}"
            for part in (
                "attention.self.query",
                "attention.self.key",
                "attention.self.value",
                "attention.output.dense",
            ):
                shapes |= _pair(f"{name}.{part}", width, width)
            shapes |= _pair(f"{name}.attention.output.LayerNorm", width)
            shapes |= _pair(f"{name}.intermediate.dense", intermediate_size, width)
            shapes |= _pair(f"{name}.output.dense", width, intermediate_size)
            shapes |= _pair(f"{name}.output.LayerNorm", width)
        shapes |= _pair("pooler.dense", width, width)
        self._make(shapes, seed)

    def _known(self, name: str) -> str | None:
        old = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        return None if old.startswith("cls.") else super()._known(old)

    def __call__(
        self, tokens: ArrayLike, token_type_ids: ArrayLike | None = None, attention_mask: ArrayLike | None = None
    ) -> Any:
        """Features of each step [batch, steps, features], and of the texts [batch, features].

        ``tokens`` are integers [batch, steps]; where ``attention_mask`` is 0 there is no step.
        """
        tokens = asarray(tokens)
        if tokens.ndim != 2:
            raise ShapeError(self.name, f"tokens are [batch, steps]; the shape is {tuple(tokens.shape)}.")
        kinds = zeros_like(tokens) if token_type_ids is None else asarray(token_type_ids)
        mask = None if attention_mask is None else expand_dims(expand_dims(asarray(attention_mask) != 0, 1), 1)
        x = take(self._of("embeddings.word_embeddings.weight"), tokens, axis=0)
        x = x + take(self._of("embeddings.token_type_embeddings.weight"), kinds, axis=0)
        x = x + take(self._of("embeddings.position_embeddings.weight"), arange(tokens.shape[1]), axis=0)
        x = self._normalized(x, "embeddings.LayerNorm", self._epsilon)
        for layer in range(self._layers):
            x = self._block(x, mask, f"encoder.layer.{layer}")
        return x, tanh(self._linear(x[:, 0], "pooler.dense"))

    def _block(self, x: object, mask: object, name: str) -> Any:
        parts = [self._linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
        query, key, value = [heads(part, self._heads) for part in parts]
        y = joined(scaled_dot_product_attention(query, key, value, mask))
        y = self._linear(y, f"{name}.attention.output.dense")
        x = self._normalized(x + y, f"{name}.attention.output.LayerNorm", self._epsilon)
        y = self._linear(gelu(self._linear(x, f"{name}.intermediate.dense")), f"{name}.output.dense")
        return self._normalized(x + y, f"{name}.output.LayerNorm", self._epsilon)


def _pair(name: str, *shape: int) -> dict[str, tuple[int, ...]]:
    """A weight and its bias."""
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
