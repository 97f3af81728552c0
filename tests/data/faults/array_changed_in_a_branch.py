import numpy as np

import hybridflow as hf


@hf.function(strict=True)
def f(x):
    y = np.zeros(2)
    if x[0] > 0:
        y[0] = 5
    return x + y


f(hf.asarray([1.0, 2.0]))
