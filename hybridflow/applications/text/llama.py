"""Llama.  Source: Touvron and others, "LLaMA: Open and Efficient Foundation Language Models", 2023."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.applications.text.decoding import Cache, Decoder, attended, positions_of
from hybridflow.applications.text.pretrained import heads, joined
from hybridflow.array.creation import asarray
from hybridflow.array.indexing import take
from hybridflow.array.linalg import matmul
from hybridflow.array.shapes import concat, permute_dims
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError
from hybridflow.nn.functional import rms_norm, silu

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


class Llama(Decoder):
    """Llama, a decoder with rotated positions and shared keys, with the names of ``LlamaForCausalLM``'s parameters.

    ``model(tokens)`` returns logits; ``model(tokens, model.start())`` a pair of logits and a cache for the next call.
    ``generate`` goes on with a text.  ``load`` and ``Llama.from_folder`` read files.

    Args:
        vocab_size: the number of tokens.
        hidden_size: the features of a step.
        intermediate_size: features within a block.
        num_hidden_layers: the number of blocks.
        num_attention_heads: the heads of attention.
        num_key_value_heads: heads of keys and values, which several heads share; all have their own unless given.
        max_position_embeddings: the most steps that it can see.
        rms_norm_eps: what keeps divisions finite.
        rope_theta: the base of the rotations' periods.
        head_dim: features of a head; ``hidden_size`` shared among the heads unless given.
        tie_word_embeddings: whether logits are products with the embeddings.
        seed: of random parameters.

    >>> model = hf.applications.text.Llama(11, 8, 16, 1, 4, 2, max_position_embeddings=8)
    >>> model([[1, 2, 3]]).shape
    (1, 3, 11)
    """

    _prefix = "model."
    _ignored = ("rotary_emb.inv_freq", "lm_head.weight")
    _checked = {
        "model_type": "llama",
        "hidden_act": "silu",
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
    }

    def __init__(
        self,
        vocab_size: int = 32000,
        hidden_size: int = 4096,
        intermediate_size: int = 11008,
        num_hidden_layers: int = 32,
        num_attention_heads: int = 32,
        num_key_value_heads: int | None = None,
        max_position_embeddings: int = 2048,
        rms_norm_eps: float = 1e-6,
        rope_theta: float = 10000.0,
        head_dim: int | None = None,
        tie_word_embeddings: bool = False,
        seed: int = 0,
    ) -> None:
        count = num_attention_heads if num_key_value_heads is None else num_key_value_heads
        if num_attention_heads < 1 or count < 1:
            raise ArgumentError("Llama", f"there are {num_attention_heads} heads, and {count} of keys; give 1 or more.")
        width = hidden_size // num_attention_heads if head_dim is None else head_dim
        if num_attention_heads % count or width % 2:
            raise ArgumentError("Llama", f"{num_attention_heads} heads of {width} do not share {count} of keys evenly.")
        self._positions, self._heads, self._shared = max_position_embeddings, num_attention_heads, count
        self._epsilon, self._layers, self._tied = rms_norm_eps, num_hidden_layers, tie_word_embeddings
        self._cache_shape = num_hidden_layers, count, width
        angles = np.outer(np.arange(max_position_embeddings), rope_theta ** (-np.arange(0, width, 2) / width))
        self._cosines, self._sines = asarray(np.cos(angles), dtype="float32"), asarray(np.sin(angles), dtype="float32")
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab_size, hidden_size)}
        sizes = {
            "self_attn.q_proj": (num_attention_heads * width, hidden_size),
            "self_attn.k_proj": (count * width, hidden_size),
            "self_attn.v_proj": (count * width, hidden_size),
            "self_attn.o_proj": (hidden_size, num_attention_heads * width),
            "mlp.gate_proj": (intermediate_size, hidden_size),
            "mlp.up_proj": (intermediate_size, hidden_size),
            "mlp.down_proj": (hidden_size, intermediate_size),
            "input_layernorm": (hidden_size,),
            "post_attention_layernorm": (hidden_size,),
        }
        for layer in range(num_hidden_layers):
            shapes |= {f"model.layers.{layer}.{part}.weight": shape for part, shape in sizes.items()}
        shapes["model.norm.weight"] = (hidden_size,)
        if not tie_word_embeddings:
            shapes["lm_head.weight"] = (vocab_size, hidden_size)
        self._make(shapes, seed)

    @classmethod
    def _configuration(cls, held: dict[str, Any]) -> dict[str, Any]:
        """Later files have what is said of rotations in a dict of its own."""
        rotations = held.get("rope_parameters") or {}
        if rotations.get("rope_type", "default") != "default":
            held = held | {"rope_scaling": rotations}
        return held | ({"rope_theta": rotations["rope_theta"]} if "rope_theta" in rotations else {})

    def _forward(self, tokens: Any, cache: Cache | None) -> Any:
        embeddings = self._of("model.embed_tokens.weight")
        x = take(embeddings, tokens, axis=0)
        place = positions_of(tokens, cache)
        rotation = take(self._cosines, place, axis=0), take(self._sines, place, axis=0)
        keys, values = [], []
        for layer in range(self._layers):
            name = f"model.layers.{layer}"
            y = self._scaled(x, f"{name}.input_layernorm")
            query = _rotated(heads(self._linear(y, f"{name}.self_attn.q_proj"), self._heads), rotation)
            key = _rotated(heads(self._linear(y, f"{name}.self_attn.k_proj"), self._shared), rotation)
            value = heads(self._linear(y, f"{name}.self_attn.v_proj"), self._shared)
            y, key, value = attended(query, key, value, cache, layer, self._shared != self._heads)
            keys.append(key)
            values.append(value)
            x = x + self._linear(joined(y), f"{name}.self_attn.o_proj")
            y = self._scaled(x, f"{name}.post_attention_layernorm")
            y = silu(self._linear(y, f"{name}.mlp.gate_proj")) * self._linear(y, f"{name}.mlp.up_proj")
            x = x + self._linear(y, f"{name}.mlp.down_proj")
        x = self._scaled(x, "model.norm")
        last = embeddings if self._tied else self._of("lm_head.weight")
        logits = matmul(x, permute_dims(last, (1, 0)))
        if cache is None:
            return logits
        return logits, Cache(tuple(keys), tuple(values), cache.length + tokens.shape[1])

    def _scaled(self, x: ArrayLike, name: str) -> Any:
        return rms_norm(x, self._of(f"{name}.weight"), -1, self._epsilon)


def _rotated(x: Tensor, rotation: tuple[Any, Any]) -> Any:
    """Each pair of features, one of either half, turned by an angle that grows with the position."""
    cosines, sines = rotation
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return concat([first * cosines - second * sines, second * cosines + first * sines], axis=-1)
