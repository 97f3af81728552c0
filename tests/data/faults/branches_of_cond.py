import hybridflow as hf


@hf.function
def f(x):
    return hf.cond(x[0] > 0, lambda: x, lambda: x[0])


f(hf.asarray([1.0, 2.0]))
