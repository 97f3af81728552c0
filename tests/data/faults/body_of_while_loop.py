import hybridflow as hf


@hf.function
def f(x):
    return hf.while_loop(lambda i, x: i < 3, lambda i, x: i + 1, (0, x))


f(hf.asarray([1.0, 2.0]))
