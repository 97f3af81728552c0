import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import sys

flags = tf.app.flags
flags.DEFINE_string("data_dir", "/tmp/data", "where")
flags.DEFINE_integer("batch_size", 32, "size")
flags.DEFINE_float("lr", 0.5, "rate")
flags.DEFINE_boolean("fake", False, "fake")
flags.DEFINE_bool("other", True, "o")
flags.DEFINE_enum("mode", "train", ["train", "eval"], "mode")
flags.DEFINE_list("names", "a,b", "names")
flags.DEFINE_multi_integer("hid", [1, 2], "h")
FLAGS = flags.FLAGS


def main(_):
    print(FLAGS.data_dir, FLAGS.batch_size, FLAGS.lr, FLAGS.fake, FLAGS.other, FLAGS.mode, FLAGS.names, FLAGS.hid)
    FLAGS.batch_size = 64
    print(FLAGS.batch_size, sorted((k for k in FLAGS.flag_values_dict() if k in ("lr", "fake"))))
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.logging.info("x %d", 3)
    print(tf.gfile.Exists("/tmp"), tf.gfile.Exists("/proc/no such folder"))


try:
    tf.app.run(main, ["prog", "--batch_size=8", "--fake", "--noother", "--mode", "eval", "--names=x,y,z"])
except SystemExit as e:
    print("exit", e.code in (None, 0))
