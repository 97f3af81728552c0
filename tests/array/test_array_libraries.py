"""SciPy and scikit-learn on tensors, through the array API: equal to what they give for NumPy's arrays.

SciPy looks at ``SCIPY_ARRAY_API`` when it is imported, so each half is a process of its own.  Without the library the
test is skipped; scikit-learn, which brings SciPy, is among what the tests are installed with.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.code


SCIPY = """
import numpy as np, scipy, hybridflow as hf
from scipy import cluster, fft, integrate, ndimage, signal, spatial, special, stats

rng = np.random.default_rng(0)
x, y = rng.random((6, 5)), rng.random((6, 5)) + 0.5
w = rng.random(5)
CALLS = {
    "softmax": lambda m, a, b: special.softmax(a, axis=1),
    "log_softmax": lambda m, a, b: special.log_softmax(a, axis=1),
    "logsumexp": lambda m, a, b: special.logsumexp(a, axis=1, b=b),
    "expit": lambda m, a, b: special.expit(a),
    "gammaln": lambda m, a, b: special.gammaln(b),
    "erf": lambda m, a, b: special.erf(a),
    "xlogy": lambda m, a, b: special.xlogy(a, b),
    "entr": lambda m, a, b: special.entr(a),
    "zscore": lambda m, a, b: stats.zscore(a, axis=0),
    "skew": lambda m, a, b: stats.skew(a, axis=0),
    "kurtosis": lambda m, a, b: stats.kurtosis(a, axis=0),
    "moment": lambda m, a, b: stats.moment(a, 3, axis=0),
    "gmean": lambda m, a, b: stats.gmean(b, axis=1),
    "hmean": lambda m, a, b: stats.hmean(b, axis=1),
    "pearsonr": lambda m, a, b: stats.pearsonr(a[:, 0], b[:, 0]).statistic,
    "entropy": lambda m, a, b: stats.entropy(a, axis=0),
    "variation": lambda m, a, b: stats.variation(b, axis=0),
    "directional_stats": lambda m, a, b: stats.directional_stats(a).mean_direction,
    "whiten": lambda m, a, b: cluster.vq.whiten(a),
    "trapezoid": lambda m, a, b: integrate.trapezoid(a, axis=1),
    "detrend": lambda m, a, b: signal.detrend(a, axis=0),
    "convolve": lambda m, a, b: signal.convolve(a[0], b[0]),
    "gaussian_filter": lambda m, a, b: ndimage.gaussian_filter(a, 1.0),
    "dct": lambda m, a, b: fft.dct(a, axis=1),
    "rosen": lambda m, a, b: scipy.optimize.rosen(a),
    "rotation": lambda m, a, b: spatial.transform.Rotation.from_rotvec(a[:, :3]).as_matrix(),
}
import scipy.optimize
failed = []
for name, call in CALLS.items():
    try:
        expected, found = call(np, x, y), call(hf, hf.asarray(x), hf.asarray(y))
        assert isinstance(found, hf.Tensor), type(found)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-12)
    except Exception as error:
        failed.append(f"{name}: {type(error).__name__}: {error}"[:300])
print(len(CALLS) - len(failed), "of", len(CALLS))
print(*failed, sep="\\n")
raise SystemExit(bool(failed))
"""

SKLEARN = """
import numpy as np, sklearn, hybridflow as hf
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, mean_squared_error, r2_score
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances, rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

rng = np.random.default_rng(0)
CALLS = {
    "StandardScaler": lambda X, y, t: StandardScaler().fit(X).transform(X),
    "StandardScaler back": lambda X, y, t: (s := StandardScaler().fit(X)).inverse_transform(s.transform(X)),
    "MinMaxScaler": lambda X, y, t: MinMaxScaler().fit_transform(X),
    "MaxAbsScaler": lambda X, y, t: MaxAbsScaler().fit_transform(X),
    "Normalizer": lambda X, y, t: Normalizer().fit_transform(X),
    "PCA": lambda X, y, t: PCA(2, svd_solver="full").fit(X).transform(X),
    "PCA, covariance": lambda X, y, t: PCA(2, svd_solver="covariance_eigh").fit(X).components_,
    "Ridge": lambda X, y, t: Ridge(solver="svd").fit(X, t).predict(X),
    "Ridge coefficients": lambda X, y, t: Ridge(alpha=0.1, solver="svd").fit(X, t).coef_,
    "LogisticRegression": lambda X, y, t: LogisticRegression().fit(X, y).predict_proba(X),
    "LogisticRegression classes": lambda X, y, t: LogisticRegression().fit(X, y).predict(X),
    "GaussianMixture": lambda X, y, t: GaussianMixture(
        2, init_params="random", random_state=0, max_iter=5, tol=0
    ).fit(X).means_,
    "GaussianMixture proba": lambda X, y, t: GaussianMixture(
        2, init_params="random", random_state=0, max_iter=5, tol=0, covariance_type="diag"
    ).fit(X).predict_proba(X),
    "r2_score": lambda X, y, t: r2_score(t, t * 0.9 + 0.1),
    "mean_squared_error": lambda X, y, t: mean_squared_error(t, t * 0.9),
    "f1_score": lambda X, y, t: f1_score(y, _labels(X), average="macro"),
    "accuracy_score": lambda X, y, t: accuracy_score(y, _labels(X)),
    "euclidean_distances": lambda X, y, t: euclidean_distances(X),
    "cosine_similarity": lambda X, y, t: cosine_similarity(X),
    "rbf_kernel": lambda X, y, t: rbf_kernel(X),
}


def _labels(X):
    xp = hf if isinstance(X, hf.Tensor) else np
    return xp.astype(X[:, 0] > 0, xp.int64)


import warnings
warnings.simplefilter("ignore")
failed, calls = [], 0
for dtype in ("float32", "float64"):
    X = rng.normal(size=(40, 4)).astype(dtype)
    y = (X[:, 0] + 0.5 * X[:, 1] > 0.1).astype(np.int64)
    t = (X @ np.arange(4) + 1).astype(dtype)
    for name, call in CALLS.items():
        calls += 1
        try:
            expected = call(X, y, t)
            with sklearn.config_context(array_api_dispatch=True):
                found = call(*map(hf.asarray, (X, y, t)))
            if np.ndim(expected):
                assert isinstance(found, hf.Tensor), type(found)
            tolerance = 2e-3 if dtype == "float32" else 1e-5
            np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)
        except Exception as error:
            failed.append(f"{name} {dtype}: {type(error).__name__}: {error}"[:300])
print(calls - len(failed), "of", calls)
print(*failed, sep="\\n")
raise SystemExit(bool(failed))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("library", "program"), [("scipy", SCIPY), ("sklearn", SKLEARN)])
def test_library(library: str, program: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
