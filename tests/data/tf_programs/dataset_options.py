import tensorflow as tf

opts = tf.data.Options()
opts.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
opts.deterministic = True
opts.threading.private_threadpool_size = 2
ds = tf.data.Dataset.range(10).with_options(opts)
RESULT = {
    "a": [int(v) for v in ds.shard(2, 1)],
    "b": [v.numpy() for v in ds.batch(4, drop_remainder=True)],
    "take": [int(v) for v in ds.skip(3).take(2)],
    "scan": [int(v) for v in ds.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s + x))],
    "while": [int(v) for v in ds.take_while(lambda x: x < 4)],
    "group": [v.numpy() for v in ds.group_by_window(lambda x: x % 2, lambda k, w: w.batch(5), window_size=5)],
    "choose": [
        int(v)
        for v in tf.data.Dataset.choose_from_datasets(
            [tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13)],
            tf.data.Dataset.from_tensor_slices(tf.constant([0, 1, 1, 0], tf.int64)),
        )
    ],
    "unique": [int(v) for v in tf.data.Dataset.from_tensor_slices([1, 2, 2, 1]).unique()],
    "bucket": [
        v.shape.as_list()
        for v in tf.data.Dataset.from_generator(
            lambda: [[1], [1, 2], [1, 2, 3], [1]], output_signature=tf.TensorSpec([None], tf.int32)
        ).bucket_by_sequence_length(lambda x: tf.shape(x)[0], [2], [2, 2])
    ],
    "ragged": ds.options().deterministic,
    "random": len(list(tf.data.Dataset.random(seed=1).take(3))),
    "element": ds.element_spec.shape.as_list(),
    "np": list(ds.take(3).as_numpy_iterator()),
    "rebatch": [v.numpy() for v in ds.batch(4).rebatch(3)],
    "snap": [int(v) for v in ds.cache().repeat(2).take(12)],
}
