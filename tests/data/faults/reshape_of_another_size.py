import hybridflow as hf


@hf.function
def f(x):
    return hf.reshape(x, (4, 4))


f(hf.ones((2, 3)))
