"""Arithmetic, reductions, bits and linear algebra."""

NAMES = """
[. math]
abs: abs(&x, /)
acos: acos(&x, /)
acosh: acosh(&x, /)
add: add(&x, &y, /)
add_n: ~maths.add_n
argmax: ~arrays.argmax
argmin: ~arrays.argmin
asin: asin(&x, /)
asinh: asinh(&x, /)
atan: atan(&x, /)
atan2: atan2(&y, &x, /)
atanh: atanh(&x, /)
cos: cos(&x, /)
cosh: cosh(&x, /)
cumsum: ~maths.cumsum
divide: ~maths.divide
equal: equal(&x, &y, /)
exp: exp(&x, /)
floor: floor(&x, /)
greater: greater(&x, &y, /)
greater_equal: greater_equal(&x, &y, /)
less: less(&x, &y, /)
less_equal: less_equal(&x, &y, /)
logical_and: logical_and(&x, &y, /)
logical_not: logical_not(&x, /)
logical_or: logical_or(&x, &y, /)
maximum: maximum(&x, &y, /)
minimum: minimum(&x, &y, /)
multiply: multiply(&x, &y, /)
negative: negative(&x, /)
not_equal: not_equal(&x, &y, /)
pow: pow(&x, &y, /)
reduce_all: ~maths.reduce_all
reduce_any: ~maths.reduce_any
reduce_logsumexp: ~maths.reduce_logsumexp
reduce_max: ~maths.reduce_max
reduce_mean: ~maths.reduce_mean
reduce_min: ~maths.reduce_min
reduce_prod: ~maths.reduce_prod
reduce_sum: ~maths.reduce_sum
round: ~maths.round
scalar_mul: multiply(&scalar, &x, /)
sigmoid: ~maths.sigmoid
sign: sign(&x, /)
sin: sin(&x, /)
sinh: sinh(&x, /)
sqrt: sqrt(&x, /)
square: square(&x, /)
subtract: subtract(&x, &y, /)
tan: tan(&x, /)
tanh: tanh(&x, /)
truediv: ~maths.divide

[.]
truncatediv: ~maths.truncatediv
truncatemod: ~maths.truncatemod

[. math]
floordiv: floor_divide(&x, &y, /)

[math]
lgamma: ~special.lgamma(&x, /)
digamma: ~special.digamma(&x, /)
erfc: ~special.erfc(&x, /)
erfinv: ~special.erfinv(&x, /)
erfcinv: ~special.erfcinv(&x, /)
ndtri: ~special.ndtri(&x, /)
xlog1py: ~special.xlog1py(&x, &y, /)
lbeta: ~special.lbeta
bessel_i0: ~special.bessel_i0(&x, /)
bessel_i0e: ~special.bessel_i0e(&x, /)
bessel_i1: ~special.bessel_i1(&x, /)
bessel_i1e: ~special.bessel_i1e(&x, /)
betainc: ~special.betainc(&a, &b, &x, /)
igamma: ~special.igamma(&a, &x, /)
igammac: ~special.igammac(&a, &x, /)
polygamma: ~special.polygamma
zeta: ~special.zeta(&x, &q, /)
cumulative_logsumexp: ~special.cumulative_logsumexp
segment_max: ~maths.segment_max
segment_min: ~maths.segment_min
segment_prod: ~maths.segment_prod
unsorted_segment_max: ~maths.unsorted_segment_max
unsorted_segment_min: ~maths.unsorted_segment_min
unsorted_segment_prod: ~maths.unsorted_segment_prod
unsorted_segment_sqrt_n: ~maths.unsorted_segment_sqrt_n
floormod, mod: remainder(&x, &y, /)
accumulate_n: ~maths.add_n
angle: angle(&input, /)
approximate_equal: ~maths.approximate_equal
bincount: ~maths.bincount
ceil: ceil(&x, /)
confusion_matrix: ~maths.confusion_matrix
conj: conj(&x, /)
count_nonzero: ~maths.count_nonzero
cumprod: ~maths.cumprod
divide_no_nan: ~maths.divide_no_nan
erf: erf(&x, /)
expm1: expm1(&x, /)
imag: imag(&input, /)
in_top_k: ~maths.in_top_k
invert_permutation: ~arrays.invert_permutation
is_finite: isfinite(&x, /)
is_inf: isinf(&x, /)
is_nan: isnan(&x, /)
is_non_decreasing: ~maths.is_non_decreasing
is_strictly_increasing: ~maths.is_strictly_increasing
l2_normalize: ~maths.l2_normalize
log: log(&x, /)
log1p: log1p(&x, /)
log_sigmoid: nn.log_sigmoid(&x, /)
log_softmax: ~maths.log_softmax
logical_xor: logical_xor(&x, &y, /)
multiply_no_nan: ~maths.multiply_no_nan
nextafter: nextafter(&x1, &x2, /)
polyval: ~maths.polyval
real: real(&input, /)
reciprocal: reciprocal(&x, /)
reciprocal_no_nan: ~maths.reciprocal_no_nan
reduce_euclidean_norm: ~maths.reduce_euclidean_norm
reduce_std: ~maths.reduce_std
reduce_variance: ~maths.reduce_variance
rint: ~maths.round
rsqrt: rsqrt(&x, /)
segment_sum: ~maths.segment_sum
segment_mean: ~maths.segment_mean
softmax: ~maths.softmax
softplus: nn.softplus(&features, /)
softsign: nn.softsign(&features, /)
squared_difference: ~maths.squared_difference
top_k: ~arrays.top_k
unsorted_segment_mean: ~maths.unsorted_segment_mean
unsorted_segment_sum: ~maths.unsorted_segment_sum
xdivy: ~maths.xdivy
xlogy: ~maths.xlogy
zero_fraction: ~maths.zero_fraction

[bitwise]
bitwise_and: bitwise_and(&x, &y, /)
bitwise_or: bitwise_or(&x, &y, /)
bitwise_xor: bitwise_xor(&x, &y, /)
invert: bitwise_invert(&x, /)
left_shift: bitwise_left_shift(&x, &y, /)
right_shift: bitwise_right_shift(&x, &y, /)

[. linalg]
einsum: ~linear.einsum
eye: ~arrays.eye
norm: ~linear.norm
tensordot: ~linear.tensordot

[.]
linspace: ~arrays.linspace

[linalg]
expm: linalg.expm(&input, /)
logm: linalg.logm(&input, /)
sqrtm: linalg.sqrtm(&input, /)
lu: ~linear.lu
lu_solve: ~linear.lu_solve
lu_matrix_inverse: ~linear.lu_matrix_inverse
lu_reconstruct: ~linear.lu_reconstruct
tridiagonal_solve: ~linear.tridiagonal_solve
tridiagonal_matmul: ~linear.tridiagonal_matmul
adjoint: ~linear.adjoint
band_part: ~linear.band_part
cholesky: linalg.cholesky(&input, /)
cholesky_solve: linalg.cholesky_solve(&chol, &rhs, /)
cross: linalg.cross(&a, &b, /)
det: linalg.det(&input, /)
diag: ~linear.diag
diag_part: ~linear.diag_part
eig: linalg.eig(&tensor, /)
eigh: linalg.eigh(&tensor, /)
eigvals: linalg.eigvals(&tensor, /)
eigvalsh: linalg.eigvalsh(&tensor, /)
global_norm: ~linear.global_norm
inv: ~linear.inv
l2_normalize: ~maths.l2_normalize
logdet: ~linear.logdet
lstsq: ~linear.lstsq
matmul: ~linear.matmul
matrix_rank: ~linear.matrix_rank
matrix_transpose: matrix_transpose(&a, /, -conjugate)
matvec: ~linear.matvec
normalize: ~linear.normalize
pinv: ~linear.pinv
qr: ~linear.qr
set_diag: ~linear.set_diag
slogdet: linalg.slogdet(&input, /)
solve: ~linear.solve
svd: ~linear.svd
tensor_diag: ~linear.tensor_diag
tensor_diag_part: diagonal(&input, /)
trace: trace(&x, /)
triangular_solve: ~linear.triangular_solve

[sparse]
SparseTensor: sparse.COO
add: sparse.add(a, b)
concat: sparse.concat(axis, sp_inputs)
eye: sparse.eye(num_rows, num_columns, dtype)
from_dense: sparse.from_dense(tensor>x)
reduce_max: sparse.reduce_max(sp_input>x, axis)
reduce_sum: sparse.reduce_sum(sp_input>x, axis, keepdims)
reorder: sparse.reorder(sp_input>x)
softmax: sparse.softmax(sp_input>x)
sparse_dense_matmul: sparse.sparse_dense_matmul(sp_a, b, adjoint_a, adjoint_b)
to_dense: sparse.to_dense(sp_input>x, default_value, validate_indices)
transpose: sparse.transpose(sp_input>x, perm)

[ragged]
constant: ragged.constant(pylist, dtype)
map_flat_values: ragged.map_flat_values
row_splits_to_segment_ids: ragged.row_splits_to_segment_ids(splits)

[signal]
dct: ~signals.dct
fft2d: ~signals.fft2d
fft3d: ~signals.fft3d
fft: ~signals.fft
fftnd: ~signals.fftnd
fftshift: ~signals.fftshift
frame: ~signals.frame
hamming_window: ~signals.hamming_window
hann_window: ~signals.hann_window
idct: ~signals.idct
ifft2d: ~signals.ifft2d
ifft3d: ~signals.ifft3d
ifft: ~signals.ifft
ifftnd: ~signals.ifftnd
ifftshift: ~signals.ifftshift
inverse_stft: ~signals.inverse_stft
inverse_stft_window_fn: ~signals.inverse_stft_window_fn
irfft2d: ~signals.irfft2d
irfft3d: ~signals.irfft3d
irfft: ~signals.irfft
irfftnd: ~signals.irfftnd
kaiser_bessel_derived_window: signal.kaiser_bessel_derived_window(window_length, beta=12.0, dtype)
kaiser_window: signal.kaiser_window(window_length, beta=12.0, dtype)
linear_to_mel_weight_matrix: signal.linear_to_mel_weight_matrix
mfccs_from_log_mel_spectrograms: ~signals.mfccs_from_log_mel_spectrograms
overlap_and_add: signal.overlap_and_add(&signal, frame_step, /)
rfft2d: ~signals.rfft2d
rfft3d: ~signals.rfft3d
rfft: ~signals.rfft
rfftnd: ~signals.rfftnd
stft: ~signals.stft
vorbis_window: signal.vorbis_window(window_length, dtype)
"""
