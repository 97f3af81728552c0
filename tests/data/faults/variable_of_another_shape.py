import hybridflow as hf

v = hf.Variable(hf.ones((2,)))


@hf.function
def f(x):
    v.assign(x)


f(hf.ones((3,)))
