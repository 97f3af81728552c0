import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
labels = tf.placeholder(tf.int64, [None])
preds = tf.placeholder(tf.int64, [None])
sc = tf.placeholder(tf.float32, [None])
acc, acc_op = tf.metrics.accuracy(labels, preds, name="acc")
mean, mean_op = tf.metrics.mean(sc)
p, p_op = tf.metrics.precision(labels, preds)
r, r_op = tf.metrics.recall(labels, preds)
auc, auc_op = tf.metrics.auc(labels, sc)
iou, iou_op = tf.metrics.mean_iou(labels, preds, 2)
rm, rm_op = tf.metrics.root_mean_squared_error(tf.cast(labels, tf.float32), sc)
mae, mae_op = tf.metrics.mean_absolute_error(tf.cast(labels, tf.float32), sc)
fp, fp_op = tf.metrics.false_positives(labels, preds)
tp, tp_op = tf.metrics.true_positives(labels, preds)
pc, pc_op = tf.metrics.mean_per_class_accuracy(labels, preds, 2)
print(sorted((v.name for v in tf.local_variables() if "acc/" in v.name and "per" not in v.name)))
running_vars = tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES, scope="acc")
reset = tf.variables_initializer(var_list=running_vars)
with tf.Session() as s:
    s.run(tf.local_variables_initializer())
    for l, q, v in (([1, 0, 1, 1], [1, 1, 1, 0], [0.9, 0.6, 0.8, 0.3]), ([0, 0, 1], [0, 0, 1], [0.1, 0.2, 0.7])):
        f = {labels: l, preds: q, sc: v}
        print(s.run([acc_op, mean_op, p_op, r_op, auc_op, rm_op, mae_op, fp_op, tp_op], f))
        s.run([iou_op, pc_op], f)
    print(s.run([acc, mean, p, r, auc, iou, rm, mae, fp, tp]))
    s.run(reset)
    print(s.run(acc))
