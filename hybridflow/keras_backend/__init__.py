"""hybridflow as a backend of Keras 3: import this module before ``keras``.

Keras chooses its backend by name while it is imported, from a fixed list.  An import hook answers for seven of
Keras's modules: to four it adds the branch that names hybridflow, and three it completes.  No file of Keras changes.
"""

from hybridflow.keras_backend.import_hook import install

install()
