import hybridflow as hf


@hf.function
def f(n):
    return hf.sum(hf.arange(n) * 2)


f(hf.asarray(3))
