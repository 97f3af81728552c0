import hybridflow as hf


@hf.function
def f(x):
    return hf.sum(x, axis=2)


f(hf.ones((2, 3)))
