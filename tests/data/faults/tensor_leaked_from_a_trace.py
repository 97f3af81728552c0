import hybridflow as hf

kept = []


@hf.function(strict=True)
def f(x):
    kept.append(x * 2)
    return x


f(hf.asarray([1.0, 2.0]))
