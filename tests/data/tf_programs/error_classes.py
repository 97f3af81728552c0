import tensorflow as tf

RESULT = {}


def told(name, call, *kinds):
    try:
        call()
    except kinds as error:
        RESULT[name] = [isinstance(error, tf.errors.OpError), bool(str(error))]


invalid = tf.errors.InvalidArgumentError
told("matmul", lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])), invalid)
told("reshape", lambda: tf.reshape(tf.range(6), [4, 2]), invalid)
told("concat", lambda: tf.concat([tf.ones([2, 3]), tf.ones([3, 2])], 0), invalid)
told("add", lambda: tf.ones([2, 3]) + tf.ones([4, 5]), invalid)
told("assert", lambda: tf.debugging.assert_equal(tf.constant([1]), tf.constant([2])), invalid)

last = iter(tf.data.Dataset.range(1))
next(last)
try:
    last.get_next()
except tf.errors.OutOfRangeError:
    RESULT["end"] = True
try:
    tf.io.read_file("/nowhere/at/all")
except tf.errors.NotFoundError:
    RESULT["file"] = True
try:
    tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))
except tf.errors.InvalidArgumentError as error:
    RESULT["message"] = bool(error.message)
names = ["AbortedError", "AlreadyExistsError", "CancelledError", "DataLossError", "DeadlineExceededError"]
names += ["FailedPreconditionError", "InternalError", "PermissionDeniedError", "ResourceExhaustedError"]
names += ["UnavailableError", "UnimplementedError", "UnknownError"]
RESULT["kinds"] = [issubclass(getattr(tf.errors, name), Exception) for name in names]
