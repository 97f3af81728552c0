import hybridflow as hf


@hf.function(strict=True)
def f(n):
    return hf.zeros((n,))


f(hf.asarray(3))
