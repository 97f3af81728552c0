import hybridflow as hf


@hf.function(strict=True)
def f(x):
    def parts(x):
        if x[0] > 0:
            yield x
        yield x + 1

    return sum(parts(x))


f(hf.asarray([1.0, 2.0]))
