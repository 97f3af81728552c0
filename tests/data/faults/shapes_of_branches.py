import hybridflow as hf


@hf.function(strict=True)
def f(x):
    if x[0] > 0:
        y = x[:1]
    else:
        y = x
    return y


f(hf.asarray([1.0, 2.0]))
