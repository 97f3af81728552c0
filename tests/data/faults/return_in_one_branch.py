import hybridflow as hf


@hf.function(strict=True)
def f(x):
    if x[0] > 0:
        return x


f(hf.asarray([1.0, 2.0]))
