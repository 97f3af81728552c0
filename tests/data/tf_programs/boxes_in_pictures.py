import numpy as np
import tensorflow as tf

B = tf.image
RESULT = {}


def SHOW(*values):
    RESULT[len(RESULT)] = [np.asarray(v).tolist() if not isinstance(v, list) else v for v in values]


rng = np.random.default_rng(1)
im = rng.random((2, 7, 9, 3)).astype("f4")
bx = np.array([[0, 0, 1, 1], [0.2, 0.3, 0.7, 0.8], [-0.2, 0.1, 1.2, 0.6], [0.9, 0.9, 0.1, 0.2]], "f4")
for m in ("bilinear", "nearest"):
    for sz in ((4, 5), (1, 3), (14, 2)):
        SHOW(np.asarray(B.crop_and_resize(im, bx, [0, 1, 1, 0], sz, m, -1.0)).round(4).ravel()[::3].tolist())
b = np.sort(rng.random((30, 2, 2)), axis=1).reshape(30, 4).astype("f4")
s = rng.random(30).astype("f4")
SHOW(B.non_max_suppression(b, s, 10, 0.3).numpy(), B.non_max_suppression(b, s, 10, 0.3, 0.5).numpy())
i, v = B.non_max_suppression_with_scores(b, s, 8, 0.9, 0.1, 0.5)
SHOW(i.numpy(), v.numpy().round(4))
i, n = B.non_max_suppression_padded(b, s, 12, 0.2, pad_to_max_output_size=True)
SHOW(i.numpy(), n.numpy())
r = B.combined_non_max_suppression(b.reshape(2, 15, 1, 4), rng.random((2, 15, 3)).astype("f4"), 4, 6, 0.3, 0.2)
SHOW([x.numpy().round(4).tolist() for x in r])
SHOW(B.non_max_suppression_overlaps(rng.random((5, 5)).astype("f4"), s[:5], 3, 0.5).numpy())
SHOW(
    B.draw_bounding_boxes(
        im * 0 + 0.5, np.array([[[0.1, 0.2, 0.8, 0.9], [0, 0, 0.5, 0.5]]] * 2, "f4"), [[1.0, 0, 0], [0, 0, 1.0]]
    )
    .numpy()
    .ravel()[::5]
    .tolist()
)
