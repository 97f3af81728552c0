import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

ds = tf.data.Dataset.range(10).map(lambda x: x * x).filter(lambda x: tf.equal(x % 2, 0)).batch(3)
n = tf.data.make_one_shot_iterator(ds).get_next()
with tf.Session() as s:
    while True:
        try:
            print(s.run(n))
        except tf.errors.OutOfRangeError:
            print("end")
            break
max_value = tf.placeholder(tf.int64, shape=[])
dataset = tf.data.Dataset.range(max_value)
iterator = tf.data.make_initializable_iterator(dataset)
next_element = iterator.get_next()
with tf.Session() as s:
    for m in (3, 2):
        s.run(iterator.initializer, feed_dict={max_value: m})
        print([s.run(next_element) for _ in range(m)])
training_dataset = tf.data.Dataset.range(4).map(lambda x: x + tf.constant(100, tf.int64))
validation_dataset = tf.data.Dataset.range(2)
iterator = tf.data.Iterator.from_structure(
    tf.data.get_output_types(training_dataset), tf.data.get_output_shapes(training_dataset)
)
next_element = iterator.get_next()
tr = iterator.make_initializer(training_dataset)
va = iterator.make_initializer(validation_dataset)
with tf.Session() as s:
    for _ in range(2):
        s.run(tr)
        print([s.run(next_element) for _ in range(4)])
        s.run(va)
        print([s.run(next_element) for _ in range(2)])
handle = tf.placeholder(tf.string, shape=[])
iterator = tf.data.Iterator.from_string_handle(
    handle, tf.data.get_output_types(training_dataset), tf.data.get_output_shapes(training_dataset)
)
next_element = iterator.get_next()
ti = tf.data.make_one_shot_iterator(training_dataset.repeat())
vi = tf.data.make_initializable_iterator(validation_dataset)
with tf.Session() as s:
    th = s.run(ti.string_handle())
    vh = s.run(vi.string_handle())
    for _ in range(2):
        print([s.run(next_element, {handle: th}) for _ in range(3)])
        s.run(vi.initializer)
        print([s.run(next_element, {handle: vh}) for _ in range(2)])
feats = np.arange(12, dtype=np.float32).reshape(6, 2)
labs = np.arange(6)
fp = tf.placeholder(feats.dtype, feats.shape)
lp = tf.placeholder(labs.dtype, labs.shape)
ds = tf.data.Dataset.from_tensor_slices((fp, lp)).shuffle(6, seed=1).repeat(2).batch(4)
it = tf.data.make_initializable_iterator(ds)
f, l = it.get_next()
print(f.shape, l.dtype)
w = tf.Variable([[1.0], [2.0]])
out = tf.matmul(f, w)
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    s.run(it.initializer, {fp: feats, lp: labs})
    tot = 0
    for _ in range(3):
        o, y = s.run([out, l])
        tot += o.sum()
        assert np.allclose(o[:, 0], feats[y] @ [1, 2])
    print(tot)


def gen():
    for i in range(3):
        yield (i, [1.0] * i)


ds = tf.data.Dataset.from_generator(
    gen, (tf.int64, tf.float32), (tf.TensorShape([]), tf.TensorShape([None]))
).padded_batch(3, padded_shapes=([], [None]))
a, b = tf.data.make_one_shot_iterator(ds).get_next()
with tf.Session() as s:
    print(s.run([a, b]))
d = (
    tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.range(3, 6)))
    .flat_map(lambda a, b: tf.data.Dataset.from_tensors(a + b))
    .prefetch(1)
)
e = tf.data.make_one_shot_iterator(d).get_next()
with tf.Session() as s:
    print([s.run(e) for _ in range(3)])
ds = tf.data.Dataset.from_tensor_slices({"a": [1, 2, 3], "b": [[1.0], [2.0], [3.0]]}).map(
    lambda r: tf.py_func(lambda x: x * 2, [r["a"]], tf.int32)
)
e = tf.data.make_one_shot_iterator(ds).get_next()
with tf.Session() as s:
    print([s.run(e) for _ in range(3)])
