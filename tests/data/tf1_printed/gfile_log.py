import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import tempfile, os

d = tempfile.mkdtemp()
tf.gfile.MakeDirs(os.path.join(d, "a/b"))
with tf.gfile.Open(os.path.join(d, "a/t.txt"), "w") as f:
    f.write("one\ntwo\n")
with tf.gfile.GFile(os.path.join(d, "a/t.txt")) as f:
    print(f.read().split())
with tf.gfile.GFile(os.path.join(d, "a/t.txt"), "r") as f:
    print([l.strip() for l in f], f.size())
print(
    sorted(tf.gfile.ListDirectory(os.path.join(d, "a"))),
    tf.gfile.IsDirectory(d),
    len(tf.gfile.Glob(os.path.join(d, "a/*.txt"))),
)
tf.gfile.Copy(os.path.join(d, "a/t.txt"), os.path.join(d, "u.txt"), overwrite=True)
tf.gfile.Rename(os.path.join(d, "u.txt"), os.path.join(d, "v.txt"), overwrite=True)
print(tf.gfile.Stat(os.path.join(d, "v.txt")).length, [(len(a), len(b), len(c)) for a, b, c in tf.gfile.Walk(d)])
tf.gfile.Remove(os.path.join(d, "v.txt"))
tf.gfile.DeleteRecursively(d)
print(tf.gfile.Exists(d))
tf.logging.set_verbosity(tf.logging.WARN)
print(tf.logging.get_verbosity())
tf.logging.warning("w")
tf.logging.log(tf.logging.DEBUG, "x")
tf.logging.log_every_n(tf.logging.DEBUG, "m", 5)
print(tf.VERSION[:1] in "12", tf.GIT_VERSION is not None)
