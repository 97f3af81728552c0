"""Distributions that are made of uniform, normal and gamma numbers, or have a sampler of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hybridflow.array.decompositions import cholesky, qr
from hybridflow.array.distributions import Source, check_scale, float_dtype, number_dtype, parameters_of
from hybridflow.array.elementwise import (
    abs,
    add,
    divide,
    equal,
    exp,
    floor,
    less,
    less_equal,
    log,
    log1p,
    maximum,
    minimum,
    multiply,
    negative,
    pow,
    remainder,
    sigmoid,
    sqrt,
    square,
    stop_gradient,
    subtract,
    tan,
    where,
)
from hybridflow.array.linalg import diagonal, matmul
from hybridflow.array.reductions import cumulative_sum, max, sum
from hybridflow.array.shapes import broadcast_shapes, broadcast_to, expand_dims, flip, squeeze, stack
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Shape
from hybridflow.core.promotion import default_float, default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike, ShapeLike
from hybridflow.eager.operands import as_tensor, cast, float_operand, to_shape
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError


class TransformedDistributions(Source):
    """The distributions beside those of ``Source``.

    ``shape`` is that of the result; without one it is what the parameters broadcast to, and parameters broadcast to it.
    """

    # ---- of one uniform number

    def _exponentials(self, shape: Shape, wide: np.dtype[Any]) -> Tensor:
        """Exponential numbers of the mean 1, 0 among them."""
        (unit,) = self._units(shape, wide)
        return negative(log(subtract(1.0, unit)))

    @operation
    def cauchy(
        self,
        shape: Any = None,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Cauchy distributed floats around ``loc``.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            loc: the median.
            scale: half the distance between the quartiles.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for a number below 0 as ``scale``.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("cauchy", dtype)
        check_scale(stage, "scale", scale)
        shape, loc, scale = parameters_of(stage, shape, wide, loc=loc, scale=scale)
        values = tan(multiply(self._around_zero(shape, wide), math.pi / 2))
        return cast(add(multiply(values, scale), loc), out_dtype)

    @operation
    def gumbel(
        self,
        shape: Any = None,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Gumbel distributed floats, the limit of largest values.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            loc: the mode.
            scale: the scale; the standard deviation is 1.28 times as large.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for a number below 0 as ``scale``.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("gumbel", dtype)
        check_scale(stage, "scale", scale)
        shape, loc, scale = parameters_of(stage, shape, wide, loc=loc, scale=scale)
        least = 2.0**-25 if wide == dtypes.float32 else 2.0**-54  # where the exponential number is 0
        values = negative(log(maximum(self._exponentials(shape, wide), least)))
        return cast(add(multiply(values, scale), loc), out_dtype)

    @operation
    def logistic(
        self,
        shape: Any = None,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Floats of the logistic distribution around ``loc``.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            loc: the mean.
            scale: the scale; the standard deviation is 1.81 times as large.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for a number below 0 as ``scale``.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("logistic", dtype)
        check_scale(stage, "scale", scale)
        shape, loc, scale = parameters_of(stage, shape, wide, loc=loc, scale=scale)
        t = self._around_zero(shape, wide)
        return cast(add(multiply(subtract(log1p(t), log1p(negative(t))), scale), loc), out_dtype)

    @operation
    def weibull(
        self,
        shape: Any = None,
        concentration: ArrayLike = 1.0,
        scale: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Weibull distributed floats: exponential ones to the power ``1 / concentration``.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            concentration: the shape parameter, above 0.
            scale: the scale.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for a number below 0 as a parameter.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("weibull", dtype)
        check_scale(stage, "concentration", concentration)
        check_scale(stage, "scale", scale)
        shape, concentration, scale = parameters_of(stage, shape, wide, concentration=concentration, scale=scale)
        values = pow(self._exponentials(shape, wide), divide(1.0, concentration))
        return cast(multiply(values, scale), out_dtype)

    @operation
    def pareto(
        self,
        shape: Any = None,
        alpha: Any = 1.0,
        scale: Any = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Pareto distributed floats from ``scale`` on.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            alpha: the exponent of the tail, above 0.
            scale: the least number.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for a number below 0 as a parameter.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("pareto", dtype)
        check_scale(stage, "alpha", alpha)
        check_scale(stage, "scale", scale)
        shape, alpha, scale = parameters_of(stage, shape, wide, alpha=alpha, scale=scale)
        return cast(multiply(exp(divide(self._exponentials(shape, wide), alpha)), scale), out_dtype)

    @operation
    def rayleigh(self, shape: Any = None, scale: Any = 1.0, dtype: DTypeLike = default_float) -> Tensor:
        """Rayleigh distributed floats: the length of two normal numbers.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            scale: the standard deviation of the normal numbers.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for a number below 0 as ``scale``.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("rayleigh", dtype)
        check_scale(stage, "scale", scale)
        shape, scale = parameters_of(stage, shape, wide, scale=scale)
        return cast(multiply(sqrt(multiply(self._exponentials(shape, wide), 2.0)), scale), out_dtype)

    @operation
    def triangular(
        self,
        shape: Any = None,
        left: Any = 0.0,
        mode: Any = 0.5,
        right: Any = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Floats whose density rises from ``left`` to ``mode`` and falls to ``right``.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            left: the least number.
            mode: where the density is the largest.
            right: the largest number.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for numbers that are not in this order.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("triangular", dtype)
        if all(isinstance(x, (int, float)) for x in (left, mode, right)) and not left <= mode <= right:
            raise ArgumentError(stage, f"left, mode and right are {left}, {mode} and {right}. Expected this order.")
        shape, left, mode, right = parameters_of(stage, shape, wide, left=left, mode=mode, right=right)
        (unit,) = self._units(shape, wide)
        width, rise, fall = subtract(right, left), subtract(mode, left), subtract(right, mode)
        rising = less(multiply(unit, width), rise)
        area = where(
            rising, multiply(unit, multiply(width, rise)), multiply(subtract(1.0, unit), multiply(width, fall))
        )
        some = area > 0.0
        length = where(some, sqrt(where(some, area, 1.0)), 0.0)
        return cast(where(rising, add(left, length), subtract(right, length)), out_dtype)

    @operation
    def geometric(self, shape: Any = None, p: ArrayLike = 0.5, dtype: DTypeLike = default_int) -> Tensor:
        """How many trials there are up to the first success, each with probability ``p``.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            p: the probability of success, above 0, up to 1.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``, of numbers from 1 on.

        Raises:
            ArgumentError: for a number that is no such probability.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        out_dtype = number_dtype(dtype, "random.geometric")
        if isinstance(p, (int, float)) and not 0 < p <= 1:
            raise ArgumentError("random.geometric", f"p is {p}. Expected a probability above 0.")
        shape, chance = parameters_of("random.geometric", shape, dtypes.float64, p=p)
        rate = negative(log1p(negative(chance)))
        trials = add(floor(divide(self._exponentials(shape, dtypes.float64), rate)), 1.0)
        return cast(broadcast_to(where(equal(chance, 1.0), 1.0, trials), shape), out_dtype)

    # ---- of normal numbers

    @operation
    def lognormal(
        self,
        shape: ShapeLike | None = None,
        mean: ArrayLike = 0.0,
        stddev: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Floats whose logarithms are normally distributed.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            mean: the mean of the logarithms.
            stddev: their standard deviation.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for a number below 0 as ``stddev``.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        _stage, out_dtype, wide = _dtypes("lognormal", dtype)
        return cast(exp(self.normal(shape, mean, stddev, wide)), out_dtype)

    @operation
    def maxwell(self, shape: Any = None, scale: ArrayLike = 1.0, dtype: DTypeLike = default_float) -> Tensor:
        """Maxwell distributed floats: the length of three normal numbers.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            scale: the standard deviation of the normal numbers.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for a number below 0 as ``scale``.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("maxwell", dtype)
        check_scale(stage, "scale", scale)
        shape, scale = parameters_of(stage, shape, wide, scale=scale)
        length = sqrt(sum(square(self.normal((3, *shape), dtype=wide)), axis=0))
        return cast(multiply(length, scale), out_dtype)

    @operation
    def wald(
        self,
        shape: Any = None,
        mean: ArrayLike = 1.0,
        scale: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Floats of Wald's distribution, the inverse Gaussian one: when a random walk first reaches a place.

        There are no derivatives.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            mean: the mean, above 0.
            scale: the shape parameter, above 0.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: for a number below 0 as a parameter.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("wald", dtype)
        check_scale(stage, "mean", mean)
        check_scale(stage, "scale", scale)
        shape, mean, scale = parameters_of(stage, shape, wide, mean=mean, scale=scale)
        mean, scale = stop_gradient(mean), stop_gradient(scale)  # which root is taken depends on them, too
        y = divide(multiply(square(self.normal(shape, dtype=wide)), mean), multiply(2.0, scale))
        # mean times the smaller root r of r**2 - 2 (1 + y) r + 1, as the inverse of the larger one, without cancelling
        root = add(add(y, 1.0), sqrt(multiply(y, add(y, 2.0))))
        small = divide(mean, root)
        (unit,) = self._units(shape, wide)
        return cast(where(less_equal(multiply(unit, add(mean, small)), mean), small, multiply(mean, root)), out_dtype)

    @operation
    def multivariate_normal(
        self, mean: ArrayLike, cov: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = default_float
    ) -> Tensor:
        """Normally distributed vectors, by the Cholesky factor of their covariance.

        Args:
            mean: the mean, along the last axis; other axes are of several distributions.
            cov: the covariance, along the last two axes.
            shape: the shape in front of the vectors; what the other axes of the parameters broadcast to unless given.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``dtype`` with ``shape`` and an axis for the elements of a vector.

        Raises:
            LinAlgError: for a covariance that is not positive definite.
            ShapeError: where the parameters do not fit each other.
        """
        stage, out_dtype, wide = _dtypes("multivariate_normal", dtype)
        mean, cov = as_tensor(mean, stage, wide), as_tensor(cov, stage, wide)
        if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
            raise ShapeError(stage, f"mean is {mean.type}, and cov is {cov.type}. Expected a vector and its matrix.")
        rows = broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if shape is None else to_shape(shape, stage)
        factor = cholesky(cast(cov, wide))
        z = self.normal((*rows, mean.shape[-1]), dtype=wide)
        moved = squeeze(matmul(factor, expand_dims(z, -1)), -1)
        return cast(add(moved, cast(mean, wide)), out_dtype)

    @operation
    def orthogonal(self, n: int, shape: ShapeLike = (), dtype: DTypeLike = default_float) -> Tensor:
        """Orthogonal matrices, of which every rotation and reflection is as likely.

        Args:
            n: the number of rows and columns.
            shape: the shape in front of the matrices.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``dtype`` of the shape (*shape, n, n).

        Raises:
            ShapeError: for a negative extent.
        """
        stage, out_dtype, wide = _dtypes("orthogonal", dtype)
        q, r = qr(self.normal((*to_shape(shape, stage), *to_shape((n, n), stage)), dtype=wide))
        return cast(multiply(q, expand_dims(where(less(diagonal(r), 0.0), -1.0, 1.0), -2)), out_dtype)

    # ---- of gamma numbers

    def _log_gammas(self, shape: Shape, alpha: Tensor) -> Tensor:
        """Logarithms of gamma numbers, for small ``alpha`` too, whose numbers themselves have no floats: those of
        ``alpha + 1`` times a uniform number to the power ``1 / alpha``."""
        alpha = broadcast_to(alpha, shape)
        larger = log(self._sampled("random_gamma", shape, add(alpha, 1.0)))
        (unit,) = self._units(shape, alpha.dtype)
        return add(larger, divide(log(subtract(1.0, unit)), alpha))

    @operation
    def beta(self, shape: Any = None, a: Any = 1.0, b: Any = 1.0, dtype: DTypeLike = default_float) -> Tensor:
        """Beta distributed floats in [0, 1], whose mean is ``a / (a + b)``.

        Gradients flow to ``a`` and ``b``.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            a: the first shape parameter, above 0.
            b: the second one.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: where a parameter is negative, infinite or NaN.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("beta", dtype)
        check_scale(stage, "a", a)
        check_scale(stage, "b", b)
        shape, a, b = parameters_of(stage, shape, wide, a=a, b=b)
        x, y = self._log_gammas(shape, a), self._log_gammas(shape, b)
        return cast(sigmoid(subtract(x, y)), out_dtype)

    @operation
    def dirichlet(self, alpha: ArrayLike, shape: ShapeLike = (), dtype: DTypeLike = default_float) -> Tensor:
        """Dirichlet distributed vectors: shares that sum to 1.

        Gradients flow to ``alpha``.

        Args:
            alpha: the concentrations, above 0, along the last axis.
            shape: the shape in front of the axes of ``alpha``.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``dtype`` with ``shape`` and the axes of ``alpha``.

        Raises:
            ArgumentError: where a concentration is negative, infinite or NaN.
            ShapeError: for concentrations without an axis.
        """
        stage, out_dtype, wide = _dtypes("dirichlet", dtype)
        alpha = cast(as_tensor(alpha, stage, wide), wide)
        if not alpha.ndim or alpha.shape[-1] == 0:
            raise ShapeError(stage, f"alpha is {alpha.type}. Expected an axis of concentrations.")
        logs = self._log_gammas((*to_shape(shape, stage), *alpha.shape), alpha)
        parts = exp(subtract(logs, max(logs, -1, keepdims=True)))
        return cast(divide(parts, sum(parts, -1, keepdims=True)), out_dtype)

    @operation
    def chi_square(self, shape: Any = None, df: ArrayLike = 1.0, dtype: DTypeLike = default_float) -> Tensor:
        """Chi-square distributed floats: the sum of squares of ``df`` normal numbers.

        Gradients flow to ``df``.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            df: the degrees of freedom.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: where ``df`` is negative, infinite or NaN.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("chi_square", dtype)
        check_scale(stage, "df", df)
        shape, df = parameters_of(stage, shape, wide, df=df)
        return cast(multiply(self._sampled("random_gamma", shape, multiply(df, 0.5)), 2.0), out_dtype)

    @operation
    def f(
        self,
        shape: Any = None,
        dfnum: ArrayLike = 1.0,
        dfden: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Floats of Fisher's F distribution: the ratio of two chi-square numbers, each over its degrees of freedom.

        Gradients flow to the parameters.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            dfnum: the degrees of freedom of the numerator, above 0.
            dfden: those of the denominator.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: where a parameter is negative, infinite or NaN.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("f", dtype)
        check_scale(stage, "dfnum", dfnum)
        check_scale(stage, "dfden", dfden)
        shape, dfnum, dfden = parameters_of(stage, shape, wide, dfnum=dfnum, dfden=dfden)
        above, below = (self._log_gammas(shape, multiply(df, 0.5)) for df in (dfnum, dfden))
        return cast(multiply(exp(subtract(above, below)), divide(dfden, dfnum)), out_dtype)

    @operation
    def student_t(
        self,
        shape: Any = None,
        df: ArrayLike = 1.0,
        loc: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Floats of Student's t distribution.

        Gradients flow to the parameters.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            df: the degrees of freedom, above 0.
            loc: the median.
            scale: the scale.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: where ``df`` is negative, infinite or NaN, or ``scale`` is below 0.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("student_t", dtype)
        check_scale(stage, "df", df)
        check_scale(stage, "scale", scale)
        shape, df, loc, scale = parameters_of(stage, shape, wide, df=df, loc=loc, scale=scale)
        half = multiply(df, 0.5)
        stretch = exp(multiply(subtract(log(half), self._log_gammas(shape, half)), 0.5))
        values = multiply(self.normal(shape, dtype=wide), stretch)
        return cast(add(multiply(values, scale), loc), out_dtype)

    @operation
    def ball(self, d: int, p: float = 2.0, shape: ShapeLike = (), dtype: DTypeLike = default_float) -> Tensor:
        """Points of the unit ball of ``d`` dimensions, all equally likely.

        Args:
            d: the number of dimensions.
            p: the norm in which the ball is one: 1 or more.
            shape: the shape in front of the points.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``dtype`` of the shape (*shape, d).

        Raises:
            ArgumentError: for a norm below 1.
            ShapeError: for a negative extent.
        """
        stage, out_dtype, wide = _dtypes("ball", dtype)
        if not 1 <= p < math.inf:
            raise ArgumentError(stage, f"p is {p}. Expected a finite number of 1 or more.")
        rows = to_shape(shape, stage)
        size = (*rows, *to_shape((d,), stage))
        powers = self._sampled("random_gamma", size, as_tensor(1 / p, stage, wide))  # of |x|**p
        (unit,) = self._units(size, wide)
        points = multiply(pow(powers, 1 / p), where(less(unit, 0.5), -1.0, 1.0))
        whole = add(sum(powers, -1), self._exponentials(rows, wide))
        return cast(divide(points, expand_dims(pow(whole, 1 / p), -1)), out_dtype)

    # ---- samplers of their own, and what is made of them

    @operation
    def von_mises(
        self,
        shape: Any = None,
        loc: Any = 0.0,
        concentration: Any = 1.0,
        dtype: DTypeLike = default_float,
    ) -> Tensor:
        """Angles in [-pi, pi] of the von Mises distribution, the normal one on a circle.

        Gradients flow to ``loc``.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            loc: the mean direction.
            concentration: how closely angles lie together; 0 makes all equally likely.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: where ``concentration`` is negative, infinite or NaN.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage, out_dtype, wide = _dtypes("von_mises", dtype)
        check_scale(stage, "concentration", concentration)
        shape, loc, concentration = parameters_of(stage, shape, wide, loc=loc, concentration=concentration)
        angle = add(self._sampled("random_von_mises", shape, concentration), loc)
        turned = subtract(remainder(add(angle, math.pi), 2 * math.pi), math.pi)
        return cast(where(less_equal(abs(angle), math.pi), angle, turned), out_dtype)

    @operation
    def hypergeometric(
        self,
        shape: Any = None,
        ngood: object = 1,
        nbad: object = 1,
        nsample: object = 1,
        dtype: DTypeLike = default_int,
    ) -> Tensor:
        """How many good ones are among ``nsample`` that are taken, of ``ngood`` good and ``nbad`` bad ones.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            ngood: how many are good, up to 10**9.
            nbad: how many are bad.
            nsample: how many are taken.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: where a count is negative, no whole number or too large, or more are taken than there are.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage = "random.hypergeometric"
        out_dtype = number_dtype(dtype, stage)
        shape, *urn = parameters_of(stage, shape, dtypes.float64, ngood=ngood, nbad=nbad, nsample=nsample)
        return cast(self._sampled("random_hypergeometric", shape, *urn), out_dtype)

    @operation
    def negative_binomial(
        self, shape: Any = None, n: Any = 1.0, p: Any = 0.5, dtype: DTypeLike = default_int
    ) -> Tensor:
        """How many trials fail before ``n`` have succeeded, each with probability ``p``.

        Args:
            shape: the shape of the result; by default the broadcast shape of the parameters.
            n: the number of successes, above 0; no whole number need be.
            p: the probability of success, above 0, up to 1.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``shape`` and ``dtype``.

        Raises:
            ArgumentError: where ``n`` is negative, infinite or NaN, or ``p`` is 0 or no probability.
            ShapeError: for a negative extent, or where parameters do not broadcast to ``shape``.
        """
        stage = "random.negative_binomial"
        out_dtype = number_dtype(dtype, stage)
        shape, n, p = parameters_of(stage, shape, dtypes.float64, n=n, p=p)
        mean = multiply(self._sampled("random_gamma", shape, n), divide(subtract(1.0, p), p))
        return cast(self._sampled("random_poisson", shape, mean), out_dtype)

    @operation
    def multinomial(
        self, counts: ArrayLike, probs: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = default_int
    ) -> Tensor:
        """How many of ``counts`` trials come to each outcome, whose probabilities ``probs`` are.

        Args:
            counts: the number of trials; a number or a tensor of them.
            probs: the probabilities of the outcomes, along the last axis; what they sum to is divided out.
            shape: the shape in front of the outcomes; what the parameters broadcast to unless given.
            dtype: the dtype of the result.

        Returns:
            A tensor of ``dtype`` with ``shape`` and an axis for the outcomes.

        Raises:
            ArgumentError: where a count is negative or no whole number, or a probability is negative.
            ShapeError: for probabilities without an axis.
        """
        stage = "random.multinomial"
        out_dtype = number_dtype(dtype, stage)
        probs = cast(float_operand(probs, stage), dtypes.float64)
        if not probs.ndim or not isinstance(probs.shape[-1], int) or probs.shape[-1] == 0:
            raise ShapeError(stage, f"probs are {probs.type}. Expected an axis with a known number of outcomes.")
        rows, counts = parameters_of(stage, shape, dtypes.float64, counts=counts)
        rows = broadcast_shapes(rows, probs.shape[:-1]) if shape is None else rows
        rest = flip(cumulative_sum(flip(probs, -1), axis=-1), -1)  # of an outcome and those behind it
        left, drawn = broadcast_to(counts, rows), []
        for k in range(probs.shape[-1] - 1):
            share = where(rest[..., k] > 0.0, minimum(divide(probs[..., k], rest[..., k]), 1.0), 0.0)
            number = self._sampled("random_binomial", rows, left, share)
            drawn.append(number)
            left = subtract(left, number)
        return cast(stack([*drawn, left], axis=-1), out_dtype)


def _dtypes(name: str, dtype: DTypeLike) -> tuple[str, np.dtype[Any], np.dtype[Any]]:
    """The stage of errors, the dtype of the result, and that in which it is computed."""
    stage = f"random.{name}"
    out_dtype = float_dtype(dtype, stage)
    return stage, out_dtype, dtypes.compute_dtype(out_dtype)
