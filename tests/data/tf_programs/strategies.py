import tensorflow as tf

strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
with strategy.scope():
    v = tf.Variable(1.0)
result = strategy.run(lambda x: x * v, args=(tf.constant(3.0),))
data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
RESULT = {
    "replicas": strategy.num_replicas_in_sync,
    "run": result,
    "reduced": strategy.reduce(tf.distribute.ReduceOp.SUM, result, axis=None),
    "data": [batch for batch in data],
    "default": tf.distribute.get_strategy().num_replicas_in_sync,
}
