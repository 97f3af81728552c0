import hybridflow as hf


@hf.function(strict=True)
def f(x):
    found = []
    if x[0] > 0:
        found.append(x)
    if x[1] > 0:
        found.append(x[0])
    return hf.stack(found)


f(hf.asarray([1.0, 2.0]))
