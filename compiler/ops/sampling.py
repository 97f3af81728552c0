"""Samplers by rejection: gamma, Poisson, binomial, hypergeometric and von Mises numbers, and integers below a limit.

Element i has blocks of random words of its own: those of the state's counter plus i, whose high half counts the tries
from 1 on (``random_bits`` has 0 there).  So what an element is follows from the state and its own parameters alone,
whatever else is drawn beside it.  Vectors go on trying until all of their lanes are done.  A draw of n elements moves
the counter on by n.

Gamma: Marsaglia and Tsang, A simple method for generating gamma variables (2000).  Poisson: inversion below 10, above
PTRS (Hörmann, The transformed rejection method for generating Poisson random variables, 1993).  Binomial: inversion,
and BTRS (Hörmann, The generation of binomial random variates, 1993).  Their probabilities are taken as deviances.
These are exact to some ulp where differences of logarithms of factorials have no digit left (Loader, Fast and accurate
computation of binomial probabilities, 2000).  Hypergeometric: HRUA (Stadlober, The ratio of uniforms approach for
generating discrete random variates, 1990).  Von Mises: Best and Fisher, Efficient simulation of the von Mises
distribution (1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.dtypes import DType
from hybridflow.compiler.ir.results import types_agree
from hybridflow.compiler.ir.types import TensorType, product, same_shape
from hybridflow.compiler.ops import elementary, philox, samples, type_rules
from hybridflow.compiler.ops.batching_rules import broadcast_batched
from hybridflow.compiler.ops.elementary_common import while_any
from hybridflow.compiler.ops.emitter_protocol import ElementSource, Emit, Val
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.compiler.program import Check
from hybridflow.errors import ArgumentError, ShapeError

_MOST_TRIES = 1000  # none takes so many: of no sampler does a try fail with a chance above 1/2

# ---- loops and uniform numbers


def _tries(e: Emit, wanted: Val, result: Val, attempt: Callable[[Val], tuple[Val, Val]]) -> Val:
    """``result`` in lanes that are not ``wanted``; in the others that of the first ``attempt`` which comes with True.
    An attempt is a function of its number, from 1 on, in uint64."""

    def again(number: Val, open: Val, kept: Val) -> Val:
        return e.and_(open, e.lt(number, _MOST_TRIES))

    def iteration(number: Val, open: Val, kept: Val) -> list[Val]:
        following = e.add(number, 1)
        value, accepted = attempt(following)
        return [following, e.and_(open, e.not_(accepted)), e.select(open, value, kept)]

    return while_any(e, [e.const(0, dt.uint64), wanted, result], again, iteration)[2]


def _of_32(e: Emit, word: Val) -> Val:
    """A float32 in (0, 1] from the low half of a word."""
    return e.fma(e.convert(e.convert(word, dt.uint32), dt.float32), 2.0**-32, 2.0**-33)


def _of_53(e: Emit, low: Val, high: Val) -> Val:
    """A float64 in (0, 1] from the low halves of two words."""
    whole = e.lshr(_joined(e, low, high), 11)
    return e.fma(e.convert(whole, dt.float64), 2.0**-53, 2.0**-54)


def _joined(e: Emit, low: Val, high: Val) -> Val:
    return e.or_(e.and_(low, 0xFFFFFFFF), e.shl(high, 32))


def _uniforms(e: Emit, seed: Val, counter: Val, number: Val, dtype: DType, count: int) -> list[Val]:
    """Up to four numbers in (0, 1] for a try."""
    if dtype == dt.float32:
        return [_of_32(e, word) for word in philox.block(e, seed, counter, number)[:count]]
    numbers: list[Val] = []
    for part in range(-(-count // 2)):
        a, b, c, d = philox.block(e, seed, counter, number, e.const(part, dt.uint64))
        numbers += [_of_53(e, a, b), _of_53(e, c, d)]
    return numbers[:count]


def _uniforms_of(state: np.ndarray, counter: np.ndarray, number: int, dtype: object, count: int) -> list[np.ndarray]:
    """``_uniforms`` in NumPy."""
    if dtype == np.float32:
        words = philox.philox(counter, int(state[0]), number).astype(np.float64)
        return [((words[..., k] + 0.5) * 2.0**-32).astype(np.float32) for k in range(count)]
    numbers: list[np.ndarray] = []
    for part in range(-(-count // 2)):
        wide = philox.philox(counter, int(state[0]), number, part).astype(np.uint64)
        for k in (0, 2):
            whole = (wide[..., k] | wide[..., k + 1] << np.uint64(32)) >> np.uint64(11)
            numbers.append((whole.astype(np.float64) + 0.5) * 2.0**-53)
    return numbers[:count]


# ---- probabilities

_TABLED = 16
# log k! - (k log k - k + log(2 pi k) / 2), and for larger k its series
_STIRLING_ERRORS = np.array(
    [
        *(0.0, 0.08106146679532726, 0.0413406959554093, 0.02767792568499834),
        *(0.020790672103765093, 0.016644691189821193, 0.013876128823070748, 0.01189670994589177),
        *(0.010411265261972096, 0.009255462182712733, 0.00833056343336287, 0.007573675487951841),
        *(0.00694284010720953, 0.006408994188004207, 0.0059513701127588475, 0.005554733551962801),
    ]
)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)


def _stirling_error(e: Emit, k: Val) -> Val:
    small = e.lt(k, float(_TABLED))
    place = e.convert(e.select(small, k, 0.0), dt.int64)
    tabled = e.gather(e.table(_STIRLING_ERRORS, "stirling_errors"), dt.float64, place)
    inverse = e.div(1.0, e.maximum(k, 1.0))
    square = e.mul(inverse, inverse)
    series = e.const(_STIRLING[-1], dt.float64)
    for c in _STIRLING[-2::-1]:
        series = e.fma(series, square, c)
    return e.select(small, tabled, e.mul(series, inverse))


def _stirling_error_of(k: np.ndarray) -> np.ndarray:
    inverse = 1 / np.maximum(k, 1)
    series = np.polyval(_STIRLING[::-1], inverse**2) * inverse
    return np.where(k < _TABLED, _STIRLING_ERRORS[np.minimum(k, _TABLED - 1).astype(np.int64)], series)


def _deviance(e: Emit, k: Val, mean: Val) -> Val:
    """k log(k / mean) + mean - k, for k of 1 or more."""
    d = e.div(e.sub(mean, k), k)
    return e.mul(k, e.sub(d, elementary.log1p(e, d)))


def _deviance_of(k: np.ndarray, mean: np.ndarray) -> np.ndarray:
    d = (mean - k) / k
    return k * (d - np.log1p(d))


# ---- ops over a state and parameters


def _infer(name: str, dtypes: tuple[DType, ...]) -> Callable[..., TensorType]:
    def infer(state: TensorType, *parameters: TensorType) -> TensorType:
        philox.check_state(name, state)
        type_rules.check_dtype(name, parameters[0], frozenset(dtypes), "the parameter")
        many = state.shape[:-1]
        for p in parameters:
            if not types_agree(p, parameters[0]) or not same_shape(p.shape[: len(many)], many):
                raise ShapeError(name, f"the parameters are {p} and {parameters[0]} for the state {state}.")
        return parameters[0]

    return infer


def _define(
    name: str,
    dtypes: tuple[DType, ...],
    doc: str,
    sample: Callable[..., Val],
    reference: Callable[..., np.ndarray],
    wrong: Callable[..., Val],
    is_wrong: Callable[..., np.ndarray],
    message: str,
    examples: Callable[[Any, Any, Any], tuple[np.ndarray, ...]],
    arity: int = 2,
    vjp: object = NOT_DIFFERENTIABLE,
) -> None:
    """An op over a state and parameters of its result's type; many states have parameters with their axes in front."""

    def element(g: ElementSource, index: tuple[Any, ...]) -> Val:
        e, many = g.e, len(g.types[0].shape) - 1
        draws = product(g.out.shape[many:])
        place = g.value(g.linear(index) % draws if many else g.linear(index))
        seed, start = g.load(0, (*index[:many], 0)), g.load(0, (*index[:many], 1))
        parameters = [g.load(k, index) for k in range(1, arity)]
        e.raise_if(wrong(e, *parameters), Check(ArgumentError.__name__, name, message, e.where))
        counter = e.add(start, e.convert(place, dt.uint64))
        return e.call(name, lambda e, *v: [sample(e, *v)], seed, counter, *parameters)[0]

    def refer(state: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        if np.any(is_wrong(*parameters)):
            raise ArgumentError(name, message)
        event_shape = parameters[0].shape[state.ndim - 1 :]
        size = math.prod(event_shape)
        result = np.empty((math.prod(state.shape[:-1]), size), parameters[0].dtype)
        flat = [p.reshape(result.shape) for p in parameters]
        with np.errstate(all="ignore"):
            for k, one in enumerate(state.reshape(-1, 2)):
                counter = one[1] + np.arange(size, dtype=np.uint64)
                result[k] = reference(one, counter, *(p[k] for p in flat))
        return result.reshape(parameters[0].shape)

    def make_samples(rng: np.random.Generator, dtype: object) -> list[samples.Sample]:
        one = np.array([7, 2**64 - 3], np.uint64)
        three = np.array([[7, 1], [2**64 - 1, 0], [5, 2**33]], np.uint64)
        cases = [(one, s) for s in ((), (0,), (5,), (3, 67), (130,))] + [(three, (3,)), (three, (3, 9))]
        return [((state, *map(np.asarray, examples(rng, dtype, shape))), {}) for state, shape in cases]

    define(
        name,
        Kind.CREATE,
        arity,
        doc=doc,
        infer=_infer(name, dtypes),
        reference=refer,
        element=element,
        batch=broadcast_batched(lambda size, attrs: dict(attrs)),
        raises=lambda types, attrs: True,
        vjp=vjp,
        samples=make_samples,
        dtypes=dtypes,
    )


# ---- gamma

_FLAT = {dt.float32: 2.0**14, dt.float64: 2.0**40}  # from here on the chance that a try fails is nothing beside an ulp


def _gamma(e: Emit, seed: Val, counter: Val, shape: Val) -> Val:
    dtype = shape.dtype
    small = e.lt(shape, 1.0)
    d = e.sub(e.select(small, e.add(shape, 1.0), shape), e.const(1 / 3, dtype))
    c = e.div(1.0, e.sqrt(e.mul(d, 9.0)))
    flat = e.ge(d, _FLAT[dtype])
    zero, one = e.const(0.0, dtype), e.const(1.0, dtype)

    def attempt(number: Val) -> tuple[Val, Val]:
        u, angle, chance, power = _uniforms(e, seed, counter, number, dtype, 4)
        radius = e.sqrt(e.mul(elementary.log(e, u), -2.0))
        z = e.mul(radius, elementary.cos(e, e.mul(angle, 2.0 * math.pi)))
        root = e.fma(c, z, 1.0)
        inside = e.gt(root, zero)
        root = e.select(inside, root, one)
        v = e.mul(e.mul(root, root), root)
        bound = e.fma(e.mul(z, 0.5), z, e.mul(d, e.add(e.sub(1.0, v), elementary.log(e, v))))
        accepted = e.or_(e.lt(elementary.log(e, chance), bound), flat)
        factor = elementary.exp(e, e.div(elementary.log(e, power), shape))
        value = e.mul(e.mul(d, v), e.select(small, factor, one))
        return value, e.and_(inside, accepted)

    drawn = e.gt(shape, zero)
    return _tries(e, drawn, zero, attempt)


def _gamma_of(state: np.ndarray, counter: np.ndarray, shape: np.ndarray) -> np.ndarray:
    dtype = shape.dtype
    wide = shape.astype(np.float64)
    d = np.where(wide < 1, wide + 1, wide) - 1 / 3
    c = 1 / np.sqrt(9 * d)
    result, open = np.zeros(shape.shape), shape > 0
    for number in range(1, _MOST_TRIES + 1):
        if not open.any():
            break
        u, angle, chance, power = (x.astype(np.float64) for x in _uniforms_of(state, counter, number, dtype, 4))
        z = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * angle)
        root = 1 + c * z
        v = np.where(root > 0, root, 1) ** 3
        accepted = (np.log(chance) < z * z / 2 + d * (1 - v + np.log(v))) | (d >= _FLAT[dtype])
        value = d * v * np.where(wide < 1, np.exp(np.log(power) / wide), 1)
        result = np.where(open, value, result)
        open &= ~(accepted & (root > 0))
    return result.astype(dtype)


