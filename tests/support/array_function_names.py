"""The table of array functions of NumPy, JAX and TensorFlow, name by name: what it is here, or why it is not.

    python -m tests.support.array_function_names

prints the lists of names of the libraries that are installed, for ``tests/data/array_function_names.txt``.
``docs/porting/array_functions.md`` is made of these lists, of the public names, and of ``core/name_hints.py``.
For names of ``jax.scipy`` that are none of ours ``tests/data/jax_scipy_words.txt`` says what to write.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

import hybridflow as hf
from hybridflow.core import name_hints
from tests.support.paths import ROOT

DATA = ROOT / "tests" / "data" / "array_function_names.txt"
PAGE = ROOT / "docs" / "porting" / "array_functions.md"
VALUES = ("mgrid", "ogrid", "r_", "c_", "s_", "index_exp", "pi", "e", "inf", "nan", "euler_gamma", "newaxis")
WORDS = ROOT / "tests" / "data" / "jax_scipy_words.txt"
# The modules of jax.scipy, and where their functions are here.
SCIPY = {
    "cluster.vq": "",
    "fft": "signal",
    "integrate": "integrate",
    "interpolate": "interpolate",
    "linalg": "linalg",
    "ndimage": "",
    "optimize": "optimize",
    "signal": "signal",
    "sparse.linalg": "linalg",
    "spatial.transform": "",
    "special": "special",
    "stats": "",
}
LIBRARIES = ("numpy", "jax.numpy", "tensorflow.experimental.numpy", "tensorflow.math")

# What is no function of arrays here, by what it is.
REASONS = {
    "of texts, which tensors do not hold": "array2string array_repr array_str base_repr binary_repr "
    "format_float_positional format_float_scientific typename",
    "of dates, which tensors do not hold": "busday_count busday_offset "
    " datetime_as_string datetime_data is_busday isnat",
    "of the layout in memory, which tensors do not show": "asfortranarray isfortran nested_iters",
    "of matrices as a class of their own": "asmatrix bmat",
    "of NumPy itself": "get_include getbufsize geterr geterrcall info iterable mintypecode setbufsize seterrcall "
    "show_config show_runtime",
    "of files: numpy.savez_compressed, or hf.checkpoint.save_arrays": "savez_compressed fromregex",
    "nothing; tensors have NumPy's methods": "experimental_enable_numpy_behavior",
}
# Names of tf.math that are no names of NumPy; hf.compat.tf.math has each of them under its own.
OF_TF_MATH = {
    "accumulate_n": "x + y + z", "add_n": "x + y + z", "approximate_equal": "hf.abs(x - y) < tolerance",
    "bessel_i0": "hf.special.i0(x)", "bessel_i0e": "hf.special.i0e(x)", "bessel_i1": "hf.special.i1(x)",
    "bessel_i1e": "hf.special.i1e(x)", "confusion_matrix": "hf.histogramdd([labels, predictions], n).counts",
    "cumulative_logsumexp": "hf.cumlogsumexp(x, axis)", "erfcinv": "hf.special.erfcinv(x)",
    "floormod": "hf.remainder(x, y)", "igamma": "hf.special.gammainc(a, x)", "igammac": "hf.special.gammaincc(a, x)",
    "in_top_k": "hf.metrics.sparse_top_k_categorical_accuracy(labels, predictions, k)",
    "invert_permutation": "hf.argsort(x)", "is_finite": "hf.isfinite(x)", "is_inf": "hf.isinf(x)",
    "is_nan": "hf.isnan(x)", "is_non_decreasing": "hf.all(hf.diff(x) >= 0)",
    "is_strictly_increasing": "hf.all(hf.diff(x) > 0)", "l2_normalize": "hf.nn.l2_normalize(x, axis)",
    "lbeta": "hf.sum(hf.special.gammaln(x), -1) - hf.special.gammaln(hf.sum(x, -1))",
    "log_sigmoid": "hf.nn.log_sigmoid(x)", "multiply_no_nan": "hf.where(y == 0, 0, x * y)",
    "ndtri": "hf.special.ndtri(x)", "reciprocal_no_nan": "hf.where(x == 0, 0, 1 / x)", "scalar_mul": "number * x",
    "softsign": "hf.nn.softsign(x)", "squared_difference": "hf.square(x - y)", "truediv": "hf.divide(x, y)",
    "unsorted_segment_max": "hf.segment_max(x, ids, n)", "unsorted_segment_mean": "hf.segment_mean(x, ids, n)",
    "unsorted_segment_min": "hf.segment_min(x, ids, n)", "unsorted_segment_prod": "hf.segment_prod(x, ids, n)",
    "unsorted_segment_sqrt_n": "hf.segment_sum(x, ids, n) / hf.sqrt(hf.bincount(ids, length=n))",
    "xdivy": "hf.where(x == 0, 0, x / y)", "xlog1py": "hf.special.xlog1py(x, y)",
    "zero_fraction": "hf.mean((x == 0).astype(hf.float32))", "zeta": "hf.special.zeta(x, q)",
}  # fmt: skip

HEAD = """# Array functions, name by name

