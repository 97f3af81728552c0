import tensorflow as tf

RESULT = {}


@tf.function
def scaled(x, n=2, *, flag=True):
    return x * n if flag else x


x = tf.constant([1.0, 2.0])
by_three = scaled.get_concrete_function(x, 3)
RESULT["known"] = [by_three(x), by_three(x=x), by_three(x, 3, flag=True)]
args, kwargs = by_three.structured_input_signature
RESULT["signature"] = [args[0].name, args[1], kwargs]
named = scaled.get_concrete_function(tf.TensorSpec([None], tf.float32, name="value"), 3, flag=False)
RESULT["named"] = [named(tf.constant([1.0, 2.0, 3.0])), named(value=x)]
RESULT["name"] = named.structured_input_signature[0][0].name
for call in (lambda: by_three(), lambda: by_three(x, 4), lambda: by_three(x, x), lambda: by_three(x, y=x)):
    try:
        call()
    except TypeError:
        RESULT["refused"] = RESULT.get("refused", 0) + 1


@tf.function
def combined(a, mode, b):
    return a + b if mode == "add" else a - b


sums = combined.get_concrete_function(x, "add", x)
RESULT["combined"] = [sums(x, x), sums(a=x, b=x), sums(x, b=x), sums(x, "add", x)]


class Scale(tf.Module):
    @tf.function
    def times(self, x, n):
        return x * n


scale = Scale()
times = scale.times.get_concrete_function(x, 5)
RESULT["method"] = [times(x), times(x, 5)]
nested = tf.function(lambda p: p["a"] + 2 * p["b"][0]).get_concrete_function({"b": (x,), "a": x})
RESULT["nested"] = [nested({"a": x, "b": (x,)}), nested(x, x)]
several = tf.function(lambda *xs: tf.add_n(xs)).get_concrete_function(x, x)
RESULT["several"] = [several(x, x), [spec.name for spec in several.structured_input_signature[0]]]