def _not_finite(e: Emit, x: Val) -> Val:
    """Below 0, infinite or NaN."""
    return e.not_(e.and_(e.ge(x, e.const(0.0, x.dtype)), e.lt(x, e.const(math.inf, x.dtype))))


def _is_not_finite(x: np.ndarray) -> np.ndarray:
    return np.asarray(~((x >= 0) & (x < np.inf)))


def _gamma_vjp(b: Builder, g: Value, out: Value, state: object, shape: Any) -> tuple[Cotangent, ...]:
    """Implicit: a sample keeps its place in the distribution, P(a, x), so dx/da = -(dP/da) / (dP/dx)."""
    a, x = (type_rules.as_dtype(b, value, dt.float64) for value in (shape, out))
    some = b.greater(x, b.full(0, like=x.type))
    inside = b.where(some, x, b.full(1, like=x.type))
    powers = b.multiply(b.subtract(a, b.full(1, like=a.type)), b.log(inside))
    density = b.exp(b.subtract(b.subtract(powers, inside), b.log_gamma(a)))
    slope = b.divide(b.negative(b.gammainc_da(a, inside)), density)
    slope = b.where(some, slope, b.full(0, like=x.type))
    return None, b.multiply(g, type_rules.as_dtype(b, slope, out.type.dtype))


