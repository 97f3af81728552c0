"""Architectures: ``hf.applications``.  Their layers have Keras's names, so that its published files of weights fit."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.applications import text
from hybridflow.applications.convnext import ConvNeXtTiny
from hybridflow.applications.densenet import DenseNet121, DenseNet169, DenseNet201
from hybridflow.applications.efficientnet import (
    EfficientNetB0,
    EfficientNetB1,
    EfficientNetB2,
    EfficientNetB3,
    EfficientNetB4,
    EfficientNetB5,
    EfficientNetB6,
    EfficientNetB7,
)
from hybridflow.applications.imagenet import decode_predictions, preprocess_input
from hybridflow.applications.inception import InceptionV3, Xception
from hybridflow.applications.mobilenet import MobileNet, MobileNetV2, MobileNetV3Large, MobileNetV3Small
from hybridflow.applications.residual import ResNet50, ResNet50V2, ResNet101, ResNet101V2, ResNet152, ResNet152V2
from hybridflow.applications.vgg import VGG16, VGG19
from hybridflow.applications.vit import ViTB16
from hybridflow.core import name_hints as _name_hints

__all__ = [
    "VGG16",
    "VGG19",
    "ConvNeXtTiny",
    "DenseNet121",
    "DenseNet169",
    "DenseNet201",
    "EfficientNetB0",
    "EfficientNetB1",
    "EfficientNetB2",
    "EfficientNetB3",
    "EfficientNetB4",
    "EfficientNetB5",
    "EfficientNetB6",
    "EfficientNetB7",
    "InceptionV3",
    "MobileNet",
    "MobileNetV2",
    "MobileNetV3Large",
    "MobileNetV3Small",
    "ResNet50",
    "ResNet50V2",
    "ResNet101",
    "ResNet101V2",
    "ResNet152",
    "ResNet152V2",
    "ViTB16",
    "Xception",
    "decode_predictions",
    "preprocess_input",
    "text",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
