import tensorflow as tf
import numpy as np

img = tf.constant(np.random.default_rng(0).random((2, 12, 10, 3)).astype("float32"))
u8 = tf.cast(img * 255, tf.uint8)
I = tf.image
RESULT = {
    "gray": I.rgb_to_grayscale(img)[0, ::4, ::4, 0],
    "crop": I.central_crop(img, 0.5)[0, :, :, 0],
    "resize": I.resize(img, [5, 7])[0, ::2, ::2, 1],
    "bicubic": I.resize(img, [24, 20], method="bicubic")[0, ::7, ::7, 1],
    "area": I.resize(u8, [6, 5], method=I.ResizeMethod.AREA)[0, ::2, ::2, 0],
    "bright": I.adjust_brightness(u8, 0.2)[0, ::5, ::5, 0],
    "sat": I.adjust_saturation(img, 1.5)[0, ::5, ::5],
    "hue": I.adjust_hue(img, 0.1)[0, ::5, ::5],
    "gamma": I.adjust_gamma(img, 2.0, 0.5)[0, ::5, ::5, 0],
    "contrast": I.adjust_contrast(img, 0.4)[0, ::5, ::5, 0],
    "std": I.per_image_standardization(img)[0, ::5, ::5, 0],
    "rot": I.rot90(img, 3)[0, ::5, ::5, 0],
    "pad": list(I.resize_with_pad(img, 16, 16).shape),
    "crops": I.crop_and_resize(img, [[0.1, 0.1, 0.9, 0.6]], [1], [3, 3])[0, :, :, 0],
    "tv": I.total_variation(img),
    "psnr": I.psnr(img, img * 0.9, 1.0),
    "ssim": I.ssim(tf.tile(img, [1, 2, 2, 1]), tf.tile(img, [1, 2, 2, 1]) * 0.8, 1.0),
    "yuv": I.rgb_to_yuv(img)[0, ::5, ::5],
    "patches": list(I.extract_patches(img, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID").shape),
    "box": I.draw_bounding_boxes(img, [[[0.1, 0.1, 0.5, 0.5]]] * 2, [[1.0, 0.0, 0.0]])[0, ::3, ::3, 0],
    "sobel": tf.reduce_sum(tf.abs(I.sobel_edges(img))),
}
RESULT["flip"] = I.stateless_random_flip_left_right(img, seed=(1, 2)).shape.as_list()
RESULT["nms"] = I.non_max_suppression([[0.0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]], [0.9, 0.75, 0.6], 3, 0.5)