_define(
    "random_gamma",
    (dt.float32, dt.float64),
    "Gamma numbers of scale 1 from a state and shapes; 0 for a shape of 0.",
    _gamma,
    _gamma_of,
    _not_finite,
    _is_not_finite,
    "alpha holds a number that is negative, infinite or NaN.",
    lambda rng, dtype, shape: (np.exp(rng.uniform(-3, 8, shape)).astype(dtype),),
    vjp=_gamma_vjp,
)


# ---- Poisson

_LARGE = 10.0  # means from which on inversion takes too many steps
_MOST_STEPS = 110.0  # of an inversion: what lies above has no chance that a float64 tells from 0


def _inverted(e: Emit, wanted: Val, u: Val, first: Val, ratio: Callable[[Val], Val]) -> Val:
    """The least k whose cumulative probability is above ``u``; ``first`` is that of 0, ``ratio(k)`` what makes
    the probability of k from that of k - 1."""

    def again(k: Val, chance: Val, total: Val) -> Val:
        return e.and_(wanted, e.and_(e.ge(u, total), e.lt(k, _MOST_STEPS)))

    def iteration(k: Val, chance: Val, total: Val) -> list[Val]:
        open = again(k, chance, total)
        following = e.add(k, 1.0)
        chance = e.mul(chance, ratio(following))
        return [e.select(open, following, k), chance, e.select(open, e.add(total, chance), total)]

    return while_any(e, [e.const(0.0, dt.float64), first, first], again, iteration)[0]


