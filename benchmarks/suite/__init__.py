"""Programs of all kinds, each written once, on hybridflow and on its peers: ``python -m benchmarks.suite``.

``case`` says what a program is, ``programs`` has them, ``libraries`` what each side calls things, ``worker`` runs in
the process of one side, ``measuring`` asks the sides in turn, ``report`` and ``picture`` show what came out.
"""
