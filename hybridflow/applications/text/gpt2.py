"""GPT-2.  Source: Radford and others, "Language Models are Unsupervised Multitask Learners", 2019."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybridflow.applications.text.decoding import Cache, Decoder, attended, positions_of
from hybridflow.applications.text.pretrained import heads, joined
from hybridflow.array.indexing import take
from hybridflow.array.linalg import matmul
from hybridflow.array.shapes import permute_dims, split
from hybridflow.errors import ArgumentError
from hybridflow.nn.functional import gelu

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


class GPT2(Decoder):
    """GPT-2, a decoder with learned positions, whose parameters have the names of Hugging Face's ``GPT2LMHeadModel``.

    ``model(tokens)`` returns logits; ``model(tokens, model.start())`` a pair of logits and a cache for the next call.
    ``generate`` goes on with a text.  ``load`` and ``GPT2.from_folder`` read files.

    Args:
        vocab_size: the number of tokens.
        n_positions: the most steps that it can see.
        n_embd: the features of a step.
        n_layer: the number of blocks.
        n_head: the heads of attention.
        n_inner: features within a block; four times ``n_embd`` unless given.
        layer_norm_epsilon: what keeps divisions finite.
        seed: of random parameters.

    >>> model = hf.applications.text.GPT2(vocab_size=11, n_positions=8, n_embd=4, n_layer=1, n_head=2)
    >>> model([[1, 2, 3]]).shape
    (1, 3, 11)
    >>> model.generate([[1, 2]], 3).shape
    (1, 5)
    """

    _prefix = "transformer."
    _ignored = (".attn.bias", ".attn.masked_bias", "lm_head.weight")
    _checked = {
        "model_type": "gpt2",
        "scale_attn_weights": True,
        "activation_function": "gelu_new",
        "tie_word_embeddings": True,
        "scale_attn_by_inverse_layer_idx": False,
    }

    def __init__(
        self,
        vocab_size: int = 50257,
        n_positions: int = 1024,
        n_embd: int = 768,
        n_layer: int = 12,
        n_head: int = 12,
        n_inner: int | None = None,
        layer_norm_epsilon: float = 1e-5,
        seed: int = 0,
    ) -> None:
        if n_head < 1 or n_embd % n_head:
            raise ArgumentError("GPT2", f"n_embd is {n_embd}, which {n_head} heads do not share evenly.")
        self._positions, self._heads, self._layers = n_positions, n_head, n_layer
        self._epsilon = layer_norm_epsilon
        self._cache_shape = n_layer, n_head, n_embd // n_head
        inner = 4 * n_embd if n_inner is None else n_inner
        shapes: dict[str, tuple[int, ...]] = {"wte.weight": (vocab_size, n_embd), "wpe.weight": (n_positions, n_embd)}
        for layer in range(n_layer):
            name = f"h.{layer}"
            for norm in ("ln_1", "ln_2"):
                shapes |= {f"{name}.{norm}.weight": (n_embd,), f"{name}.{norm}.bias": (n_embd,)}
            sizes = {
                "attn.c_attn": (n_embd, 3 * n_embd),
                "attn.c_proj": (n_embd, n_embd),
                "mlp.c_fc": (n_embd, inner),
                "mlp.c_proj": (inner, n_embd),
            }
            for part, shape in sizes.items():
                shapes |= {f"{name}.{part}.weight": shape, f"{name}.{part}.bias": shape[1:]}
        shapes |= {"ln_f.weight": (n_embd,), "ln_f.bias": (n_embd,)}
        self._make({f"{self._prefix}{name}": shape for name, shape in shapes.items()}, seed)

    def _forward(self, tokens: Any, cache: Cache | None) -> Any:
        start = self._prefix
        x = take(self._of(f"{start}wte.weight"), tokens, axis=0)
        x = x + take(self._of(f"{start}wpe.weight"), positions_of(tokens, cache), axis=0)
        keys, values = [], []
        for layer in range(self._layers):
            name = f"{start}h.{layer}"
            y = self._turned(self._normalized(x, f"{name}.ln_1", self._epsilon), f"{name}.attn.c_attn")
            query, key, value = [heads(part, self._heads) for part in split(y, 3, axis=-1)]
            y, key, value = attended(query, key, value, cache, layer, False)
            keys.append(key)
            values.append(value)
            x = x + self._turned(joined(y), f"{name}.attn.c_proj")
            y = self._turned(self._normalized(x, f"{name}.ln_2", self._epsilon), f"{name}.mlp.c_fc")
            x = x + self._turned(gelu(y, approximate=True), f"{name}.mlp.c_proj")
        x = self._normalized(x, f"{start}ln_f", self._epsilon)
        logits = matmul(x, permute_dims(self._of(f"{start}wte.weight"), (1, 0)))
        if cache is None:
            return logits
        return logits, Cache(tuple(keys), tuple(values), cache.length + tokens.shape[1])

    def _turned(self, x: ArrayLike, name: str) -> Any:
        """A product with a weight [inputs, outputs], as GPT-2 has them, and a bias."""
        return matmul(x, self._of(f"{name}.weight")) + self._of(f"{name}.bias")
