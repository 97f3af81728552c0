"""Exporting, which Keras asks its backend for."""


class ExportArchive:
    """Refuses: a trained model is exported by hybridflow itself."""

    _WAY = (
        "The hybridflow backend does not export through Keras. Use `hf.saved.save(hf.function(lambda x: model(x), "
        'input_signature=[hf.TensorSpec([None, 8], "float32")]), path)` instead, with the shape of your inputs.'
    )

    def track(self, resource):
        raise NotImplementedError(self._WAY)

    def add_endpoint(self, name, fn, input_signature=None, **kwargs):
        raise NotImplementedError(self._WAY)

    def track_and_add_endpoint(self, name, resource, input_signature, **kwargs):
        raise NotImplementedError(self._WAY)
