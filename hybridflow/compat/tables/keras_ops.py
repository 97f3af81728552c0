"""The functions of ``tf.keras.ops``."""

NAMES = """
[keras.ops]
celu: ~keras_names.celu
glu: ~keras_names.glu
threshold: ~keras_names.threshold
sparsemax: ~keras_names.sparsemax
squareplus: ~keras_names.squareplus
sparse_plus: ~keras_names.sparse_plus
mish: ~keras_names.mish
hard_tanh: ~keras_names.hard_tanh
sparse_sigmoid: ~keras_names.sparse_sigmoid
tanh_shrink: ~keras_names.tanh_shrink
hard_shrink: ~keras_names.hard_shrink
soft_shrink: ~keras_names.soft_shrink
allclose: ~keras_ops.allclose
amax: ~maths.reduce_max(x>input_tensor, axis, keepdims)
amin: ~maths.reduce_min(x>input_tensor, axis, keepdims)
append: ~keras_ops.append
associative_scan: ~keras_ops.associative_scan
average: ~keras_ops.average
bincount: ~maths.bincount(x>arr, weights, minlength)
bitwise_and: bitwise_and(&x, &y, /)
bitwise_invert, bitwise_not: bitwise_invert(&x, /)
bitwise_left_shift, left_shift: bitwise_left_shift(&x, &y, /)
bitwise_or: bitwise_or(&x, &y, /)
bitwise_right_shift, right_shift: bitwise_right_shift(&x, &y, /)
bitwise_xor: bitwise_xor(&x, &y, /)
cbrt: cbrt(&x, /)
cholesky: linalg.cholesky(&x, /)
conj, conjugate: conj(&x, /)
conv: ~keras_ops.conv
custom_gradient: custom_gradient
deg2rad: ~keras_ops.deg2rad
rad2deg: ~keras_ops.rad2deg
det: linalg.det(&x, /)
diff: ~keras_ops.diff
digitize: ~keras_ops.digitize
eigh: linalg.eigh(&x, /)
empty_like: zeros_like(&x, /, dtype)
erfc: ~special.erfc(&x, /)
erfinv: ~special.erfinv(&x, /)
exp2: exp2(&x, /)
fabs: abs(&x, /)
fliplr: ~keras_ops.fliplr
flipud: ~keras_ops.flipud
fmax: ~keras_ops.fmax
fmin: ~keras_ops.fmin
fori_loop: fori_loop
get_item: ~keras_ops.get_item
hard_silu, hard_swish: nn.hard_swish(&x, /)
heaviside: ~keras_ops.heaviside
hstack: ~keras_ops.hstack
vstack: ~keras_ops.vstack
unravel_index: ~keras_ops.unravel_index
hypot: hypot(&x1, &x2, /)
inner: ~keras_ops.inner
inv: linalg.inv(&x, /)
isin: isin(&x1, &x2, /)
kron: ~keras_ops.kron
logaddexp: logaddexp(&x1, &x2, /)
logdet: ~linear.logdet(x>matrix)
logspace: ~keras_ops.logspace
lstsq: ~linear.lstsq(a>matrix, b>rhs)
matrix_rank: ~linear.matrix_rank(x>a)
max_pool: ~keras_ops.max_pool
average_pool: ~keras_ops.average_pool
median: ~keras_ops.median
quantile: ~keras_ops.quantile
multi_hot: ~keras_ops.multi_hot
nan_to_num: nan_to_num(&x, /, nan, posinf, neginf)
pinv: linalg.pinv(&x, /)
psnr: ~keras_ops.psnr
qr: ~linear.qr(x>input)
rot90: ~keras_ops.rot90
scan: ~keras_ops.scan
segment_max: ~keras_ops.segment_max
select: ~keras_ops.select
slice_update: ~keras_ops.slice_update
slogdet: linalg.slogdet(&x, /)
solve: ~linear.solve(a>matrix, b>rhs)
solve_triangular: ~keras_ops.solve_triangular
svd: ~keras_ops.svd
switch: ~keras_ops.switch
trapezoid: ~keras_ops.trapezoid
tri: ~keras_ops.tri
trunc: trunc(&x, /)
vectorize: ~keras_ops.vectorize
layer_normalization: ~keras_ops.layer_normalization
rms_normalization: ~keras_ops.rms_normalization
batch_normalization: ~keras_ops.batch_normalization
saturate_cast: ~values.saturate_cast(x>value, dtype)
signbit: signbit(&x, /)
nextafter: nextafter(&x1, &x2, /)
abs, absolute: abs(&x, /)
add: add(&x1, &x2, /)
all: ~maths.reduce_all(x>input_tensor, axis, keepdims)
any: ~maths.reduce_any(x>input_tensor, axis, keepdims)
arange: ~arrays.range(start, stop>limit, step>delta, dtype)
arccos: acos(&x, /)
arccosh: acosh(&x, /)
arcsin: asin(&x, /)
arcsinh: asinh(&x, /)
arctan: atan(&x, /)
arctan2: atan2(&x1, &x2, /)
arctanh: atanh(&x, /)
argmax: argmax(&x, /, axis, keepdims)
argmin: argmin(&x, /, axis, keepdims)
argsort: argsort(&x, /, axis)
array, convert_to_tensor: ~values.convert_to_tensor(x>value, dtype)
broadcast_to: ~arrays.broadcast_to(x>input, shape)
cast: ~values.cast
ceil: ceil(&x, /)
clip: clip(&x, &x_min, &x_max, /)
concatenate: ~arrays.concat(xs>values, axis=0)
cond: ~control.cond(pred, true_fn, false_fn)
convert_to_numpy: ~values.array_of(x>value)
copy: positive(&x, /)
cos: cos(&x, /)
cosh: cosh(&x, /)
count_nonzero: ~maths.count_nonzero(x>input, axis)
cross: linalg.cross(&x1, &x2, /)
ctc_loss: ~keras_ops.ctc_loss
cumprod: cumulative_prod(&x, /, axis)
cumsum: cumulative_sum(&x, /, axis)
diag: ~linear.diag(x>diagonal)
diagonal: diagonal(&x, /)
divide, true_divide: ~maths.divide(x1>x, x2>y)
divide_no_nan: ~maths.divide_no_nan(x1>x, x2>y)
dot: ~keras_ops.dot
einsum: ~linear.einsum
elu: nn.elu(&x, /, alpha)
empty, zeros: ~arrays.zeros
equal: equal(&x1, &x2, /)
erf: erf(&x, /)
exp: exp(&x, /)
expand_dims: expand_dims(&x, /, axis)
expm1: expm1(&x, /)
eye: ~arrays.eye(N>num_rows, M>num_columns, dtype)
flip: flip(&x, /, axis)
floor: floor(&x, /)
floor_divide: floor_divide(&x1, &x2, /)
full: full(shape, fill_value, dtype)
full_like: full_like(&x, fill_value, /, dtype)
gelu: nn.gelu(&x, /, approximate=True)
greater: greater(&x1, &x2, /)
greater_equal: greater_equal(&x1, &x2, /)
hard_sigmoid: nn.hard_sigmoid(&x, /)
identity: ~arrays.eye(n>num_rows, dtype)
in_top_k: ~maths.in_top_k
is_tensor: ~values.is_tensor
isclose: isclose(&x1, &x2, /)
isfinite: isfinite(&x, /)
isinf: isinf(&x, /)
isnan: isnan(&x, /)
leaky_relu: nn.leaky_relu(&x, /, negative_slope>alpha=0.2)
less: less(&x1, &x2, /)
less_equal: less_equal(&x1, &x2, /)
linspace: linspace(start, stop, num=50)
log: log(&x, /)
log10: log10(&x, /)
log1p: log1p(&x, /)
log2: log2(&x, /)
log_sigmoid: nn.log_sigmoid(&x, /)
log_softmax: ~maths.log_softmax(x>logits, axis=-1)
logical_and: logical_and(&x1, &x2, /)
logical_not: logical_not(&x, /)
logical_or: logical_or(&x1, &x2, /)
logical_xor: logical_xor(&x1, &x2, /)
logsumexp: ~maths.reduce_logsumexp(x>input_tensor, axis, keepdims)
map: ~control.map_fn(f>fn, xs>elems)
matmul: ~linear.matmul(x1>a, x2>b)
max: ~maths.reduce_max(x>input_tensor, axis, keepdims)
maximum: maximum(&x1, &x2, /)
mean: ~models.k_mean
meshgrid: ~arrays.meshgrid
min: ~maths.reduce_min(x>input_tensor, axis, keepdims)
minimum: minimum(&x1, &x2, /)
mod: remainder(&x1, &x2, /)
moments: ~network.moments(x, axes, keepdims)
moveaxis: moveaxis(&x, source, destination, /)
multiply: multiply(&x1, &x2, /)
ndim: ~models.k_ndim
negative: negative(&x, /)
nonzero: nonzero(&x, /)
norm: ~keras_ops.norm
normalize: ~maths.l2_normalize(x, axis=-1)
not_equal: not_equal(&x1, &x2, /)
one_hot: ~arrays.one_hot(x>indices, num_classes>depth, axis=-1, dtype)
ones: ~arrays.ones
ones_like: ones_like(&x, /, dtype)
outer: linalg.outer(&x1, &x2, /)
pad: ~arrays.pad(x>tensor, pad_width>paddings, mode='constant', constant_values=0)
power: pow(&x1, &x2, /)
prod: ~maths.reduce_prod(x>input_tensor, axis, keepdims)
ravel: ~models.k_flatten
reciprocal: reciprocal(&x, /)
relu: nn.relu(&x, /)
relu6: nn.relu6(&x, /)
repeat: ~arrays.repeat(x>input, repeats, axis)
reshape: ~arrays.reshape(x>tensor, newshape>shape)
roll: roll(&x, shift, /, axis)
round: ~maths.round
rsqrt: rsqrt(&x, /)
scatter: ~arrays.scatter_nd(indices, values>updates, shape)
scatter_update: ~arrays.tensor_scatter_nd_update(inputs>tensor, indices, updates)
searchsorted: ~arrays.searchsorted(sorted_sequence, values, side)
segment_sum: ~keras_ops.segment_sum
selu: nn.selu(&x, /)
shape: ~keras_ops.shape
sigmoid: ~maths.sigmoid
sign: sign(&x, /)
silu, swish: nn.silu(&x, /)
sin: sin(&x, /)
sinh: sinh(&x, /)
size: ~values.size(x>input)
slice: ~arrays.slice_(inputs>input_, start_indices>begin, shape>size)
softmax: ~models.softmax
softplus: nn.softplus(&x, /)
softsign: nn.softsign(&x, /)
sort: ~arrays.sort(x>values, axis=-1)
split: ~keras_ops.split
sqrt: sqrt(&x, /)
square: square(&x, /)
squeeze: ~arrays.squeeze(x>input, axis)
stack: ~arrays.stack(x>values, axis=0)
std: ~maths.reduce_std(x>input_tensor, axis, keepdims)
stop_gradient: stop_gradient(&variable, /)
subtract: subtract(&x1, &x2, /)
sum: ~maths.reduce_sum(x>input_tensor, axis, keepdims)
swapaxes: ~keras_ops.swapaxes
take: ~keras_ops.take
take_along_axis: take_along_axis(&x, &indices, /, axis)
tan: tan(&x, /)
tanh: tanh(&x, /)
tensordot: ~linear.tensordot(x1>a, x2>b, axes=2)
tile: ~arrays.tile(x>input, repeats>multiples)
top_k: ~arrays.top_k(x>input, k)
trace: trace(&x, /)
transpose: ~arrays.transpose(x>a, axes>perm)
tril: tril(&x, /, k)
triu: triu(&x, /, k)
unstack: ~arrays.unstack(x>value, num, axis=0)
var: ~maths.reduce_variance(x>input_tensor, axis, keepdims)
vdot: ~keras_ops.dot
vectorized_map: ~control.vectorized_map(function>fn, elements>elems)
where: ~arrays.where(condition, x1>x, x2>y)
while_loop: ~control.while_loop(cond, body, loop_vars)
zeros_like: zeros_like(&x, /, dtype)
binary_crossentropy: ~models.binary_crossentropy(target>y_true, output>y_pred, from_logits)
categorical_crossentropy: ~models.categorical_crossentropy(target>y_true, output>y_pred, from_logits)
sparse_categorical_crossentropy: ~models.sparse_categorical_crossentropy(target>y_true, output>y_pred, from_logits)

[keras.ops.image]
resize: ~images.resize(images, size, interpolation>method='bilinear')
rgb_to_grayscale: ~images.rgb_to_grayscale
extract_patches: ~keras_ops.extract_patches
"""
