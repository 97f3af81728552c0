import numpy as np
import tensorflow as tf

B = tf.image
RESULT = {}
rng = np.random.default_rng(1)
im = rng.random((2, 17, 23, 3)).astype("f4")
im2 = (im + 0.1 * rng.random(im.shape)).astype("f4")


def P(n, x):
    RESULT[str(n)] = [round(float(v), 4) + 0.0 for v in np.asarray(x).ravel()[::37]]


for m in ("bilinear", "nearest", "area", "lanczos3", "lanczos5", "mitchellcubic"):
    for aa in (False, True):
        for sz in ((34, 46), (8, 8), (17, 5)):
            P((m, aa, sz), B.resize(im, sz, m, antialias=aa))
for f in ("rgb_to_yiq", "yiq_to_rgb", "rgb_to_yuv", "yuv_to_rgb"):
    P(f, getattr(B, f)(im))
P("ssim", B.ssim(im, im2, 1.0))
P("ssim7", B.ssim((im * 255).astype("u1"), (im2 * 200).astype("u1"), 255, filter_size=7))
big = rng.random((2, 181, 176, 2)).astype("f4")
P("ms", B.ssim_multiscale(big, (big + 0.2 * rng.random(big.shape)).astype("f4"), 1.0))
P("map", B.ssim(im, im2, 1.0, return_index_map=True))
