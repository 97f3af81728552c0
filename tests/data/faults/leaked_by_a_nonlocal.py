import hybridflow as hf

kept = None


@hf.function(strict=True)
def f(x):
    global kept
    kept = x * 2
    return x


f(hf.asarray([1.0, 2.0]))
kept + 1
