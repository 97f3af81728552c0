import hybridflow as hf


@hf.function
def f(x):
    return x[5]


f(hf.ones((2, 3)))
