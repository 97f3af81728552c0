import hybridflow as hf


@hf.function(strict=True)
def f(x):
    return x * sum(x.tolist())


f(hf.asarray([3.0, 4.0]))