def _inverted_of(u: np.ndarray, first: np.ndarray, ratio: Callable[[float], np.ndarray]) -> np.ndarray:
    k, chance, total = np.zeros_like(u), first.copy(), first.copy()
    for step in range(1, int(_MOST_STEPS) + 1):
        open = u >= total
        chance = chance * ratio(step)
        k = np.where(open, step, k)
        total = np.where(open, total + chance, total)
    return k


def _poisson(e: Emit, seed: Val, counter: Val, mean: Val) -> Val:
    zero = e.const(0.0, dt.float64)
    large = e.ge(mean, _LARGE)
    some = e.gt(mean, zero)
    [u] = _uniforms(e, seed, counter, e.const(1, dt.uint64), dt.float64, 1)
    low = e.select(large, 1.0, mean)
    by_steps = _inverted(e, e.and_(some, e.not_(large)), u, elementary.exp(e, e.neg(low)), lambda k: e.div(low, k))
    mu = e.select(large, mean, _LARGE)
    b = e.fma(e.sqrt(mu), 2.53, 0.931)
    a = e.fma(b, 0.02483, -0.059)
    scale = e.add(e.div(1.1328, e.sub(b, 3.4)), 1.1239)
    quick = e.sub(0.9277, e.div(3.6224, e.sub(b, 2.0)))

    def attempt(number: Val) -> tuple[Val, Val]:
        u, v = _uniforms(e, seed, counter, number, dt.float64, 2)
        u, us, spread = _hat(e, u, a, b)
        k = e.floor(e.fma(spread, u, e.add(mu, 0.43)))
        at = e.maximum(k, 1.0)
        left = e.mul(e.mul(v, e.sqrt(e.mul(at, 2 * math.pi))), e.div(scale, _density(e, us, a, b)))
        right = e.neg(e.add(_stirling_error(e, at), _deviance(e, at, mu)))
        right = e.select(e.ge(k, 1.0), right, e.neg(mu))
        left = e.select(e.ge(k, 1.0), left, e.mul(v, e.div(scale, _density(e, us, a, b))))
        accepted = e.and_(e.ge(k, zero), e.le(elementary.log(e, left), right))
        return k, e.or_(e.and_(e.ge(us, 0.07), e.le(v, quick)), accepted)

    return _tries(e, large, e.select(some, by_steps, zero), attempt)


def _hat(e: Emit, u: Val, a: Val, b: Val) -> tuple[Val, Val, Val]:
    """Of Hörmann's transformed rejection: u - 1/2, its distance from the ends, and what u is stretched by."""
    u = e.sub(u, 0.5)
    us = e.maximum(e.sub(0.5, e.abs(u)), 2.0**-54)
    return u, us, e.add(e.div(e.mul(a, 2.0), us), b)


def _density(e: Emit, us: Val, a: Val, b: Val) -> Val:
    return e.add(e.div(a, e.mul(us, us)), b)


def _poisson_of(state: np.ndarray, counter: np.ndarray, mean: np.ndarray) -> np.ndarray:
    large = mean >= _LARGE
    [u] = _uniforms_of(state, counter, 1, np.float64, 1)
    low = np.where(large, 1.0, mean)
    result = np.where(mean > 0, _inverted_of(u, np.exp(-low), lambda k: low / k), 0.0)
    mu, open = np.where(large, mean, _LARGE), large
    b = 0.931 + 2.53 * np.sqrt(mu)
    a = -0.059 + 0.02483 * b
    scale, quick = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    for number in range(1, _MOST_TRIES + 1):
        if not open.any():
            break
        u, v = _uniforms_of(state, counter, number, np.float64, 2)
        u = u - 0.5
        us = np.maximum(0.5 - abs(u), 2.0**-54)
        k = np.floor((2 * a / us + b) * u + mu + 0.43)
        at = np.maximum(k, 1)
        chance = -_stirling_error_of(at) - _deviance_of(at, mu) - np.log(2 * np.pi * at) / 2
        chance = np.where(k < 1, -mu, chance)
        accepted = (k >= 0) & (np.log(v * scale / (a / us**2 + b)) <= chance)
        result = np.where(open, k, result)
        open = open & ~(accepted | ((us >= 0.07) & (v <= quick)))
    return result


_MOST_MEAN = 2.0**53  # above, a float64 does not tell whole numbers apart


def _is_no_mean(x: np.ndarray) -> np.ndarray:
    return np.asarray(~((x >= 0) & (x <= _MOST_MEAN)))


