"""hybridflow as a backend of Keras 3: import this module before ``keras``.

Keras chooses its backend by name while it is imported, from a fixed list.  An import hook answers for four of Keras's
modules: it adds to each the branch that names hybridflow, beside those that Keras has.  No file of Keras changes.
"""

from hybridflow.keras_backend.import_hook import install

install()
