import hybridflow as hf


@hf.function
def f(n):
    return hf.zeros((n,))


f(hf.asarray(3))
