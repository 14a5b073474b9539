"""Makes a small model whose architecture is custom code, which leaves a mark when it runs."""

import json
import shutil
from pathlib import Path

from backend.contract.resources import resource

_CONFIGURATION = """
from pathlib import Path

from transformers import PreTrainedConfig

Path({mark!r}).write_text("it ran")


class HomemadeConfig(PreTrainedConfig):
    model_type = "homemade"

    def __init__(self, hidden_size=16, vocab_size=2000, **others):
        self.hidden_size, self.vocab_size = hidden_size, vocab_size
        super().__init__(**others)
"""
_MODEL = """
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from .configuration_homemade import HomemadeConfig
from .mixing import Mixing


class HomemadeBody(PreTrainedModel):
    config_class = HomemadeConfig
    base_model_prefix = "body"

    def __init__(self, config):
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([Mixing(config.hidden_size)])
        self.post_init()

    def get_input_embeddings(self):
        return self.words

    def set_input_embeddings(self, value):
        self.words = value

    def forward(self, input_ids=None, attention_mask=None):
        hidden = self.words(input_ids)
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden * attention_mask[..., None]


class HomemadeForSequenceClassification(PreTrainedModel):
    config_class = HomemadeConfig
    base_model_prefix = "body"

    def __init__(self, config):
        super().__init__(config)
        self.body = HomemadeBody(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def get_input_embeddings(self):
        return self.body.words

    def forward(self, input_ids=None, attention_mask=None, **others):
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        hidden = self.body(input_ids, attention_mask)
        return SequenceClassifierOutput(logits=self.classifier(hidden.sum(1) / attention_mask.sum(1, keepdim=True)))
"""
_MIXING = """
from torch import nn


class Mixing(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.dense = nn.Linear(size, size)

    def forward(self, hidden):
        return hidden + self.dense(hidden).tanh()
"""


def made(folder: Path, mark: Path) -> Path:
    """The model's folder; its code writes `mark` when it is imported."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    bert = resource("demo", "bert-tiny")
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        if (bert / name).is_file():
            shutil.copyfile(bert / name, folder / name)
    words = json.loads((bert / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    config = {
        "model_type": "homemade",
        "architectures": ["HomemadeForSequenceClassification"],
        "hidden_size": 16,
        "vocab_size": words,
        "auto_map": {
            "AutoConfig": "configuration_homemade.HomemadeConfig",
            "AutoModel": "modeling_homemade.HomemadeBody",
            "AutoModelForSequenceClassification": "modeling_homemade.HomemadeForSequenceClassification",
        },
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "configuration_homemade.py").write_text(_CONFIGURATION.format(mark=str(mark)), encoding="utf-8")
    (folder / "modeling_homemade.py").write_text(_MODEL, encoding="utf-8")
    (folder / "mixing.py").write_text(_MIXING, encoding="utf-8")
    draw = torch.Generator().manual_seed(7)
    shapes = {
        "body.words.weight": (words, 16),
        "body.layers.0.dense.weight": (16, 16),
        "body.layers.0.dense.bias": (16,),
    }
    save_file(
        {name: torch.randn(shape, generator=draw) * 0.1 for name, shape in shapes.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    return folder


def cached(source: Path, home: Path, commit: str, name: str = "team/homemade") -> Path:
    """The same in the layout of the hub library's cache below `home`, as `main`'s present commit; its snapshot."""
    repository = home / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / commit
    shutil.copytree(source, snapshot)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(commit, encoding="utf-8")
    return snapshot
