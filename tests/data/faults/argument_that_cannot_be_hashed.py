import hybridflow as hf


@hf.function
def f(x, options):
    return x


class Options:
    __hash__ = None


f(hf.ones((2,)), Options())