_define(
    "random_poisson",
    (dt.float64,),
    "Poisson numbers from a state and means.",
    _poisson,
    _poisson_of,
    lambda e, x: e.not_(e.and_(e.ge(x, e.const(0.0, x.dtype)), e.le(x, _MOST_MEAN))),
    _is_no_mean,
    "lam holds a number that is negative, NaN or above 2**53.",
    lambda rng, dtype, shape: (np.where(rng.random(shape) < 0.1, 0, np.exp(rng.uniform(-3, 12, shape))),),
)


# ---- binomial


def _binomial(e: Emit, seed: Val, counter: Val, count: Val, chance: Val) -> Val:
    zero = e.const(0.0, dt.float64)
    mirrored = e.gt(chance, 0.5)
    p = e.select(mirrored, e.sub(1.0, chance), chance)
    mean = e.mul(count, p)
    large = e.ge(mean, _LARGE)
    some = e.gt(mean, zero)
    [u] = _uniforms(e, seed, counter, e.const(1, dt.uint64), dt.float64, 1)
    low, n = e.select(large, 0.1, p), e.select(large, 10.0, count)
    odds = e.div(low, e.sub(1.0, low))
    first = elementary.exp(e, e.mul(n, elementary.log1p(e, e.neg(low))))
    by_steps = _inverted(
        e,
        e.and_(some, e.not_(large)),
        u,
        first,
        lambda k: e.mul(odds, e.div(e.maximum(e.sub(e.add(n, 1.0), k), 0.0), k)),
    )
    by_steps = e.select(some, e.minimum(by_steps, n), zero)

    n, p = e.select(large, count, 40.0), e.select(large, p, 0.5)
    q = e.sub(1.0, p)
    np_, nq = e.mul(n, p), e.mul(n, q)
    width = e.sqrt(e.mul(np_, q))
    b = e.fma(width, 2.53, 1.15)
    a = e.add(e.fma(b, 0.0248, -0.0873), e.mul(p, 0.01))
    quick = e.sub(0.92, e.div(4.2, b))
    scale = e.mul(e.add(e.div(5.1, b), 2.83), width)
    mode = e.floor(e.mul(e.add(n, 1.0), p))

    def likelihood(k: Val) -> Val:
        """The logarithm of what the probability of k is without 1 / sqrt(k (n - k)) and constants."""
        rest = e.sub(n, k)
        errors = e.add(_stirling_error(e, k), _stirling_error(e, rest))
        return e.neg(e.add(errors, e.add(_deviance(e, k, np_), _deviance(e, rest, nq))))

    at_mode, of_mode = likelihood(mode), e.mul(mode, e.sub(n, mode))
    constant = e.mul(elementary.log(e, e.div(n, e.mul(of_mode, 2 * math.pi))), 0.5)
    of_mode_itself = e.add(e.add(_stirling_error(e, n), at_mode), constant)
    none, all = (e.sub(e.mul(n, elementary.log(e, x)), of_mode_itself) for x in (q, p))

    def attempt(number: Val) -> tuple[Val, Val]:
        u, v = _uniforms(e, seed, counter, number, dt.float64, 2)
        u, us, spread = _hat(e, u, a, b)
        k = e.floor(e.fma(spread, u, e.add(np_, 0.5)))
        inside = e.and_(e.gt(k, zero), e.lt(k, n))
        at = e.select(inside, k, mode)
        ratio = e.sqrt(e.div(e.mul(at, e.sub(n, at)), of_mode))
        left = e.mul(e.mul(v, ratio), e.div(scale, _density(e, us, a, b)))
        right = e.sub(likelihood(at), at_mode)
        right = e.select(inside, right, e.select(e.le(k, zero), none, all))
        possible = e.and_(e.ge(k, zero), e.le(k, n))
        accepted = e.and_(possible, e.le(elementary.log(e, left), right))
        return k, e.or_(e.and_(e.ge(us, 0.07), e.le(v, quick)), accepted)

    drawn = _tries(e, large, by_steps, attempt)
    return e.select(mirrored, e.sub(count, drawn), drawn)


