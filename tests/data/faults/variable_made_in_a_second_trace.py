import hybridflow as hf


@hf.function
def f(x):
    return x + hf.Variable(1.0)


f(hf.ones((2,)))
f(hf.ones((3, 2)))
