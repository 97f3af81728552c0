"""Functions of networks and of images, and random numbers."""

NAMES = """
[nn]
all_candidate_sampler: ~candidates.all_candidate_sampler
fixed_unigram_candidate_sampler: ~candidates.fixed_unigram_candidate_sampler
learned_unigram_candidate_sampler: ~candidates.learned_unigram_candidate_sampler
atrous_conv2d: ~network.atrous_conv2d
convolution: ~network.convolution
conv_transpose: ~network.conv_transpose
conv1d_transpose: ~network.conv1d_transpose
conv3d_transpose: ~network.conv3d_transpose
pool: ~network.pool
max_pool_with_argmax: ~network.max_pool_with_argmax
dilation2d: ~network.dilation2d
erosion2d: ~network.erosion2d
weighted_moments: ~network.weighted_moments
sufficient_statistics: ~network.sufficient_statistics
normalize_moments: ~network.normalize_moments
collapse_repeated: ~network.collapse_repeated
log_poisson_loss: ~special.log_poisson_loss
nce_loss: ~candidates.nce_loss
sampled_softmax_loss: ~candidates.sampled_softmax_loss
avg_pool: ~network.avg_pool
avg_pool1d: ~network.avg_pool1d
avg_pool2d: ~network.avg_pool2d
avg_pool3d: ~network.avg_pool3d
batch_normalization: ~network.batch_normalization
bias_add: ~network.bias_add
compute_average_loss: ~network.compute_average_loss
conv1d: ~network.conv1d
conv2d: ~network.conv2d
conv2d_transpose: ~network.conv2d_transpose
conv3d: ~network.conv3d
crelu: ~network.crelu
ctc_loss: ~network.ctc_loss
depth_to_space: ~arrays.depth_to_space
depthwise_conv2d: ~network.depthwise_conv2d
dropout: ~network.dropout
elu: nn.elu(&features, /)
embedding_lookup: ~network.embedding_lookup
gelu: nn.gelu(&features, /, approximate=False)
in_top_k: ~maths.in_top_k
l2_loss: ~network.l2_loss
l2_normalize: ~maths.l2_normalize
leaky_relu: nn.leaky_relu(&features, /, alpha=0.2)
local_response_normalization, lrn: ~network.local_response_normalization
log_softmax: ~maths.log_softmax
max_pool: ~network.max_pool
max_pool1d: ~network.max_pool1d
max_pool2d: ~network.max_pool2d
max_pool3d: ~network.max_pool3d
moments: ~network.moments
relu: nn.relu(&features, /)
relu6: nn.relu6(&features, /)
scale_regularization_loss: ~network.scale_regularization_loss
selu: nn.selu(&features, /)
separable_conv2d: ~network.separable_conv2d
sigmoid: ~maths.sigmoid
sigmoid_cross_entropy_with_logits: ~network.sigmoid_cross_entropy_with_logits
silu, swish: ~network.silu
softmax: ~maths.softmax
softmax_cross_entropy_with_logits: ~network.softmax_cross_entropy_with_logits
softplus: nn.softplus(&features, /)
softsign: nn.softsign(&features, /)
space_to_depth: ~arrays.space_to_depth
sparse_softmax_cross_entropy_with_logits: ~network.sparse_softmax_cross_entropy_with_logits
tanh: tanh(&x, /)
top_k: ~arrays.top_k
weighted_cross_entropy_with_logits: ~network.weighted_cross_entropy_with_logits
zero_fraction: ~maths.zero_fraction

[random]
Algorithm: ~draws.Algorithm
set_global_generator: ~draws.set_global_generator
create_rng_state: ~draws.create_rng_state
all_candidate_sampler: ~candidates.all_candidate_sampler
fixed_unigram_candidate_sampler: ~candidates.fixed_unigram_candidate_sampler
learned_unigram_candidate_sampler: ~candidates.learned_unigram_candidate_sampler
log_uniform_candidate_sampler: ~candidates.log_uniform_candidate_sampler
uniform_candidate_sampler: ~candidates.uniform_candidate_sampler
stateless_gamma: ~draws.stateless_gamma
stateless_poisson: ~draws.stateless_poisson
stateless_binomial: ~draws.stateless_binomial
Generator: random.Generator
categorical: ~draws.categorical
gamma: ~draws.gamma
get_global_generator: random.global_generator
normal: ~draws.normal
poisson: ~draws.poisson
set_seed: ~draws.set_seed
shuffle: ~draws.shuffle
split: random.split(seed, /, num>count)
fold_in: random.fold_in(seed, data, /)
stateless_categorical: ~draws.stateless_categorical
stateless_normal: ~draws.stateless_normal
stateless_truncated_normal: ~draws.stateless_truncated_normal
stateless_uniform: ~draws.stateless_uniform
truncated_normal: ~draws.truncated_normal
uniform: ~draws.uniform

[random.experimental]
Algorithm: ~draws.Algorithm
set_global_generator: ~draws.set_global_generator
create_rng_state: ~draws.create_rng_state
Generator: random.Generator
get_global_generator: random.global_generator
stateless_shuffle: ~draws.stateless_shuffle
stateless_split: random.split(seed, /, num>count)
stateless_fold_in: random.fold_in(seed, data, /)

[image]
crop_and_resize: ~boxes.crop_and_resize
combined_non_max_suppression: ~boxes.combined_non_max_suppression
non_max_suppression: ~boxes.non_max_suppression
non_max_suppression_overlaps: ~boxes.non_max_suppression_overlaps
non_max_suppression_padded: ~boxes.non_max_suppression_padded
non_max_suppression_with_scores: ~boxes.non_max_suppression_with_scores
draw_bounding_boxes: ~boxes.draw_bounding_boxes
rgb_to_yiq: ~images.rgb_to_yiq
rgb_to_yuv: ~images.rgb_to_yuv
yiq_to_rgb: ~images.yiq_to_rgb
yuv_to_rgb: ~images.yuv_to_rgb
ssim: ~images.ssim
ssim_multiscale: ~images.ssim_multiscale
flip_left_right: ~images.flip_left_right
flip_up_down: ~images.flip_up_down
random_flip_left_right: ~images.random_flip_left_right
random_flip_up_down: ~images.random_flip_up_down
transpose: ~images.transpose
rot90: ~images.rot90
crop_to_bounding_box: ~images.crop_to_bounding_box
pad_to_bounding_box: ~images.pad_to_bounding_box
resize_with_crop_or_pad: ~images.resize_with_crop_or_pad
resize_with_pad: ~images.resize_with_pad
central_crop: ~images.central_crop
random_crop: ~images.random_crop
rgb_to_grayscale: ~images.rgb_to_grayscale
grayscale_to_rgb: ~images.grayscale_to_rgb
convert_image_dtype: ~images.convert_image_dtype
adjust_brightness: ~images.adjust_brightness
adjust_contrast: ~images.adjust_contrast
adjust_gamma: ~images.adjust_gamma
random_brightness: ~images.random_brightness
random_contrast: ~images.random_contrast
adjust_hue: ~images.adjust_hue
adjust_saturation: ~images.adjust_saturation
hsv_to_rgb: ~images.hsv_to_rgb
rgb_to_hsv: ~images.rgb_to_hsv
random_hue: ~images.random_hue
random_saturation: ~images.random_saturation
sobel_edges: ~images.sobel_edges
stateless_random_brightness: ~images.stateless_random_brightness
stateless_random_contrast: ~images.stateless_random_contrast
stateless_random_crop: ~images.stateless_random_crop
stateless_random_flip_left_right: ~images.stateless_random_flip_left_right
stateless_random_flip_up_down: ~images.stateless_random_flip_up_down
stateless_random_hue: ~images.stateless_random_hue
stateless_random_saturation: ~images.stateless_random_saturation
per_image_standardization: ~images.per_image_standardization
resize: ~images.resize
ResizeMethod: ~images.ResizeMethod
total_variation: ~images.total_variation
image_gradients: ~images.image_gradients
psnr: ~images.psnr
extract_patches: ~images.extract_patches
"""