def _binomial_of(state: np.ndarray, counter: np.ndarray, count: np.ndarray, chance: np.ndarray) -> np.ndarray:
    p = np.where(chance > 0.5, 1 - chance, chance)
    large = count * p >= _LARGE
    [u] = _uniforms_of(state, counter, 1, np.float64, 1)
    low, n = np.where(large, 0.1, p), np.where(large, 10.0, count)
    steps = _inverted_of(u, np.exp(n * np.log1p(-low)), lambda k: low / (1 - low) * (np.maximum(n + 1 - k, 0) / k))
    result = np.where(count * p > 0, np.minimum(steps, n), 0.0)

    n, p = np.where(large, count, 40.0), np.where(large, p, 0.5)
    width, open = np.sqrt(n * p * (1 - p)), large
    b = 1.15 + 2.53 * width
    a = -0.0873 + 0.0248 * b + 0.01 * p

    def likelihood(k: np.ndarray) -> np.ndarray:
        """The logarithm of the probability of k, up to a constant."""
        inside = np.clip(k, 1, n - 1)
        errors = _stirling_error_of(inside) + _stirling_error_of(n - inside)
        log_likelihood = -errors - _deviance_of(inside, n * p) - _deviance_of(n - inside, n * (1 - p))
        log_likelihood = log_likelihood + np.log(n / (2 * np.pi * inside * (n - inside))) / 2 + _stirling_error_of(n)
        return np.where(k <= 0, n * np.log(1 - p), np.where(k >= n, n * np.log(p), log_likelihood))

    for number in range(1, _MOST_TRIES + 1):
        if not open.any():
            break
        u, v = _uniforms_of(state, counter, number, np.float64, 2)
        u = u - 0.5
        us = np.maximum(0.5 - abs(u), 2.0**-54)
        k = np.floor((2 * a / us + b) * u + n * p + 0.5)
        left = np.log(v * (2.83 + 5.1 / b) * width / (a / us**2 + b))
        accepted = (k >= 0) & (k <= n) & (left <= likelihood(k) - likelihood(np.floor((n + 1) * p)))
        result = np.where(open, k, result)
        open = open & ~(accepted | ((us >= 0.07) & (v <= 0.92 - 4.2 / b)))
    return np.where(chance > 0.5, count - result, result)


def _is_no_count(count: np.ndarray, chance: np.ndarray) -> np.ndarray:
    whole = (count >= 0) & (count <= _MOST_MEAN) & (np.floor(count) == count)
    return np.asarray(~(whole & (chance >= 0) & (chance <= 1)))


def _wrong_count(e: Emit, count: Val, chance: Val) -> Val:
    zero = e.const(0.0, dt.float64)
    whole = e.and_(e.eq(e.floor(count), count), e.and_(e.ge(count, zero), e.le(count, _MOST_MEAN)))
    return e.not_(e.and_(whole, e.and_(e.ge(chance, zero), e.le(chance, 1.0))))


_define(
    "random_binomial",
    (dt.float64,),
    "Binomial numbers from a state, counts and probabilities.",
    _binomial,
    _binomial_of,
    _wrong_count,
    _is_no_count,
    "a count is negative or no whole number up to 2**53, or a probability lies outside [0, 1].",
    lambda rng, dtype, shape: (np.floor(np.exp(rng.uniform(-1, 12, shape))), np.round(rng.random(shape), 3)),
    arity=3,
)


# ---- hypergeometric

_MOST_IN_URN = 1e9  # above, differences of logarithms of factorials have too few digits
_HAT_WIDTH, _HAT_SHIFT = 2 * math.sqrt(2 / math.e), 3 - 2 * math.sqrt(3 / math.e)


def _log_factorial(e: Emit, k: Val) -> Val:
    at = e.maximum(k, 1.0)
    stirling = e.add(e.sub(e.mul(e.add(at, 0.5), elementary.log(e, at)), at), 0.5 * math.log(2 * math.pi))
    return e.select(e.ge(k, 1.0), e.add(stirling, _stirling_error(e, at)), 0.0)


def _log_factorial_of(k: np.ndarray) -> np.ndarray:
    at = np.maximum(k, 1)
    return np.where(k >= 1, (at + 0.5) * np.log(at) - at + 0.5 * math.log(2 * math.pi) + _stirling_error_of(at), 0.0)


def _hypergeometric(e: Emit, seed: Val, counter: Val, good: Val, bad: Val, count: Val) -> Val:
    zero, one = e.const(0.0, dt.float64), e.const(1.0, dt.float64)
    total = e.add(good, bad)
    fewer, more = e.minimum(good, bad), e.maximum(good, bad)
    few = e.minimum(count, e.sub(total, count))  # draws, or what is left in the urn
    drawn = e.and_(e.gt(few, zero), e.gt(fewer, zero))
    fewer, more, m = (e.select(drawn, value, one) for value in (fewer, more, few))
    size = e.add(fewer, more)
    share = e.div(fewer, size)
    centre = e.fma(m, share, 0.5)
    spread = e.mul(e.mul(e.sub(size, m), m), e.mul(share, e.sub(1.0, share)))
    deviation = e.sqrt(e.add(e.div(spread, e.maximum(e.sub(size, 1.0), 1.0)), 0.5))
    width = e.fma(deviation, _HAT_WIDTH, _HAT_SHIFT)
    mode = e.floor(e.div(e.mul(e.add(m, 1.0), e.add(fewer, 1.0)), e.add(size, 2.0)))

    def ways(k: Val) -> Val:
        parts = [k, e.sub(fewer, k), e.sub(m, k), e.add(e.sub(more, m), k)]
        first, second, third, fourth = (_log_factorial(e, part) for part in parts)
        return e.add(e.add(first, second), e.add(third, fourth))

    at_mode = ways(mode)
    limit = e.minimum(e.add(e.minimum(m, fewer), 1.0), e.floor(e.fma(deviation, 16.0, centre)))

    def attempt(number: Val) -> tuple[Val, Val]:
        u, v = _uniforms(e, seed, counter, number, dt.float64, 2)
        w = e.add(centre, e.div(e.mul(width, e.sub(v, 0.5)), u))
        inside = e.and_(e.ge(w, zero), e.lt(w, limit))
        k = e.floor(e.select(inside, w, mode))
        chance = e.sub(at_mode, ways(k))
        return k, e.and_(inside, e.le(e.mul(elementary.log(e, u), 2.0), chance))

    k = _tries(e, drawn, zero, attempt)
    k = e.select(e.gt(good, bad), e.sub(few, k), k)
    return e.select(e.lt(few, count), e.sub(good, k), k)


