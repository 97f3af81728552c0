"""The distributions, over a source of random blocks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array.elementwise import (
    abs,
    add,
    bitwise_or,
    bitwise_right_shift,
    complex,
    cos,
    equal,
    exp,
    less,
    less_equal,
    log,
    log1p,
    maximum,
    minimum,
    multiply,
    negative,
    remainder,
    sign,
    sin,
    sqrt,
    subtract,
    where,
)
from hybridflow.array.reductions import cumulative_sum, max
from hybridflow.array.shapes import broadcast_shapes, broadcast_to, reshape
from hybridflow.array.sorting import argsort
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Extent, Shape, product
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.promotion import default_float, default_int, to_dtype, weak_kind
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike, ShapeLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, scalar, to_shape
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError, entered

if TYPE_CHECKING:
    from hybridflow.compiler.ir.extents import Dim


_PRECISION = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}
_WITHIN_TWO = math.erf(math.sqrt(2.0))  # the chance that a normal number lies within two standard deviations
# The normal number z = t p(w) with t = erf(z / sqrt(2)) and w = -log(1 - t**2), for z within [-2, 2]; to 2**-33, 2**-65
_QUANTILE = {
    dtypes.float32: (
        *(1.2533141374284549, 0.3281168662233867, 0.016333325103283627, -0.0033027478370581034),
        *(-0.00018006768072087494, 6.44703282180077e-05, 4.133151179499482e-06, -2.1274581381612975e-06),
        1.682376639311594e-07,
    ),
    dtypes.float64: (
        *(1.2533141373155003, 0.32811687386921706, 0.01633323614700847, -0.0033023324110876746),
        *(-0.00018108056328125939, 6.591853092791546e-05, 2.856696870475812e-06, -1.4319723307085092e-06),
        *(-5.273359815690247e-08, 3.2218347328012945e-08, 1.0875706359362814e-09, -7.608223896720556e-10),
        *(-9.152452610794874e-12, 9.893498492303421e-12, 3.5339117391607497e-12, -1.3023462972452915e-12),
        *(1.652064610217286e-13, -9.05818702898383e-15, 1.3370576865132847e-16),
    ),
}
_FEW_CLASSES = 16  # that are compared one after another, not searched
_FEW_VALUES = 2**32  # up to so many are drawn from 64 bits by the remainder


class Source:
    """The distributions, over a source of random blocks.

    ``shape`` is that of the result; without one it is what the parameters broadcast to, and parameters broadcast to it.
    """

    def _drawn(self, blocks: Extent) -> Tensor:
        """The state, uint64[2], from which so many blocks of four words are to be used by the caller alone."""
        raise NotImplementedError

    # ---- bits

    @staticmethod
    def blocks(size: Extent, dtype: np.dtype[Any], draws: int = 1) -> Extent:
        """The number of blocks of random words that ``draws`` times so many floats of a dtype take.

        Args:
            size: the number of floats.
            dtype: float32, float64 or a narrower float dtype.
            draws: the number of draws for each float.

        Returns:
            An int, or an extent of the trace.
        """
        return _blocks(size, 2 * draws if dtype == dtypes.float64 else draws)

    def _words(self, shape: Shape, draws: int) -> list[Tensor]:
        """``draws`` times uint32 words of ``shape``."""
        size = product(shape)
        state = self._drawn(_blocks(size, draws))
        return [apply(TABLE["random_bits"], state, shape=shape, first=k * size) for k in range(draws)]

    def _words64(self, shape: Shape) -> Tensor:
        """uint64 words, each from two uint32 words."""
        low, high = (cast(words, dtypes.uint64) for words in self._words(shape, 2))
        return bitwise_or(low, high << 32)

    def _units(self, shape: Shape, dtype: np.dtype[Any], draws: int = 1) -> list[Tensor]:
        """Multiples of 2**-p in [0, 1), where p is the precision of the dtype: each is exact."""
        digits = _PRECISION[dtype]
        if dtype == dtypes.float64:
            words = [cast(w, dtypes.uint64) for w in self._words(shape, 2 * draws)]
            many = [bitwise_or(low, high << 32) for low, high in zip(words[:draws], words[draws:])]
            many = [bitwise_right_shift(word, 64 - digits) for word in many]
        else:
            many = [bitwise_right_shift(word, 32 - digits) for word in self._words(shape, draws)]
        return [multiply(cast(whole, dtype), 2.0**-digits) for whole in many]

    def _around_zero(self, shape: Shape, dtype: np.dtype[Any]) -> Tensor:
        """Odd multiples of 2**-p in (-1, 1), all equally likely; each is exact."""
        (unit,) = self._units(shape, dtype)
        return add(multiply(unit, 2.0), 2.0 ** -_PRECISION[dtype] - 1.0)

    @operation
    def bits(self, shape: ShapeLike) -> Tensor:
        """Independent, uniformly distributed uint32 words."""
        return self._words(to_shape(shape, "random.bits"), 1)[0]

    # ---- continuous distributions

    @operation
    def uniform(
        self,
        shape: Any = None,
        minval: ArrayLike = 0.0,
        maxval: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Floats in [``minval``, ``maxval``): ``minval + u * (maxval - minval)``.

        u is a multiple of 2**-24 (float32) or 2**-53 (float64) in [0, 1).  Raises DTypeError for integer dtypes, which
        ``randint`` makes, ArgumentError for numbers of which ``minval`` is larger.
        """
        out_dtype = float_dtype(dtype, "random.uniform")
        shape, low, high = parameters_of("random.uniform", shape, out_dtype, minval=minval, maxval=maxval)
        (unit,) = self._units(shape, out_dtype)
        if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)):
            if not minval <= maxval:
                raise ArgumentError("random.uniform", f"minval {minval} is above maxval {maxval}.")
            if (minval, maxval) == (0, 1):
                return unit
        values = add(multiply(unit, subtract(high, low)), low)
        return where(less(values, high), values, low)  # rounding may reach the open end

    @operation
    def normal(
        self,
        shape: Any = None,
        mean: ArrayLike = 0.0,
        stddev: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Normally distributed floats, by Box and Muller: ``sqrt(-2 log(1 - u)) * cos(2 pi v)`` from two uniforms each.

        float32 values lie within 5.8 standard deviations, float64 ones within 8.6.  Complex numbers have the variance
        ``stddev ** 2``, half of it in each part; both are made of the same two uniforms, by the cosine and the sine.
        Raises ArgumentError for a number below 0 as ``stddev``.
        """
        if dtypes.is_complex(to_dtype(dtype, "random.normal")):
            return self._complex_normal(shape, mean, stddev, to_dtype(dtype, "random.normal"))
        out_dtype = float_dtype(dtype, "random.normal")
        wide = dtypes.compute_dtype(out_dtype)
        check_scale("random.normal", "stddev", stddev)
        shape, mean, stddev = parameters_of("random.normal", shape, wide, mean=mean, stddev=stddev)
        u, v = self._units(shape, wide, 2)
        radius = sqrt(multiply(log(subtract(1.0, u)), -2.0))
        values = multiply(radius, cos(multiply(v, 2.0 * math.pi)))
        return cast(add(multiply(values, stddev), mean), out_dtype)

    def _complex_normal(
        self, shape: tuple[int | Dim, ...], mean: ArrayLike, stddev: ArrayLike, dtype: np.dtype[Any]
    ) -> Tensor:
        check_scale("random.normal", "stddev", stddev)
        shape, mean, stddev = parameters_of("random.normal", shape, dtype, mean=mean, stddev=stddev)
        u, v = self._units(shape, dtypes.part_dtype(dtype), 2)
        radius, angle = sqrt(negative(log(subtract(1.0, u)))), multiply(v, 2.0 * math.pi)
        values = complex(multiply(radius, cos(angle)), multiply(radius, sin(angle)))
        return add(multiply(values, stddev), mean)

    @operation
    def truncated_normal(
        self,
        shape: Any = None,
        mean: ArrayLike = 0.0,
        stddev: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Normally distributed floats within two standard deviations, as if others were drawn again: by the inverse of
        the distribution's function, from one uniform each.

        Raises ArgumentError for a number below 0 as ``stddev``.
        """
        out_dtype = float_dtype(dtype, "random.truncated_normal")
        wide = dtypes.compute_dtype(out_dtype)
        check_scale("random.truncated_normal", "stddev", stddev)
        shape, mean, stddev = parameters_of("random.truncated_normal", shape, wide, mean=mean, stddev=stddev)
        t = multiply(self._around_zero(shape, wide), _WITHIN_TWO)
        w = negative(log1p(negative(multiply(t, t))))
        coefficients = _QUANTILE[wide]
        slope = add(multiply(w, coefficients[-1]), coefficients[-2])
        for c in coefficients[-3::-1]:
            slope = add(multiply(slope, w), c)
        values = maximum(minimum(multiply(t, slope), 2.0), -2.0)  # which rounding may pass
        return cast(add(multiply(values, stddev), mean), out_dtype)

    @operation
    def exponential(self, shape: Any = None, rate: ArrayLike = 1.0, dtype: DTypeLike = default_float) -> Tensor:
        """Exponentially distributed floats with mean ``1 / rate``.

        Raises ArgumentError for a number below 0 as ``rate``.
        """
        out_dtype = float_dtype(dtype, "random.exponential")
        wide = dtypes.compute_dtype(out_dtype)
        check_scale("random.exponential", "rate", rate)
        shape, rate = parameters_of("random.exponential", shape, wide, rate=rate)
        (unit,) = self._units(shape, wide)
        return cast(negative(log(subtract(1.0, unit))) / rate, out_dtype)

    @operation
    def laplace(
        self,
        shape: Any = None,
        mean: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Floats of the double exponential distribution around ``mean``, whose standard deviation is ``scale`` times
        sqrt(2).  Raises ArgumentError for a number below 0 as ``scale``."""
        out_dtype = float_dtype(dtype, "random.laplace")
        wide = dtypes.compute_dtype(out_dtype)
        check_scale("random.laplace", "scale", scale)
        shape, mean, scale = parameters_of("random.laplace", shape, wide, mean=mean, scale=scale)
        t = self._around_zero(shape, wide)
        values = negative(multiply(sign(t), log1p(negative(abs(t)))))
        return cast(add(multiply(values, scale), mean), out_dtype)

    @operation
    def gamma(
        self,
        shape: Any = None,
        alpha: Any = 1.0,
        beta: Any = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Gamma distributed floats of shape parameter ``alpha`` and rate ``beta``, whose mean is ``alpha / beta``.

        Gradients flow to both parameters.  Raises ArgumentError where ``alpha`` is negative,
        infinite or NaN.
        """
        out_dtype = float_dtype(dtype, "random.gamma")
        wide = dtypes.compute_dtype(out_dtype)
        check_scale("random.gamma", "alpha", alpha)
        check_scale("random.gamma", "beta", beta)
        shape, alpha, beta = parameters_of("random.gamma", shape, wide, alpha=alpha, beta=beta)
        return cast(self._sampled("random_gamma", shape, alpha) / beta, out_dtype)

    # ---- discrete distributions

    @operation
    def bernoulli(self, p: Any = 0.5, shape: Any = None) -> Tensor:
        """True with probability ``p``; the shape of ``p`` unless ``shape`` is given."""
        if weak_kind(p) is not None and not isinstance(p, Tensor) and not 0 <= p <= 1:
            raise ArgumentError("random.bernoulli", f"p is {p}; a probability lies in [0, 1].")
        chance = as_tensor(p, "random.bernoulli", dtypes.float32 if weak_kind(p) else None)
        if not dtypes.is_float(chance.dtype):
            raise DTypeError("random.bernoulli", f"p is {chance.type}; it must be a float.")
        shape, wide = parameters_of("random.bernoulli", shape, dtypes.compute_dtype(chance.dtype), p=chance)
        return less(self._units(shape, wide.dtype)[0], wide)

    @operation
    def poisson(self, shape: Any = None, lam: Any = 1.0, dtype: DTypeLike = default_int) -> Tensor:
        """Numbers of the Poisson distribution with mean ``lam``, in any dtype of numbers.

        Raises ArgumentError where ``lam`` is negative, NaN or above 2**53.
        """
        out_dtype = number_dtype(dtype, "random.poisson")
        check_scale("random.poisson", "lam", lam)
        shape, lam = parameters_of("random.poisson", shape, dtypes.float64, lam=lam)
        return cast(self._sampled("random_poisson", shape, lam), out_dtype)

    @operation
    def binomial(
        self,
        shape: Any = None,
        counts: Any = 1,
        probs: Any = 0.5,
        dtype: DTypeLike = default_int,
    ) -> Tensor:
        """How many of ``counts`` trials succeed, each with probability ``probs``, in any dtype of numbers.

        Raises ArgumentError where a count is negative or no whole number, or a probability lies outside [0, 1].
        """
        out_dtype = number_dtype(dtype, "random.binomial")
        shape, counts, probs = parameters_of("random.binomial", shape, dtypes.float64, counts=counts, probs=probs)
        return cast(self._sampled("random_binomial", shape, counts, probs), out_dtype)

    @operation
    def randint(self, shape: ShapeLike, minval: int, maxval: int, dtype: DTypeLike = default_int) -> Tensor:
        """Integers in [``minval``, ``maxval``).

        Up to 2**32 values are 64 random bits modulo their number, so that the chance of one is off by less than 2**-64;
        of more all are as likely.  Raises ArgumentError for an empty range, or one that the dtype does not hold.

        Bounds may be tensors of integers that broadcast to the shape; then the numbers are 64 random bits modulo their
        count however many they are, and an empty range raises DivisionError.
        """
        out_dtype = to_dtype(dtype, "random.randint")
        if not dtypes.is_integer(out_dtype):
            raise DTypeError("random.randint", f"{out_dtype} is not an integer dtype.")
        if isinstance(minval, Operators) or isinstance(maxval, Operators):
            return self._between(minval, maxval, to_shape(shape, "random.randint"), out_dtype)
        low, high = (
            type_rules.integer("random.randint", name, v) for name, v in (("minval", minval), ("maxval", maxval))
        )
        limits = np.iinfo(out_dtype)
        if not (low < high and limits.min <= low and high - 1 <= limits.max):
            raise ArgumentError("random.randint", f"[{low}, {high}) is empty or does not fit {out_dtype}.")
        offsets = self._below(high - low, to_shape(shape, "random.randint"))
        return add(cast(offsets, out_dtype), scalar(low, out_dtype, "random.randint"))

    def _between(self, minval: ArrayLike, maxval: ArrayLike, shape: Shape, dtype: np.dtype[Any]) -> Tensor:
        """``randint`` with bounds whose values need not be known."""
        bounds = [as_tensor(bound, "random.randint") for bound in (minval, maxval)]
        for bound in bounds:
            if not dtypes.is_integer(bound.dtype):
                raise DTypeError("random.randint", f"a bound is {bound.type}; it must be of integers.")
        low, high = (cast(bound, dtypes.int64) for bound in bounds)
        count = where(less(low, high), subtract(high, low), 0)
        offsets = remainder(self._words64(shape), broadcast_to(cast(count, dtypes.uint64), shape))
        return cast(add(cast(offsets, dtypes.int64), broadcast_to(low, shape)), dtype)

    @operation
    def _below(self, count: Extent, shape: Shape) -> Tensor:
        """uint64 numbers from 0 on below ``count``."""
        if isinstance(count, int) and count > _FEW_VALUES:
            if count == 2**64:
                return self._words64(shape)
            limit = broadcast_to(scalar(count, dtypes.uint64, "random"), shape)
            return self._sampled("random_below", shape, limit)
        return remainder(self._words64(shape), scalar(count, dtypes.uint64, "random"))

    @operation
    def categorical(self, logits: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = default_int) -> Tensor:
        """Positions along the last axis of ``logits``, drawn with probabilities ``softmax(logits)``.

        ``shape`` extents come in front.  A class whose logit is -inf is never drawn.
        """
        stage = "random.categorical"
        out_dtype = number_dtype(dtype, stage)
        logits = as_tensor(logits, stage)
        if not dtypes.is_float(logits.dtype) or not logits.ndim:
            raise DTypeError(stage, f"logits are {logits.type}; they must be floats with a last axis.")
        if logits.shape[-1] == 0:
            raise ShapeError(stage, f"logits are {logits.type}: there is no class to draw.")
        wide = cast(logits, dtypes.float64)
        largest = max(wide, -1, keepdims=True)
        weights = where(equal(wide, largest), 1.0, exp(subtract(wide, largest)))  # infinite ones, too
        return cast(self._of_weights(weights, (*to_shape(shape, stage), *logits.shape[:-1])), out_dtype)

    @operation
    def _of_weights(self, weights: Tensor, shape: Shape) -> Tensor:
        """Positions (int64) along the last axis with probabilities in proportion to ``weights``, which are float64 and
        not negative; the other axes are the last ones of ``shape``."""
        sums = cumulative_sum(weights, axis=-1)
        total = broadcast_to(sums[..., -1], shape)
        (unit,) = self._units(shape, dtypes.float64)
        return _passed(sums, multiply(unit, total))

    # ---- orders and choices

    def _order(self, count: Extent) -> Tensor:
        """0 to ``count - 1`` in random order: what sorts 64-bit random keys, of which equal ones keep their order."""
        return argsort(self._words64((count,)))

    @operation
    def permutation(self, x: Any) -> Tensor:
        """0 to ``x - 1`` in random order for an int, else the slices of ``x`` along its first axis in random order.

        Sorts 64-bit random keys; equal keys keep their order.
        """
        if weak_kind(x) is int:
            if x < 0:
                raise ArgumentError("random.permutation", f"{x} elements cannot be permuted.")
            return self._order(x)
        x = as_tensor(x, "random.permutation")
        if not x.ndim:
            raise ShapeError("random.permutation", f"{x.type} has no axis to permute.")
        return apply(TABLE["take"], x, self._order(x.shape[0]), axis=0)

    shuffle = permutation

    @entered
    def choice(self, a: ArrayLike, shape: ShapeLike = (), replace: bool = True, p: ArrayLike | None = None) -> Tensor:
        """Elements of ``a`` at random: of 0 to ``a - 1`` for an int, else slices along the first axis.

        Args:
            a: an int, or a tensor with at least one axis.
            shape: the shape of the draws.
            replace: whether an element may come several times.
            p: the probabilities of the elements, which are divided by their sum. Without replacement they are those of
                each next element among those left.

        Returns:
            A tensor of shape ``shape + a.shape[1:]``; int64 for an int.

        Raises:
            ArgumentError: where there are too few elements, or for probabilities that are negative or NaN.
            ShapeError: where there are not as many probabilities as elements.

        >>> hf.random.Generator(1).choice(3, (2, 4)).shape
        (2, 4)
        """
        stage = "random.choice"
        values = None if weak_kind(a) is int else as_tensor(a, stage)
        if values is not None and not values.ndim:
            raise ShapeError(stage, f"{values.type} has no axis to choose along.")
        count: Any = a if values is None else values.shape[0]
        wanted = to_shape(shape, stage)
        size = product(wanted)
        weights = None if p is None else _weights(p, count, 1 if replace else size, stage)
        if (
            isinstance(count, int)
            and isinstance(size, int)
            and size > 0
            and (count < 1 or (size > count and not replace))
        ):
            how = "with" if replace else "without"
            raise ArgumentError(stage, f"{size} elements cannot be chosen from {count} {how} replacement.")
        if replace:
            indices = self._of_weights(weights, wanted) if weights is not None else self._below(count, wanted)
            indices = cast(indices, default_int)
        else:
            order = self._order(count) if weights is None else self._weighted_order(weights)
            indices = reshape(order[:size], wanted)
        return indices if values is None else apply(TABLE["take"], values, indices, axis=0)

    @operation
    def _weighted_order(self, weights: Tensor) -> Tensor:
        """Positions in the order in which exponential clocks with these rates ring."""
        (unit,) = self._units(weights.shape, dtypes.float64)
        clock = negative(log(subtract(1.0, unit))) / weights
        return argsort(where(less_equal(weights, 0.0), math.inf, clock))

    def _sampled(self, name: str, shape: Shape, *parameters: Tensor) -> Tensor:
        """What the sampler of that name makes with parameters, one block of words and more for each element."""
        state = self._drawn(product(shape))
        return apply(TABLE[name], state, *(broadcast_to(x, shape) for x in parameters))


def _passed(sums: Tensor, target: Tensor) -> Tensor:
    """How many of ``sums``, ascending along the last axis, are not above ``target``: less than there are of them."""
    count = sums.shape[-1]
    if isinstance(count, int) and count <= _FEW_CLASSES:
        result = scalar(0, default_int, "random")
        for k in range(count - 1):
            result = add(result, cast(less_equal(broadcast_to(sums[..., k], target.shape), target), default_int))
        return broadcast_to(result, target.shape)
    rows = sums.shape[:-1]
    flat = reshape(sums, (sums.size,))
    first = multiply(reshape(_counted(product(rows)), rows), scalar(count, default_int, "random"))
    result = broadcast_to(scalar(0, default_int, "random"), target.shape)
    last = scalar(count, default_int, "random") - 1
    steps = 0
    while count > 2**steps:
        steps += 1
    # Bisection: the largest number of sums that is known to be passed grows by powers of two.
    for power in reversed(range(steps)):
        reached = add(result, 2**power)
        at = add(minimum(subtract(reached, 1), last), first)
        passes = less_equal(apply(TABLE["take"], flat, at, axis=0), target)
        result = where(passes & less_equal(reached, last), reached, result)
    return result


def _counted(count: Extent) -> Tensor:
    return apply(TABLE["iota"], shape=(count,), axis=0, dtype=default_int)


def _weights(p: ArrayLike, count: object, needed: Extent, stage: str) -> Tensor:
    """Probabilities of ``count`` elements as float64, checked where they are known."""
    weights = as_tensor(p, stage)
    if weights.dtype == dtypes.bool_ or weights.ndim != 1 or weights.shape[0] != count:
        raise ShapeError(stage, f"p is {weights.type}; it must hold a number for each of the {count} elements.")
    values = getattr(weights, "_array", None)
    if isinstance(values, np.ndarray):
        wide = values.astype(np.float64)
        if not ((wide >= 0) & (wide < np.inf)).all():
            raise ArgumentError(stage, "p holds a number that is negative, infinite or NaN.")
        possible = int((wide > 0).sum())
        if isinstance(needed, int) and possible < needed:
            raise ArgumentError(stage, f"p is above 0 for {possible} elements, and {needed} are to be chosen.")
    return cast(weights, dtypes.float64)


def _blocks(size: Extent, words: int) -> Extent:
    return (words * size + 3) // 4


def parameters_of(stage: str, shape: object, dtype: np.dtype[Any], **values: object) -> tuple[Any, ...]:
    """The result's shape, and the parameters as tensors of ``dtype``.  Raises ShapeError where one does not fit."""
    tensors = {name: as_tensor(value, stage, dtype) for name, value in values.items()}
    if shape is None:
        return (broadcast_shapes(*(x.shape for x in tensors.values())), *tensors.values())
    sizes = to_shape(shape, stage)
    for name, x in tensors.items():
        if x.ndim and (x.ndim > len(sizes) or not _fits(x.shape, sizes)):
            raise ShapeError(stage, f"{name} is {x.type}, which does not broadcast to the shape {sizes}.")
    return (sizes, *tensors.values())


def _fits(shape: Shape, wanted: Shape) -> bool:
    try:
        return broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def check_scale(stage: str, name: str, value: Any) -> None:
    """Raises ArgumentError for a Python or NumPy number below 0, or NaN."""
    if weak_kind(value) is not None and not isinstance(value, Tensor) and not value >= 0:
        raise ArgumentError(stage, f"{name} is {value}; it must not be below 0.")


def float_dtype(dtype: DTypeLike, stage: str) -> np.dtype[Any]:
    result = to_dtype(dtype, stage)
    if not dtypes.is_float(result):
        raise DTypeError(stage, f"{result} is not a float dtype; use hf.random.randint for integers.")
    return result


def number_dtype(dtype: DTypeLike, stage: str) -> np.dtype[Any]:
    result = to_dtype(dtype, stage)
    if dtypes.is_bool(result):
        raise DTypeError(stage, "the numbers are not bools; give an integer or a float dtype.")
    return result