Every function of NumPy {numpy}, `jax.numpy` and `jax.scipy` {jax}, `tf.experimental.numpy` and `tf.math`, and what
it is here. A name of `hf` alone has NumPy's meaning. The tests make this page of the public names, so it is what is
there.

| | names | the same here | another word | no function of arrays |
|---|---|---|---|---|
{counts}

What differs of the functions with NumPy's names:

- integers and bools become float32 where NumPy has float64;
- nothing is changed in place: `hf.put_along_axis` returns a copy;
- sizes that depend on values are found by calls; a saved function is told them, `size=`: `hf.unique`, `hf.nonzero`;
- `hf.partition` sorts all elements, which is a partition;
- `hf.interp` keeps NaN, with one point, too;
- all of them can be compiled, mapped, and differentiated where a derivative exists.
"""


SCIPY_HEAD = """
## Names of `jax.scipy`

Of distributions stands here the logarithm of the density, or of the probability, which is `logpdf` or `logpmf` there;
`hf.random` draws from them.

| name | here |
|---|---|
"""


def names_of(module: ModuleType) -> list[str]:
    """Functions, and what is written with brackets or stands for a number; no classes, no modules."""
    found = []
    for name in sorted(n for n in dir(module) if not n.startswith("_")):
        value = getattr(module, name)
        is_dtype = type(value).__name__ == "_ScalarMeta"  # JAX's
        if not (inspect.isclass(value) or inspect.ismodule(value) or is_dtype) and (callable(value) or name in VALUES):
            found.append(name)
    return found


def recorded() -> dict[str, tuple[str, list[str]]]:
    """The version and the names of each library."""
    rows = [line.split() for line in DATA.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return {library: (version, names) for library, version, *names in rows}


def answer(name: str, of_tf_math: bool = False) -> tuple[str, str]:
    """What a name is here, and which sort of answer that is: "same", "other" or "none"."""
    if name in hf.__all__:
        return f"`hf.{name}`", "same"
    words = OF_TF_MATH.get(name) if of_tf_math else None
    words = words or name_hints.OF_MODULE.get(name)
    if words is not None:
        return words, "other"
    for reason, names in REASONS.items():
        if name in names.split():
            return reason, "none"
    raise KeyError(f"{name}: make it, or say in core/name_hints.py what to write instead")


def page() -> str:
    """The text of the page."""
    lists = recorded()
    rows = []
    for library in LIBRARIES:
        names = lists[library][1]
        kinds = [answer(n, library == LIBRARIES[3])[1] for n in names]
        figures = [len(kinds), *(kinds.count(kind) for kind in ("same", "other", "none"))]
        rows.append(f"| `{library.replace('tensorflow', 'tf')}` | {' | '.join(map(str, figures))} |")
    text = HEAD.format(numpy=lists["numpy"][0], jax=lists["jax.numpy"][0], counts="\n".join(rows))
    parts = [text]
    numpy, jax, tf = (set(lists[library][1]) for library in LIBRARIES[:3])
    parts.append("\n## NumPy's names\n\n| name | NumPy | JAX | TensorFlow | here |\n|---|---|---|---|---|\n")
    for name in sorted(numpy | jax | tf, key=str.lower):
        marks = " | ".join("x" if name in names else "" for names in (numpy, jax, tf))
        parts.append(f"| `{name}` | {marks} | {_cell(answer(name)[0])} |\n")
    parts.append("\n## Names of `tf.math`\n\n| name | here |\n|---|---|\n")
    for name in sorted(lists["tensorflow.math"][1], key=str.lower):
        parts.append(f"| `{name}` | {_cell(answer(name, of_tf_math=True)[0])} |\n")
    parts.append(SCIPY_HEAD)
    for module in SCIPY:
        for name in lists[f"jax.scipy.{module}"][1]:
            parts.append(f"| `{module}.{name}` | {_cell(of_scipy(module, name))} |\n")
    return "".join(parts)


def scipy_words() -> dict[str, str]:
    """What to write for names of jax.scipy."""
    lines = WORDS.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line and line[0] != "#")


def of_scipy(module: str, name: str) -> str:
    """What a name of a module of jax.scipy is here."""
    room = SCIPY[module]
    if room and name in getattr(hf, room).__all__:
        return f"`hf.{room}.{name}`"
    words = scipy_words().get(f"{module}.{name}")
    words = words or (name_hints.OF_ROOM[room].get(name) if room in name_hints.OF_ROOM else None)
    words = words or name_hints.OF_MODULE.get(name)
    if words is None:
        raise KeyError(f"{module}.{name}: make it, or say in {WORDS.name} what to write instead")
    return words


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    for library in LIBRARIES[:2]:
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        version = importlib.import_module(library.partition(".")[0]).__version__
        print(library, version, *names_of(module))


if __name__ == "__main__":
    main()
