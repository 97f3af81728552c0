"""Bessel functions of order 0 and 1 over the emitter: J, and the exponentially scaled I and K.

All of them are computed in float64, whatever comes in.  Polynomials interpolate at Chebyshev's points: in x**2 near 0,
in 1 / x far away (Abramowitz and Stegun 9.2.5, 9.7.1, 9.7.2 say what form is smooth there).  Errors stand beside the
coefficients, relative ones but for J, which has zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hybridflow.compiler.ops import elementary
from hybridflow.compiler.ops.elementary_common import (
    Emit,
    Value,
    clamp_above,
    clamp_below,
    elementary as _elementary,
    in_some_lanes,
    polynomial,
    through_float64,
)

# I0(x) in x**2, x <= 8, to 2**-61.1
_I0_NEAR = (
    *(1.0, 0.25, 0.015625000000000007, 0.00043402777777777445, 6.781684027778812e-06, 6.781684027758202e-08),
    *(4.709502797312111e-10, 2.4028075474081917e-12, 9.385967122158306e-15, 2.896902788810415e-17),
    *(7.242279005317181e-20, 1.4962822964042478e-22, 2.5987841051325663e-25, 3.829411247002327e-28),
    *(5.0327117729737235e-31, 4.601357767863732e-34, 8.487698345602824e-37),
)
# sqrt(x) exp(-x) I0(x) in 1 / x - 1/16, x >= 8, to 2**-59.4
_I0_FAR = (
    *(0.4021765094450081, 0.05376883173868615, 0.03487131504445659, 0.04564186639793802, 0.0972454323249707),
    *(0.3118044882295479, 1.4885212951174043, 10.556168879874878, 92.52089529785579, 519.7327960608143),
    *(-7369.292585129094, -236625.60397396696, -1576885.0756968888, 34621301.86876608, 576948213.3724934),
    *(-4380226673.304571, -131057530606.1433, 576082408258.6228, 24631803310558.434, -75269436737830.23),
    *(-3722498754104489.0, 8122282862478758.0, 4.113655836103747e17, -5.816828254752367e17, -2.880229238523158e19),
    *(1.9730017706905305e19, 9.442791692135221e20),
)
# I1(x) / x in x**2, x <= 8, to 2**-59.0
_I1_NEAR = (
    *(0.5, 0.06250000000000001, 0.0026041666666666574, 5.42534722222271e-05, 6.781684027764357e-07),
    *(5.651403356704746e-09, 3.3639305668982475e-11, 1.5017547367976848e-13, 5.214425120919993e-16),
    *(1.448455537254395e-18, 3.2918259018287706e-21, 6.2370206832638684e-24, 9.956969230500738e-27),
    *(1.408926251589232e-29, 1.3808181584914298e-32, 2.716505589516919e-35),
)
# sqrt(x) exp(-x) I1(x) in 1 / x - 1/16, x >= 8, to 2**-59.3
_I1_FAR = (
    *(0.38939845902587233, -0.15599323509177213, -0.056124355541603145, -0.06159788932444652, -0.12025266863450042),
    *(-0.36530882565231637, -1.677947974522894, -11.577137082023722, -100.36038171832745, -579.6920812542581),
    *(7352.717169357931, 247578.37739858805, 1739537.888214943, -34986087.59456149, -611664421.7356784),
    *(4266243297.613574, 137271811683.14589, -543766993038.32495, -25680569738109.598, 70006268036628.37),
    *(3875282599685116.0, -7541126637250965.0, -4.281536234849844e17, 5.417663368665158e17, 2.9983977430838837e19),
    *(-1.8449157459650425e19, -9.833396222377314e20),
)
# J0(x) in x**2 - 8, x <= 4, to 2**-64.3
_J0_NEAR = (
    *(-0.1965480952704682, -0.07074499672013562, 0.007492626283609543, -0.00025592199905008885),
    *(4.480639797379309e-06, -4.818585622216317e-08, 3.5202690087229217e-10, -1.8645963569416947e-12),
    *(7.496643441440793e-15, -2.3673763647400475e-17, 6.02978316953614e-20, -1.265937862988484e-22),
    *(2.226349959667508e-25,),
)
# J0(x) in x - 6, 4 <= x <= 8, to 2**-59.3
_J0_MIDDLE = (
    *(0.15064525725099692, 0.2766838581275656, -0.0983796168027956, -0.03936749830014451, 0.009276407324868178),
    *(0.0015513507450473775, -0.00030597063486251675, -3.0037971983082786e-05, 5.2271836051106134e-06),
    *(3.510618410911121e-07, -5.511322002127968e-08, -2.760957543606426e-09, 3.96077496418889e-10),
    *(1.5644694164940766e-11, -2.069121176775323e-12, -6.688899448054835e-14, 8.21260054950577e-15),
    *(2.1315494899247806e-16, -2.4499971544655048e-17),
)
# Of Hankel's form of J0, in 1 / x**2 - 1/128, x >= 8: the factor of the cosine, to 2**-60.1
_P0 = (
    *(0.9994572757882519, -0.06865501685926442, 0.10055542505654097, -0.4304917896410123, 3.436983535666009),
    *(-41.648053616333534, 681.7224473871591, -14008.329744057412, 344927.7157676126, -9793933.168326942),
    *(289791165.19773084, -9918468062.732216, 645005355508.7651, -28093630054980.992),
)
# x times the factor of the sine, to 2**-58.2
_Q0 = (
    *(-0.12444091103610815, 0.0699714467772815, -0.19361154107309628, 1.1922250163445502, -12.17347502089862),
    *(176.82296485452338, -3332.104850987399, 76709.5848205297, -2068598.0834610842, 63473888.54857651),
    *(-2211387113.2270074, 83419895629.69975, -2548564231014.27, 101148198113656.84, -1.2823640069965648e16),
    *(6.596759678745582e17,),
)
# J1(x) / x in x**2 - 8, x <= 4, to 2**-61.6
_J1_NEAR = (
    *(0.14148999344027124, -0.02997050513443817, 0.001535531994300533, -3.584511837903447e-05, 4.818585622216119e-07),
    *(-4.224322810467485e-09, 2.6104348998176764e-11, -1.199462950641769e-13, 4.261277257037172e-16),
    *(-1.2059566106321408e-18, 2.785201837118992e-21, -5.3434045856970236e-24),
)
# J1(x) in x - 6, 4 <= x <= 8, to 2**-58.4
_J1_MIDDLE = (
    *(-0.27668385812756563, 0.19675923360559117, 0.11810249490043402, -0.03710562929947243, -0.007756753725240513),
    *(0.0018358238091740109, 0.00021026580389172723, -4.1817468839017444e-05, -3.1595565839470967e-06),
    *(5.511321985272709e-07, 3.0370543962581626e-08, -4.752929099108377e-09, -2.0338601447668906e-10),
    *(2.8967449040309492e-11, 1.0046506105687355e-12, -1.3136391006363575e-13, -3.8099692556081e-15),
    *(4.3864362509792155e-16, 1.0958026450771682e-17),
)
# Of Hankel's form of J1, as above, to 2**-60.0
_P1 = (
    *(1.0009070262780821, 0.11504703253383122, -0.13041163793924146, 0.5145732836605285, -3.9482863864178888),
    *(46.739740133983425, -753.4330260165762, 15315.17512024041, -374050.0734710418, 10554304.944998592),
    *(-311097628.5076704, 10606820397.278843, -684824822794.3132, 29742058533249.746),
)
# x times the factor of the sine, to 2**-59.7
_Q1 = (
    *(0.3742149922195918, -0.09852373833783744, 0.23870856904458407, -1.391160158723063, 13.787129559578776),
    *(-196.56809689426004, 3657.4489318120754, -83426.9248634919, 2234075.007258101, -68175060.43727441),
    *(2363758897.742932, -88829998656.59322, 2715011409021.3223, -107552243648738.73, 1.3513578670753872e16),
    *(-6.937938562182095e17,),
)
# I0(x) in x**2, x <= 2, to 2**-62.5
_I0_2 = (
    *(1.0, 0.25, 0.015624999999999938, 0.0004340277777779769, 6.7816840274543955e-06, 6.78168405793189e-08),
    *(4.709501086185397e-10, 2.4028675787778216e-12, 9.373259435491812e-15, 3.045242653561327e-17),
)
# I1(x) / x in x**2, x <= 2, to 2**-66.0
_I1_2 = (
    *(0.5, 0.0625, 0.002604166666666664, 5.4253472222231245e-05, 6.781684027631274e-07, 5.6514033701433906e-09),
    *(3.363929794095008e-11, 1.501781924052243e-13, 5.20866514952149e-16, 1.5157445820083369e-18),
)
# K0(x) + log(x / 2) I0(x) in x**2, x <= 2, to 2**-61.3
_K0_NEAR = (
    *(-0.5772156649015329, 0.1056960837746168, 0.014418505235913403, 0.0005451899602573268, 1.021401413519616e-05),
    *(1.1570351012535374e-07, 8.819879035027937e-10, 4.8433399275830486e-12, 2.0062068689459318e-14),
    *(6.872289021185454e-17,),
)
# x (K1(x) - log(x / 2) I1(x)) in x**2, x <= 2, to 2**-63.9
_K1_NEAR = (
    *(1.0, 0.03860783245076643, -0.0420490209436542, -0.0028371119837633306, -7.493042905996269e-05),
    *(-1.0892182537829906e-06, -1.0112909463438741e-08, -6.540194160876696e-11, -3.1209506170276024e-13),
    *(-1.1434866138226383e-15, -3.511915570519414e-18),
)
# sqrt(x) exp(x) K0(x) in 1 / x - 5/16, 2 <= x <= 8, to 2**-59.1
_K0_MIDDLE = (
    *(1.2110098987429048, -0.11855678231902773, 0.04331048397680838, -0.025199591477719822, 0.01899069958749392),
    *(-0.016966449614571343, 0.017136162328992274, -0.019008009116881403, 0.022716468752510904),
    *(-0.028858722120149873, 0.038572227311653766, -0.05387797106717341, 0.07897173657678122, -0.1186451771035754),
    *(0.16086646418145356, -0.25188161006213905, 0.7485837928836032, -1.265411557250178),
)
# The same in 1 / x - 1/16, x >= 8, to 2**-58.3
_K0_FAR = (
    *(1.2438463520997634, -0.14660560767673705, 0.07364202087998165, -0.06512967200251907, 0.08077402736160509),
    *(-0.12674289777690206, 0.23745212424765502, -0.5119643263766037, 1.238914683538177, -3.3025679416505382),
    *(9.448434755387947, -29.322379301182096, 118.8508444260594, -425.4520235797554),
)
# sqrt(x) exp(x) K1(x) in 1 / x - 5/16, 2 <= x <= 8, to 2**-59.0
_K1_MIDDLE = (
    *(1.388652384648141, 0.4027847597674058, -0.08100201422506569, 0.039308190299662475, -0.02704822404979749),
    *(0.02286125667684482, -0.022234925978465613, 0.023994083027457966, -0.028077082307214136, 0.03507677118249628),
    *(-0.04624848364338449, 0.06386884635769924, -0.09267702871318552, 0.13807908017988307, -0.18651892204509107),
    *(0.29019529530114024, -0.8509471229580496, 1.4315236730689733),
)
# The same in 1 / x - 1/16, x >= 8, to 2**-58.1
_K1_FAR = (
    *(1.2821438724478937, 0.45298577046177985, -0.1263178106062499, 0.0937785451190948, -0.10674407054338797),
    *(0.1591304945434799, -0.288122185306074, 0.6062110620361943, -1.4402220079496089, 3.7844092679095365),
    *(-10.706825081024032, 32.91481119696137, -131.9917832978654, 469.3535794671151),
)


def _tiny_as_zero(e: Emit, size: Value) -> Value:
    """``size``, or 0 where its square would be no normal number and counts for nothing."""
    return e.select(e.lt(size, 1e-150), 0.0, size)


def _scaled_i(e: Emit, size: Value, order: int, near: tuple[float, ...], far: tuple[float, ...]) -> Value:
    inside = clamp_above(e, _tiny_as_zero(e, size), 8.0)
    small = e.mul(polynomial(e, e.mul(inside, inside), near), elementary.exp(e, e.neg(inside)))
    if order:
        small = e.mul(small, clamp_above(e, size, 8.0))
    beyond = clamp_below(e, size, 8.0)
    large = e.div(polynomial(e, e.sub(e.div(1.0, beyond), 0.0625), far), e.sqrt(beyond))
    return e.select(e.lt(size, 8.0), small, large)


@_elementary
@through_float64
def i0e(e: Emit, x: Value) -> Value:
    """exp(-|x|) I0(x)."""
    return _scaled_i(e, e.abs(x), 0, _I0_NEAR, _I0_FAR)


@_elementary
@through_float64
def i1e(e: Emit, x: Value) -> Value:
    """exp(-|x|) I1(x), an odd function."""
    return e.copysign(_scaled_i(e, e.abs(x), 1, _I1_NEAR, _I1_FAR), x)


@_elementary
@through_float64
def j0(e: Emit, x: Value) -> Value:
    """J0; errors are relative to 1 near 0 and to sqrt(2 / (pi x)) far away."""
    size = e.abs(x)
    inside = clamp_above(e, _tiny_as_zero(e, size), 4.0)
    near = polynomial(e, e.fma(inside, inside, -8.0), _J0_NEAR)
    middle = polynomial(e, e.sub(clamp_above(e, size, 8.0), 6.0), _J0_MIDDLE)
    return _by_size(e, size, near, middle, _far_j0)


@_elementary
@through_float64
def j1(e: Emit, x: Value) -> Value:
    """J1, an odd function; errors as those of J0."""
    size = e.abs(x)
    inside = clamp_above(e, _tiny_as_zero(e, size), 4.0)
    near = e.mul(polynomial(e, e.fma(inside, inside, -8.0), _J1_NEAR), clamp_above(e, size, 4.0))
    middle = polynomial(e, e.sub(clamp_above(e, size, 8.0), 6.0), _J1_MIDDLE)
    result = _by_size(e, size, near, middle, _far_j1)
    return e.select(e.lt(x, 0.0), e.neg(result), e.select(e.eq(x, 0.0), x, result))


def _far_j0(e: Emit, size: Value) -> Value:
    sine, cosine, p, q, scale = _hankel(e, size, _P0, _Q0)
    return e.mul(e.sub(e.mul(p, e.add(cosine, sine)), e.mul(q, e.sub(sine, cosine))), scale)


def _far_j1(e: Emit, size: Value) -> Value:
    sine, cosine, p, q, scale = _hankel(e, size, _P1, _Q1)
    return e.mul(e.add(e.mul(p, e.sub(sine, cosine)), e.mul(q, e.add(sine, cosine))), scale)


def _hankel(e: Emit, size: Value, p: tuple[float, ...], q: tuple[float, ...]) -> tuple[Value, ...]:
    """(sin x, cos x, P, Q, 1 / sqrt(pi x)) for x >= 8."""
    x = clamp_below(e, size, 8.0)
    inverse = e.div(1.0, x)
    square = e.sub(e.mul(inverse, inverse), 0.0078125)
    scale = e.div(1.0 / math.sqrt(math.pi), e.sqrt(x))
    return (
        elementary.sin(e, x),
        elementary.cos(e, x),
        polynomial(e, square, p),
        e.mul(polynomial(e, square, q), inverse),
        scale,
    )


def _by_size(e: Emit, size: Value, near: Value, middle: Value, far: Callable[..., Value]) -> Value:
    result = in_some_lanes(e, e.not_lt(size, 8.0), e.select(e.lt(size, 4.0), near, middle), far, size)
    return e.select(e.eq(size, math.inf), 0.0, result)


def _scaled_k(e: Emit, x: Value, small: Value, middle: tuple[float, ...], far: tuple[float, ...]) -> Value:
    beyond = clamp_below(e, x, 2.0)
    inverse = e.div(1.0, beyond)
    large = e.select(
        e.lt(x, 8.0), polynomial(e, e.sub(inverse, 0.3125), middle), polynomial(e, e.sub(inverse, 0.0625), far)
    )
    result = e.select(e.lt(x, 2.0), small, e.div(large, e.sqrt(beyond)))
    return e.select(e.lt(x, 0.0), math.nan, e.select(e.eq(x, 0.0), math.inf, result))


@_elementary
@through_float64
def k0e(e: Emit, x: Value) -> Value:
    """exp(x) K0(x); NaN below 0."""
    inside = clamp_above(e, x, 2.0)
    root = _tiny_as_zero(e, inside)
    square = e.mul(root, root)
    logarithm = e.sub(elementary.log(e, inside), math.log(2))
    small = e.sub(polynomial(e, square, _K0_NEAR), e.mul(logarithm, polynomial(e, square, _I0_2)))
    return _scaled_k(e, x, e.mul(small, elementary.exp(e, inside)), _K0_MIDDLE, _K0_FAR)


@_elementary
@through_float64
def k1e(e: Emit, x: Value) -> Value:
    """exp(x) K1(x); NaN below 0."""
    inside = clamp_above(e, x, 2.0)
    root = _tiny_as_zero(e, inside)
    square = e.mul(root, root)
    logarithm = e.sub(elementary.log(e, inside), math.log(2))
    part = e.mul(e.mul(logarithm, root), polynomial(e, square, _I1_2))
    small = e.add(e.div(polynomial(e, square, _K1_NEAR), inside), part)
    return _scaled_k(e, x, e.mul(small, elementary.exp(e, inside)), _K1_MIDDLE, _K1_FAR)
