"""TensorFlow's ``tf.keras.applications``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


@tf_export(
    "keras.applications.resnet50.preprocess_input",
    "keras.applications.resnet.preprocess_input",
    "keras.applications.vgg16.preprocess_input",
    "keras.applications.vgg19.preprocess_input",
)
def preprocess_input(x: ArrayLike, data_format: str | None = None, mode: str = "caffe", name: str | None = None) -> Any:
    """Scale pictures with values from 0 to 255 as a network's weights were trained."""
    return hf.applications.preprocess_input(x=x, data_format=data_format, mode=mode)


@tf_export(
    "keras.applications.resnet_v2.preprocess_input",
    "keras.applications.mobilenet.preprocess_input",
    "keras.applications.mobilenet_v2.preprocess_input",
    "keras.applications.inception_v3.preprocess_input",
    "keras.applications.xception.preprocess_input",
)
def resnet_v2_preprocess_input(
    x: ArrayLike, data_format: str | None = None, mode: str = "tf", name: str | None = None
) -> Any:
    """Scale pictures with values from 0 to 255 as a network's weights were trained."""
    return hf.applications.preprocess_input(x=x, data_format=data_format, mode=mode)


@tf_export("keras.applications.densenet.preprocess_input")
def densenet_preprocess_input(
    x: ArrayLike, data_format: str | None = None, mode: str = "torch", name: str | None = None
) -> Any:
    """Scale pictures with values from 0 to 255 as a network's weights were trained."""
    return hf.applications.preprocess_input(x=x, data_format=data_format, mode=mode)


@tf_export(
    "keras.applications.mobilenet_v3.preprocess_input",
    "keras.applications.efficientnet.preprocess_input",
    "keras.applications.convnext.preprocess_input",
)
def unchanged_input(x: Any, data_format: object = None, name: str | None = None) -> Any:
    """The pictures themselves: these networks scale them."""
    return x


export(
    hf.applications.ResNet50,
    "keras.applications.ResNet50",
    "keras.applications.resnet50.ResNet50",
    "keras.applications.resnet.ResNet50",
)
export(hf.applications.ResNet101, "keras.applications.ResNet101", "keras.applications.resnet.ResNet101")
export(hf.applications.ResNet152, "keras.applications.ResNet152", "keras.applications.resnet.ResNet152")
export(hf.applications.ResNet50V2, "keras.applications.ResNet50V2", "keras.applications.resnet_v2.ResNet50V2")
export(hf.applications.ResNet101V2, "keras.applications.ResNet101V2", "keras.applications.resnet_v2.ResNet101V2")
export(hf.applications.ResNet152V2, "keras.applications.ResNet152V2", "keras.applications.resnet_v2.ResNet152V2")
export(hf.applications.MobileNet, "keras.applications.MobileNet", "keras.applications.mobilenet.MobileNet")
export(hf.applications.MobileNetV2, "keras.applications.MobileNetV2", "keras.applications.mobilenet_v2.MobileNetV2")
export(hf.applications.MobileNetV3Small, "keras.applications.MobileNetV3Small")
export(hf.applications.MobileNetV3Large, "keras.applications.MobileNetV3Large")
export(
    hf.applications.EfficientNetB0,
    "keras.applications.EfficientNetB0",
    "keras.applications.efficientnet.EfficientNetB0",
)
export(
    hf.applications.EfficientNetB1,
    "keras.applications.EfficientNetB1",
    "keras.applications.efficientnet.EfficientNetB1",
)
export(
    hf.applications.EfficientNetB2,
    "keras.applications.EfficientNetB2",
    "keras.applications.efficientnet.EfficientNetB2",
)
export(
    hf.applications.EfficientNetB3,
    "keras.applications.EfficientNetB3",
    "keras.applications.efficientnet.EfficientNetB3",
)
export(
    hf.applications.EfficientNetB4,
    "keras.applications.EfficientNetB4",
    "keras.applications.efficientnet.EfficientNetB4",
)
export(
    hf.applications.EfficientNetB5,
    "keras.applications.EfficientNetB5",
    "keras.applications.efficientnet.EfficientNetB5",
)
export(
    hf.applications.EfficientNetB6,
    "keras.applications.EfficientNetB6",
    "keras.applications.efficientnet.EfficientNetB6",
)
export(
    hf.applications.EfficientNetB7,
    "keras.applications.EfficientNetB7",
    "keras.applications.efficientnet.EfficientNetB7",
)
export(hf.applications.VGG16, "keras.applications.VGG16", "keras.applications.vgg16.VGG16")
export(hf.applications.VGG19, "keras.applications.VGG19", "keras.applications.vgg19.VGG19")
export(hf.applications.DenseNet121, "keras.applications.DenseNet121", "keras.applications.densenet.DenseNet121")
export(hf.applications.DenseNet169, "keras.applications.DenseNet169", "keras.applications.densenet.DenseNet169")
export(hf.applications.DenseNet201, "keras.applications.DenseNet201", "keras.applications.densenet.DenseNet201")
export(hf.applications.InceptionV3, "keras.applications.InceptionV3", "keras.applications.inception_v3.InceptionV3")
export(hf.applications.Xception, "keras.applications.Xception", "keras.applications.xception.Xception")
export(hf.applications.ConvNeXtTiny, "keras.applications.ConvNeXtTiny", "keras.applications.convnext.ConvNeXtTiny")
export(hf.applications.preprocess_input, "keras.applications.imagenet_utils.preprocess_input")
export(
    hf.applications.decode_predictions,
    "keras.applications.imagenet_utils.decode_predictions",
    "keras.applications.resnet50.decode_predictions",
    "keras.applications.resnet.decode_predictions",
    "keras.applications.resnet_v2.decode_predictions",
    "keras.applications.mobilenet.decode_predictions",
    "keras.applications.mobilenet_v2.decode_predictions",
    "keras.applications.mobilenet_v3.decode_predictions",
    "keras.applications.efficientnet.decode_predictions",
    "keras.applications.vgg16.decode_predictions",
    "keras.applications.vgg19.decode_predictions",
    "keras.applications.densenet.decode_predictions",
    "keras.applications.inception_v3.decode_predictions",
    "keras.applications.xception.decode_predictions",
    "keras.applications.convnext.decode_predictions",
)