def _hypergeometric_of(
    state: np.ndarray, counter: np.ndarray, good: np.ndarray, bad: np.ndarray, count: np.ndarray
) -> np.ndarray:
    few = np.minimum(count, good + bad - count)
    open = (few > 0) & (np.minimum(good, bad) > 0)
    fewer, more, m = (np.where(open, x, 1.0) for x in (np.minimum(good, bad), np.maximum(good, bad), few))
    size = fewer + more
    share = fewer / size
    centre = m * share + 0.5
    deviation = np.sqrt((size - m) * m * share * (1 - share) / np.maximum(size - 1, 1) + 0.5)

    def ways(k: np.ndarray) -> np.ndarray:
        return np.asarray(sum(_log_factorial_of(part) for part in (k, fewer - k, m - k, more - m + k)))

    mode = np.floor((m + 1) * (fewer + 1) / (size + 2))
    limit = np.minimum(np.minimum(m, fewer) + 1, np.floor(centre + 16 * deviation))
    result = np.zeros_like(good)
    for number in range(1, _MOST_TRIES + 1):
        if not open.any():
            break
        u, v = _uniforms_of(state, counter, number, np.float64, 2)
        w = centre + (_HAT_WIDTH * deviation + _HAT_SHIFT) * (v - 0.5) / u
        inside = (w >= 0) & (w < limit)
        k = np.floor(np.where(inside, w, mode))
        accepted = inside & (2 * np.log(u) <= ways(mode) - ways(k))
        result = np.where(open, k, result)
        open = open & ~accepted
    result = np.where(good > bad, few - result, result)
    return np.where(few < count, good - result, result)


def _wrong_urn(e: Emit, good: Val, bad: Val, count: Val) -> Val:
    right = e.le(count, e.add(good, bad))
    for x in (good, bad, count):
        whole = e.and_(e.eq(e.floor(x), x), e.and_(e.ge(x, 0.0), e.le(x, _MOST_IN_URN)))
        right = e.and_(right, whole)
    return e.not_(right)


def _is_no_urn(good: np.ndarray, bad: np.ndarray, count: np.ndarray) -> np.ndarray:
    whole = [(x >= 0) & (x <= _MOST_IN_URN) & (np.floor(x) == x) for x in (good, bad, count)]
    return np.asarray(~(whole[0] & whole[1] & whole[2] & (count <= good + bad)))


