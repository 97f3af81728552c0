import hybridflow as hf


@hf.function
def f(x, y):
    return x + y


f(hf.ones((2,)))
