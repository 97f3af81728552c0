import hybridflow as hf


@hf.function(strict=True)
def f(x):
    items = iter([1.0, 2.0])
    if x[0] > 0:
        x = x + next(items)
    return x + next(items)


f(hf.asarray([1.0, 2.0]))
