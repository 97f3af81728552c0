import hybridflow as hf


@hf.function(strict=True)
def f(x):
    if x[0] > 0:
        y = x
    else:
        y = hf.astype(x, hf.int64)
    return y


f(hf.asarray([1.0, 2.0]))
