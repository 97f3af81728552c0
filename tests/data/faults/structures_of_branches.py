import hybridflow as hf


@hf.function(strict=True)
def f(x):
    if x[0] > 0:
        y = {"a": x}
    else:
        y = {"a": x, "b": x}
    return y["a"]


f(hf.asarray([1.0, 2.0]))
