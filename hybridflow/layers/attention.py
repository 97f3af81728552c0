"""Attention: each step of one sequence looks at the steps of another."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Unpack

from hybridflow.array import random
from hybridflow.array.creation import arange
from hybridflow.array.elementwise import abs, divide, less, logical_and, sigmoid, subtract
from hybridflow.array.selection import repeat
from hybridflow.array.shapes import expand_dims, permute_dims
from hybridflow.compiler.ir import dtypes
from hybridflow.core import layer_context
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, Identifier
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import cast
from hybridflow.errors import ArgumentError, DTypeError, ShapeError
from hybridflow.layers.basic import positive
from hybridflow.layers.layer import Layer, LayerOptions, check_last_extent, check_rate, last_extent
from hybridflow.nn.attention import attention
from hybridflow.quantize.quantized_weight import contract


class ProjectionOptions(LayerOptions, total=False):
    """What attention of projections takes by name, and passes on."""

    value_dim: int | None
    output_shape: int | None
    kernel_initializer: Identifier
    bias_initializer: Identifier
    kernel_regularizer: Identifier
    bias_regularizer: Identifier
    kernel_constraint: Identifier
    bias_constraint: Identifier
    seed: int | None


class MultiHeadAttention(Layer, one_tensor=True):
    """Multi-head attention of ``query`` to ``key`` and ``value``, which is the key too unless one is given.

    It takes ``[batch, steps, features]`` and ``[batch, others, ...]``, and gives ``[batch, steps, features]``, or
    ``output_shape`` numbers.

    A step pays no attention to others where ``attention_mask``, ``[batch, steps, others]``, is False, or the masks of
    the inputs; nor, with ``use_causal_mask``, to later ones. One that may look at nothing takes 0 (in Keras on
    TensorFlow it looks at all alike unless the scores are returned). With ``return_attention_scores`` the result is
    followed by the shares, ``[batch, num_heads, steps, others]``.

    Source: Vaswani and others, "Attention Is All You Need", 2017.

    Args:
        num_heads: how many heads attend.
        key_dim: the length of queries and keys of each head.
        value_dim: the length of values of each head; that of keys unless given.
        dropout: the dropout rate of the attention weights in training.
        use_bias: whether a bias is added.
        output_shape: the shape of a result, without the batch.
        kernel_initializer: the initializer of the kernel.
        bias_initializer: the initializer of the bias.
        kernel_regularizer: a regularizer of the kernel.
        bias_regularizer: a regularizer of the bias.
        kernel_constraint: a constraint that is applied to the kernel after each update.
        bias_constraint: a constraint that is applied to the bias after each update.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.MultiHeadAttention(2, 4)
    >>> x = hf.ones((3, 5, 8))
    >>> y, shares = layer(x, x, use_causal_mask=True, return_attention_scores=True)
    >>> y.shape, shares[0, 0, 1].tolist()
    ((3, 5, 8), [0.5, 0.5, 0.0, 0.0, 0.0])
    """

    supports_masking = True

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: int | None = None,
        *,
        kernel_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None,
        bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None,
        seed: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.num_heads, self.key_dim = positive(num_heads, "num_heads", self), positive(key_dim, "key_dim", self)
        self.value_dim = self.key_dim if value_dim is None else positive(value_dim, "value_dim", self)
        self.output_shape = None if output_shape is None else positive(output_shape, "output_shape", self)
        check_rate(self, "dropout", dropout)
        self.dropout, self.use_bias, self.seed = float(dropout), bool(use_bias), seed
        self._settle("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self._settle("bias", bias_initializer, bias_regularizer, bias_constraint)

    def __call__(self, *args: object, **options: Any) -> Any:
        """The result of ``call``; query, value and key may be given by name."""
        inputs = [*args, *(options.pop(name, None) for name in ("query", "value", "key")[len(args) :])]
        while inputs and inputs[-1] is None:
            inputs.pop()
        return super().__call__(*inputs, **options)

    def _build(self, inputs: Sequence[Any]) -> None:
        for x in inputs[:3]:
            if x is not None and x.ndim != 3:
                raise ShapeError(self.name, f"an input is {x.type}; it must be [batch, steps, features].")
        if len(inputs) < 2:
            raise ArgumentError(self.name, "the layer takes query and value, and key if that is another one.")
        super()._build([[inputs[0], inputs[1], inputs[2] if len(inputs) > 2 and inputs[2] is not None else inputs[1]]])

    def build(self, input_shape: Sequence[tuple[Any, ...]]) -> None:
        query, value, key = (last_extent(self, shape) for shape in input_shape)
        heads = self.num_heads
        self.query_kernel, self.query_bias = self._projection((query, heads, self.key_dim))
        self.key_kernel, self.key_bias = self._projection((key, heads, self.key_dim))
        self.value_kernel, self.value_bias = self._projection((value, heads, self.value_dim))
        self.output_kernel, self.output_bias = self._projection((heads, self.value_dim, self.output_shape or query), 1)
        self.generator = None if self.seed is None else random.Generator(self.seed)

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        heads = dict.fromkeys(("query_kernel", "key_kernel", "value_kernel", "gate_kernel"), (1, 2))
        return {name: axes for name, axes in (heads | {"output_kernel": (2,)}).items() if hasattr(self, name)}

    def _projection(self, shape: tuple[int, ...], of_bias: int = 2) -> tuple[Variable, Variable | None]:
        """A kernel, and a bias of its last extents."""
        kernel = self._weight("kernel", shape)
        return kernel, self._weight("bias", shape[-of_bias:]) if self.use_bias else None

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        query_mask: Tensor | None = None,
        value_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
    ) -> Any:
        """The attention of queries to values, by all heads.

        Args:
            query: a tensor [batch, query steps, features].
            value: a tensor [batch, steps, features].
            key: a tensor like ``value``, which it is unless given.
            query_mask: the mask [batch, query steps], or None for that of the tensor.
            value_mask: the mask [batch, steps], or None for that of the tensor.
            key_mask: the mask [batch, steps], or None for that of the tensor.
            attention_mask: a bool tensor [batch, query steps, steps] of what may be seen, or None.
            return_attention_scores: whether scores are returned too.
            training: whether the model is being trained.
            use_causal_mask: whether steps see none that come after them.

        Returns:
            A tensor [batch, query steps, features]; with scores [batch, heads, query steps, steps] if asked for.

        Raises:
            ShapeError: where the last extents are not those of the layer's kernels.
        """
        query_mask = layer_context.mask_of(query) if query_mask is None else query_mask
        value_mask = layer_context.mask_of(value) if value_mask is None else value_mask
        if key is None:
            key = value
        elif key_mask is None:
            key_mask = layer_context.mask_of(key)
        for x, kernel, name in ((query, self.query_kernel, "query"), (key, self.key_kernel, "key")):
            check_last_extent(self, x, kernel.shape[0], name)
        check_last_extent(self, value, self.value_kernel.shape[0], "value")
        q = _heads(query, self.query_kernel, self.query_bias)
        k = self._shared(_heads(key, self.key_kernel, self.key_bias))
        v = self._shared(_heads(value, self.value_kernel, self.value_bias))
        columns = [expand_dims(m, axis=-2) for m in (value_mask, key_mask) if m is not None]
        rows = [] if query_mask is None else [expand_dims(query_mask, axis=-1)]
        masks = [] if attention_mask is None else [attention_mask]
        near = self._near(q.shape[2], k.shape[2])
        seen = [mask if mask.ndim != 3 else expand_dims(mask, axis=1) for mask in rows + columns + masks + near]
        for mask in seen:
            if not dtypes.is_bool(mask.dtype):
                raise DTypeError(self.name, f"a mask is {mask.dtype}; it must be bool. Compare it, as in mask != 0.")
        mask = functools.reduce(logical_and, seen) if seen else None
        rate = self.dropout if training else 0.0
        context, powers, total = attention(q, k, v, mask, use_causal_mask, None, rate, self.generator)
        out = contract(self._gated(context, query), self.output_kernel, "bntv,nve->bte")
        if self.output_bias is not None:
            out = out + self.output_bias
        return (out, cast(divide(powers, total), q.dtype)) if return_attention_scores else out

    def _shared(self, x: Tensor) -> Tensor:
        """Keys or values ``[batch, heads, others, numbers]`` for each head of the query."""
        return x

    def _near(self, steps: object, others: object) -> list[Any]:
        """A mask, or none, of what lies within reach."""
        return []

    def _gated(self, taken: Tensor, query: Tensor) -> Tensor:
        """What the heads took, ``[batch, heads, steps, numbers]``, as it goes on."""
        return taken

    def compute_mask(self, inputs: object, mask: Sequence[Tensor | None] | None = None) -> Any:
        """The mask of the result: that of the query.

        Args:
            inputs: the query.
            mask: the mask of the inputs, or None.

        Returns:
            A bool tensor, or None.
        """
        return mask


class GroupQueryAttention(MultiHeadAttention, one_tensor=True):
    """Grouped-query attention: ``MultiHeadAttention`` whose ``num_query_heads`` heads share ``num_key_value_heads``
    keys and values, as many of them each, with ``head_dim`` numbers.

    With ``sliding_window`` a step looks at those less than so many steps away.  With ``use_gate`` what each head takes
    is multiplied by a sigmoid of a projection of the query.  Other arguments are those of ``MultiHeadAttention``.

    Sources: Ainslie and others, "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
    Checkpoints", 2023; Qiu and others, "Gated Attention for Large Language Models", 2025.

    Args:
        head_dim: the length of each head.
        num_query_heads: how many heads of queries there are.
        num_key_value_heads: how many heads of keys and values there are.
        dropout: the dropout rate of the attention weights in training.
        use_bias: whether a bias is added.
        sliding_window: how many positions back are attended to.
        use_gate: whether results pass a gate.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.GroupQueryAttention(4, num_query_heads=6, num_key_value_heads=2)
    >>> x = hf.ones((3, 5, 8))
    >>> layer(x, x).shape, layer.key_kernel.shape
    ((3, 5, 8), (8, 2, 4))
    """

    def __init__(
        self,
        head_dim: int,
        num_query_heads: int,
        num_key_value_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        sliding_window: int | None = None,
        *,
        use_gate: bool = False,
        **options: Unpack[ProjectionOptions],
    ) -> None:
        super().__init__(num_query_heads, head_dim, dropout=dropout, use_bias=use_bias, **options)
        self.num_key_value_heads = positive(num_key_value_heads, "num_key_value_heads", self)
        if self.num_heads % self.num_key_value_heads:
            raise ArgumentError(
                self.name, f"{self.num_heads} query heads cannot share {self.num_key_value_heads} keys and values."
            )
        self.sliding_window = None if sliding_window is None else positive(sliding_window, "sliding_window", self)
        self.use_gate = bool(use_gate)

    def build(self, input_shape: Sequence[tuple[Any, ...]]) -> None:
        query, value, key = (last_extent(self, shape) for shape in input_shape)
        heads, shared, numbers = self.num_heads, self.num_key_value_heads, self.key_dim
        self.query_kernel, self.query_bias = self._projection((query, heads, numbers))
        self.key_kernel, self.key_bias = self._projection((key, shared, numbers))
        if self.use_gate:
            self.gate_kernel, self.gate_bias = self._projection((query, heads, numbers))
        self.value_kernel, self.value_bias = self._projection((value, shared, numbers))
        self.output_kernel, self.output_bias = self._projection((heads, numbers, query), 1)
        self.generator = None if self.seed is None else random.Generator(self.seed)

    def _shared(self, x: ArrayLike) -> Any:
        return repeat(x, self.num_heads // self.num_key_value_heads, axis=1)

    def _near(self, steps: object, others: object) -> list[Any]:
        if self.sliding_window is None:
            return []
        apart = subtract(expand_dims(arange(steps), axis=1), expand_dims(arange(others), axis=0))
        return [less(abs(apart), self.sliding_window)]

    def _gated(self, taken: Tensor, query: Tensor) -> Any:
        return taken * sigmoid(_heads(query, self.gate_kernel, self.gate_bias)) if self.use_gate else taken

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"head_dim": self.key_dim, "num_query_heads": self.num_heads}
        for name in ("num_heads", "key_dim", "value_dim", "output_shape"):
            del config[name]
        names = "num_key_value_heads", "sliding_window", "use_gate"
        return config | {name: getattr(self, name) for name in names}


def _heads(x: Tensor, kernel: Variable, bias: Variable | None) -> Tensor:
    """``[batch, steps, features]`` to ``[batch, heads, steps, numbers]``."""
    out = contract(x, kernel, "bte,enk->btnk")
    return permute_dims(out if bias is None else out + bias, (0, 2, 1, 3))
