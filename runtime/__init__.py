"""Program in, results out: machine code, memory, caches, the native entry, devices."""

__traits__ = ("between", "impure")

if __name__ != "hybridflow.runtime":
    raise ImportError("import hybridflow.runtime, not the folder 'runtime': its classes would exist twice")
