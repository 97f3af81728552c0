import numpy as np
import tensorflow as tf

images = tf.reshape(tf.range(2 * 4 * 5 * 3, dtype=tf.float32), (2, 4, 5, 3)) / 120.0
bytes_ = tf.cast(tf.round(images * 255), tf.uint8)
found = {
    "flip": tf.image.flip_left_right(images)[0, 0, 0],
    "down": tf.image.flip_up_down(images)[0, 0, 0],
    "rot": [tf.image.rot90(images, k)[1, 0, 1] for k in range(5)],
    "transposed": tf.image.transpose(images[0]).shape.as_list(),
    "crop": tf.image.crop_to_bounding_box(images, 1, 2, 2, 3)[0, 0, 0],
    "pad": tf.image.pad_to_bounding_box(images, 1, 0, 6, 5)[0, :, 0, 0],
    "both": tf.image.resize_with_crop_or_pad(images, 3, 8)[0, 0],
    "both_odd": tf.image.resize_with_crop_or_pad(images, 7, 2)[0, :, 0, 1],
    "centre": tf.image.central_crop(images, 0.5)[0, :, :, 0],
    "grey": tf.image.rgb_to_grayscale(images)[0, 1],
    "grey_bytes": tf.image.rgb_to_grayscale(bytes_)[0, 1],
    "rgb": tf.image.grayscale_to_rgb(images[..., :1])[0, 0, 1],
    "floats": tf.image.convert_image_dtype(bytes_, tf.float32)[0, 0, 2],
    "bytes": tf.image.convert_image_dtype(images, tf.uint8, saturate=True)[0, 0],
    "shorts": tf.image.convert_image_dtype(bytes_, tf.uint16)[0, 0, 2],
    "brighter": tf.image.adjust_brightness(images, 0.2)[0, 0, 0],
    "brighter_bytes": tf.image.adjust_brightness(bytes_, 0.3)[1, 3],
    "contrast": tf.image.adjust_contrast(images, 1.5)[0, 0],
    "gamma": tf.image.adjust_gamma(images, 2.0)[0, 1],
    "standard": tf.image.per_image_standardization(images)[0, 0],
    "bigger": tf.image.resize(images, (7, 9))[0, :, :, 1],
    "smaller": tf.image.resize(images, [2, 3])[1, :, :, 1],
    "of_bytes": tf.image.resize(bytes_, (3, 3))[0, 1],
    "nearest": tf.image.resize(bytes_, (7, 3), method="nearest")[0, :, :, 0],
    "one": tf.image.resize(images[0], (2, 2), method=tf.image.ResizeMethod.BILINEAR),
    "aspect": tf.image.resize(images, (8, 8), preserve_aspect_ratio=True).shape.as_list(),
    "variation": tf.image.total_variation(images),
    "one_variation": tf.image.total_variation(images[0]),
    "gradients": [g[0, :, :, 0] for g in tf.image.image_gradients(images)],
    "psnr": tf.image.psnr(images, images + 0.1, 1.0),
    "patches": tf.image.extract_patches(images, [1, 2, 2, 1], [1, 2, 1, 1], [1, 1, 1, 1], "VALID")[0, 0, 0],
    "same": tf.image.extract_patches(images, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME")[0, 0, 0],
}
twice = tf.image.random_flip_left_right(images)
whole = {tuple(np.round(p.numpy().ravel(), 4)) for p in (images[0], tf.image.flip_left_right(images)[0])}
found["random"] = tuple(np.round(twice[0].numpy().ravel(), 4)) in whole
found["cropped"] = tf.image.random_crop(images, [2, 2, 3, 3]).shape.as_list()
found["between"] = bool(tf.reduce_all(tf.abs(tf.image.random_brightness(images, 0.1) - images) <= 0.1001))


@tf.function
def augment(image):
    image = tf.image.random_flip_up_down(image)
    image = tf.image.resize_with_crop_or_pad(image, 6, 6)
    image = tf.image.random_crop(image, [4, 5, 3])
    return tf.image.random_contrast(image, 0.9, 1.1)


found["augmented"] = augment(images[0]).shape.as_list()
RESULT = found
