import hybridflow as hf


@hf.function
def f(xs):
    xs.append(1)
    return xs[0]


f([hf.asarray([1.0, 2.0])])
