import hybridflow as hf


def down(x):
    return down(x - 1)


@hf.function
def f(x):
    return down(x)


f(hf.asarray([1.0, 2.0]))
