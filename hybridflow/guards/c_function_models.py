"""What functions written in C do with what they are given: data for ``calls``.

Names are those of ``__module__`` and ``__name__``.  What is listed nowhere is not known, and a trace that calls it
serves one call only.
"""

from __future__ import annotations

from collections.abc import Collection

# Modules whose functions compute from their arguments alone.
PURE_MODULES = frozenset(
    (
        "_abc",
        "_bisect",
        "_codecs",
        "_collections",
        "_csv",
        "_datetime",
        "_decimal",
        "_functools",
        "_heapq",
        "_json",
        "_operator",
        "_sre",
        "_statistics",
        "_string",
        "_struct",
        "_typing",
        "array",
        "base64",
        "binascii",
        "bisect",
        "builtins",
        "calendar",
        "cmath",
        "collections",
        "colorsys",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "fractions",
        "functools",
        "heapq",
        "html",
        "importlib",
        "inspect",
        "itertools",
        "json",
        "keyword",
        "math",
        "numbers",
        "operator",
        "pprint",
        "re",
        "reprlib",
        "shlex",
        "statistics",
        "string",
        "struct",
        "textwrap",
        "types",
        "typing",
        "unicodedata",
        "weakref",
        "zlib",
    )
)
# Libraries whose functions compute from their arguments alone, but for the modules named below.
PURE_PACKAGES = frozenset(("numpy", "ml_dtypes", "scipy", "hybridflow"))
# Libraries that are pure in traces of training steps alone: what their objects hold is theirs to keep.
PURE_IN_STEPS = frozenset(("keras",))
IMPURE_MODULES = ("numpy.random", "scipy.stats")
# Functions of pure modules that read or change something else.
IMPURE = frozenset(
    (module, name)
    for module, names in {
        "_decimal": ("getcontext",),
        "builtins": ("input", "open"),
        "calendar": ("setfirstweekday",),
        "datetime": ("now", "today", "utcnow"),
        "decimal": ("getcontext", "setcontext"),
        "inspect": ("currentframe", "getsource", "stack", "trace"),
        "numpy": (
            "array2string",
            "array_repr",
            "array_str",
            "datetime64",
            "fromfile",
            "fromregex",
            "genfromtxt",
            "get_printoptions",
            "geterr",
            "geterrcall",
            "load",
            "loadtxt",
            "memmap",
            "save",
            "savetxt",
            "savez",
            "savez_compressed",
            "set_printoptions",
            "setbufsize",
            "seterr",
            "seterrcall",
            "show_config",
            "show_runtime",
        ),
        "pprint": ("pp", "pprint"),
    }.items()
    for name in names
)
_PATHS = ("basename", "commonpath", "commonprefix", "dirname", "isabs", "join", "normcase", "normpath", "split")
_PURE_PATHS = (
    ("Path", "PosixPath", "PurePath", "PurePosixPath", "PureWindowsPath", "WindowsPath")
    + ("as_posix", "as_uri", "is_absolute", "is_relative_to", "joinpath", "match", "full_match", "relative_to")
    + ("with_name", "with_segments", "with_stem", "with_suffix", "__truediv__", "__rtruediv__", "__fspath__")
)
_HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_224", "sha3_256", "sha3_384", "sha3_512")
# Functions of other modules that compute from their arguments alone, be it an object that holds a state of its own.
PURE = frozenset(
    [
        (module, name)
        for module in ("posixpath", "ntpath", "genericpath")
        for name in (*_PATHS, "splitdrive", "splitext")
    ]
    + [("pathlib", name) for name in _PURE_PATHS]
    + [("_hashlib", f"openssl_{name}") for name in (*_HASHES, "shake_128", "shake_256")]
    + [("_hashlib", name) for name in ("new", "pbkdf2_hmac", "scrypt", "compare_digest")]
    + [("hashlib", "__hash_new"), ("hashlib", "new"), ("_blake2", "blake2b"), ("_blake2", "blake2s")]
    + [("posix", "fspath"), ("nt", "fspath"), ("os", "fspath")]
)
# Methods of loggers that do nothing where the logger is not enabled for a level.
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "exception": 40, "critical": 50}
# Functions that look at the frame they are called from.
OF_CALLER = frozenset(
    (
        ("builtins", "breakpoint"),
        ("builtins", "compile"),
        ("builtins", "dir"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("sys", "_getframe"),
        ("sys", "_getframemodulename"),
        ("sys", "exc_info"),
    )
)
# Functions that call what they are given, and keep it no longer than what they return lives.
CALL_AT_ONCE = frozenset(
    [("builtins", name) for name in ("map", "filter", "sorted", "min", "max", "sort")]
    + [("itertools", name) for name in ("accumulate", "dropwhile", "filterfalse", "groupby", "starmap", "takewhile")]
    + [("_functools", "reduce"), ("_functools", "cmp_to_key"), ("heapq", "nlargest"), ("heapq", "nsmallest")]
)
# Methods that change the container they belong to.
MUTATORS = frozenset(
    (
        "__delitem__",
        "__iadd__",
        "__iand__",
        "__imul__",
        "__ior__",
        "__isub__",
        "__ixor__",
        "__setitem__",
        "add",
        "append",
        "appendleft",
        "clear",
        "difference_update",
        "discard",
        "extend",
        "extendleft",
        "insert",
        "intersection_update",
        "move_to_end",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "rotate",
        "setdefault",
        "sort",
        "subtract",
        "symmetric_difference_update",
        "update",
    )
)
# Those among them that return what it holds: objects that were there before the trace.
TAKING = frozenset(("pop", "popitem", "popleft", "setdefault"))
# Methods of containers that read their items, and nothing of the items.
SHALLOW = frozenset(("__iter__", "__reversed__", "copy", "items", "keys", "values"))
# Modules whose functions see of an object what its special methods show, and no more.
LOOKING_MODULES = frozenset(("_functools", "_operator", "builtins", "functools", "itertools", "math", "operator"))
ARRAY_WRITERS = frozenset(("tofile", "dump"))
ARRAY_MUTATORS = frozenset(
    ("byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "setflags", "sort", "__setitem__")
)
# Modules of types written in C whose instances hold a state that their methods read and change.
STATEFUL_TYPES = frozenset(
    (
        "_csv",
        "_io",
        "_random",
        "_thread",
        "_queue",
        "_socket",
        "numpy.random",
        "random",
        "select",
        "mmap",
        "sqlite3",
        "queue",
        "zlib",
    )
)


def is_pure_module(module: str, pure_packages: Collection[str] = ()) -> bool:
    """Whether a library's module computes from arguments alone, but for the functions that are listed as impure.

    So do the modules of ``pure_packages``, in the trace that asks."""
    top = module.partition(".")[0]
    return module in PURE_MODULES or top in PURE_MODULES or top in PURE_PACKAGES or top in pure_packages