def _urns(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    good, bad = (np.floor(np.exp(rng.uniform(-1, 9, shape))) for _ in range(2))
    return good, bad, np.floor((good + bad) * rng.random(shape))


_define(
    "random_hypergeometric",
    (dt.float64,),
    "Hypergeometric numbers from a state: of good and bad ones, of which so many are taken, how many are good.",
    _hypergeometric,
    _hypergeometric_of,
    _wrong_urn,
    _is_no_urn,
    "a count is negative, no whole number or above 1e9, or more are taken than there are.",
    _urns,
    arity=4,
)


# ---- von Mises

_ALMOST_NORMAL = 1e8  # concentrations from which on a von Mises number is a normal one to some ulp


def _von_mises(e: Emit, seed: Val, counter: Val, concentration: Val) -> Val:
    """In float64, whatever the parameter is.  ``inverse`` is that of Best's and Fisher's s, which 0 makes infinite."""
    kappa = e.convert(concentration, dt.float64)
    flat, narrow = e.lt(kappa, 1e-5), e.ge(kappa, _ALMOST_NORMAL)
    k = e.select(e.or_(flat, narrow), 1.0, kappa)
    r = e.add(1.0, e.sqrt(e.fma(e.mul(k, 4.0), k, 1.0)))
    rho = e.div(e.sub(r, e.sqrt(e.mul(r, 2.0))), e.mul(k, 2.0))
    inverse = e.div(e.mul(rho, 2.0), e.fma(rho, rho, 1.0))
    slope = e.select(flat, e.fma(kappa, kappa, 1.0), e.div(k, inverse))  # kappa s
    inverse = e.select(flat, e.div(kappa, e.fma(kappa, kappa, 1.0)), inverse)

    def attempt(number: Val) -> tuple[Val, Val]:
        u, v, side, normal = _uniforms(e, seed, counter, number, dt.float64, 4)
        z = elementary.cos(e, e.mul(u, math.pi))
        w = e.div(e.add(inverse, z), e.fma(inverse, z, 1.0))
        y = e.mul(slope, e.sub(1.0, e.mul(inverse, w)))
        quick = e.ge(e.sub(e.mul(y, e.sub(2.0, y)), v), 0.0)
        accepted = e.or_(quick, e.ge(e.sub(e.add(elementary.log(e, e.div(y, v)), 1.0), y), 0.0))
        w = e.minimum(e.maximum(w, -1.0), 1.0)
        angle = e.copysign(elementary.acos(e, w), e.sub(side, 0.5))
        radius = e.sqrt(e.div(e.mul(elementary.log(e, v), -2.0), e.select(narrow, kappa, 1.0)))
        straight = e.mul(radius, elementary.cos(e, e.mul(normal, 2.0 * math.pi)))
        return e.select(narrow, straight, angle), e.or_(narrow, accepted)

    drawn = e.ge(kappa, 0.0)
    return e.convert(_tries(e, drawn, e.const(0.0, dt.float64), attempt), concentration.dtype)


def _von_mises_of(state: np.ndarray, counter: np.ndarray, concentration: np.ndarray) -> np.ndarray:
    kappa = concentration.astype(np.float64)
    flat, narrow = kappa < 1e-5, kappa >= _ALMOST_NORMAL
    k = np.where(flat | narrow, 1.0, kappa)
    r = 1 + np.sqrt(1 + 4 * k * k)
    rho = (r - np.sqrt(2 * r)) / (2 * k)
    inverse = 2 * rho / (1 + rho * rho)
    slope = np.where(flat, 1 + kappa**2, k / inverse)
    inverse = np.where(flat, kappa / (1 + kappa**2), inverse)
    result, open = np.zeros(kappa.shape), np.ones(kappa.shape, bool)
    for number in range(1, _MOST_TRIES + 1):
        if not open.any():
            break
        u, v, side, normal = _uniforms_of(state, counter, number, np.float64, 4)
        z = np.cos(np.pi * u)
        w = (inverse + z) / (1 + inverse * z)
        y = slope * (1 - inverse * w)
        accepted = (y * (2 - y) - v >= 0) | (np.log(y / v) + 1 - y >= 0)
        angle = np.copysign(np.arccos(np.clip(w, -1, 1)), side - 0.5)
        straight = np.sqrt(-2 * np.log(v) / np.where(narrow, kappa, 1)) * np.cos(2 * np.pi * normal)
        result = np.where(open, np.where(narrow, straight, angle), result)
        open = open & ~(accepted | narrow)
    return result.astype(concentration.dtype)


_define(
    "random_von_mises",
    (dt.float32, dt.float64),
    "Angles of the von Mises distribution around 0 from a state and concentrations.",
    _von_mises,
    _von_mises_of,
    _not_finite,
    _is_not_finite,
    "concentration holds a number that is negative, infinite or NaN.",
    lambda rng, dtype, shape: (np.exp(rng.uniform(-14, 12, shape)).astype(dtype),),
)


# ---- integers


def _below(e: Emit, seed: Val, counter: Val, limit: Val) -> Val:
    """64 random bits modulo the limit, tried again where they lie in the last, incomplete turn through the residues."""
    largest = e.sub(e.const(0, dt.uint64), limit)  # 2**64 - limit
    zero = e.const(0, dt.uint64)
    divisor = e.select(e.eq(limit, zero), 1, limit)

    def attempt(number: Val) -> tuple[Val, Val]:
        a, b, _, _ = philox.block(e, seed, counter, number)
        word = _joined(e, a, b)
        rest = e.irem(word, divisor)
        return rest, e.le(e.sub(word, rest), largest)

    return _tries(e, e.gt(limit, zero), zero, attempt)


def _below_of(state: np.ndarray, counter: np.ndarray, limit: np.ndarray) -> np.ndarray:
    result, open = np.zeros_like(limit), np.ones(limit.shape, bool)
    for number in range(1, _MOST_TRIES + 1):
        words = philox.philox(counter, int(state[0]), number).astype(np.uint64)
        word = words[..., 0] | words[..., 1] << np.uint64(32)
        rest = word % limit
        result = np.where(open, rest, result)
        open = open & (word - rest > np.uint64(2**64 - 1) - limit + np.uint64(1))
        if not open.any():
            break
    return result


def _limits(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    shift = rng.integers(0, 64, shape, dtype=np.uint64)
    return (rng.integers(1, 2**64, shape, dtype=np.uint64) >> shift | np.uint64(1),)


_define(
    "random_below",
    (dt.uint64,),
    "Integers from 0 on below limits, all equally likely, from a state.",
    _below,
    _below_of,
    lambda e, limit: e.eq(limit, 0),
    lambda limit: limit == 0,
    "there is no integer from 0 on below a limit of 0.",
    _limits,
)
