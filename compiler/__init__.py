"""Graph in, Program out.  Text and data only: nothing here runs a kernel or touches a device."""

__traits__ = ("between",)

if __name__ != "hybridflow.compiler":
    raise ImportError("import hybridflow.compiler, not the folder 'compiler': its classes would exist twice")
