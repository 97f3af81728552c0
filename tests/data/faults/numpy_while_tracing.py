import numpy as np

import hybridflow as hf


@hf.function(strict=True)
def f(x):
    return np.exp(x.numpy())


f(hf.asarray(3.0))
