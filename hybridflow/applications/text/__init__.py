"""Language models: ``hf.applications.text``.  Their parameters have the names and shapes of Hugging Face's files."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.applications.text.bert import BERT
from hybridflow.applications.text.gpt2 import GPT2
from hybridflow.applications.text.llama import Llama
from hybridflow.applications.text.pretrained import load_tokenizer
from hybridflow.core import name_hints as _name_hints

__all__ = ["BERT", "GPT2", "Llama", "load_tokenizer"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
