import hybridflow as hf


@hf.function
def f(x):
    return hf.bitwise_and(x, x)


f(hf.ones((3,)))
