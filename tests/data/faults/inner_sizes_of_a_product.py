import hybridflow as hf


@hf.function
def f(x, w):
    return x @ w


f(hf.ones((2, 3)), hf.ones((4, 5)))
