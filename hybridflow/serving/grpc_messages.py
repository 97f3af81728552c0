"""The messages of the Open Inference Protocol, version 2, over gRPC: as much of them as is read and written here."""

from __future__ import annotations

import functools
from typing import Any

_PACKAGE = "inference"
SERVICE = f"{_PACKAGE}.GRPCInferenceService"

# Each message with its fields in the order of their numbers: a type, * where it is repeated, and a name; one that is
# "-" is ignored.
_MESSAGES = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "bool live",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "bool ready",
    "ModelReadyRequest": "string name, string version",
    "ModelReadyResponse": "bool ready",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "string name, string version, string* extensions",
    "ModelMetadataRequest": "string name, string version",
    "TensorMetadata": "string name, string datatype, int64* shape",
    "ModelMetadataResponse": "string name, string* versions, string platform, TensorMetadata* inputs, "
    "TensorMetadata* outputs",
    "InferTensorContents": "bool* bools, int32* ints, int64* longs, uint32* uints, uint64* ulongs, float* floats, "
    "double* doubles, bytes* texts",
    "InferInputTensor": "string name, string datatype, int64* shape, -, InferTensorContents contents",
    "InferRequestedOutputTensor": "string name",
    "ModelInferRequest": "string model_name, string model_version, string id, -, InferInputTensor* inputs, "
    "InferRequestedOutputTensor* outputs, bytes* raw_input_contents",
    "InferOutputTensor": "string name, string datatype, int64* shape",
    "ModelInferResponse": "string model_name, string model_version, string id, -, InferOutputTensor* outputs, "
    "bytes* raw_output_contents",
}
METHODS = ("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer")


@functools.cache
def messages() -> dict[str, Any]:
    """The class of each message, by name.  Raises ImportError without the package ``protobuf``."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="open_inference.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, text in enumerate(fields.split(", "), 1):
            kind, _, label = text.partition(" ")
            if not label:
                continue
            is_repeated = kind.endswith("*")
            kind = kind.rstrip("*")
            added = message.field.add(name=label, number=number)
            added.label = field.LABEL_REPEATED if is_repeated else field.LABEL_OPTIONAL
            if kind in _MESSAGES:
                added.type, added.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                added.type = getattr(field, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()  # of our own: programs may have the messages of a client besides
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }
