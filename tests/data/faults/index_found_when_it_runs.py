import hybridflow as hf


@hf.function
def f(x, i):
    return hf.take(x, i, axis=0)


f(hf.ones((2, 3)), hf.asarray([5]))
