import hybridflow as hf

kept = {}


@hf.function(strict=True)
def f(x):
    while x < 5:
        x = x + 1
        kept["x"] = x
    return x


f(hf.asarray(1.0))
print(kept["x"] + 1)
