"""Estimates what PyTorch holds of a forward pass until its backward pass, from a model's configuration.

The numbers that a layer keeps for each token were counted in transformers' models (autograd's saved tensors), as
multiples of the hidden size, of the inner size of its feed-forward part and of the width of its keys and values.
`tests/backend/hardware/test_activations.py` counts them again.
"""

from dataclasses import dataclass, replace
from typing import Any

_MAPS = 3.0
"""Probabilities, what dropout leaves of them, and its mask, for each head and pair of tokens."""
_OUTSIDE = 8.0
"""Multiples of the hidden size outside of the layers: embeddings, final norm, head, and gradients on their way."""
_EAGER = {
    "big_bird", "convbert", "deberta", "deberta-v2", "fnet", "funnel", "gemma2", "gpt_neo", "gptj", "longformer", "longt5",
    "mpnet", "nystromformer", "prophetnet", "reformer", "rembert", "roformer", "squeezebert", "switch_transformers", "xglm",
    "xlm", "xlnet",
}  # fmt: skip
"""Families whose attention is written out in transformers, so that its maps exist."""
_BIASED = {"marian", "bart", "mbart", "pegasus", "blenderbot", "blenderbot-small", "plbart"}
_CHANGES = ("final_logit_softcapping", "logit_scale", "logits_scaling")
"""Families that add to their logits behind the output layer, and settings of those that cap or scale them."""
_OWN_FUNCTION = {"t5", "mt5"}
"""Families whose numbers below include their activation function."""
_WRITTEN_OUT = {"gelu_new": 3.0, "gelu_fast": 3.0, "quick_gelu": 1.0, "relu": -1.0}
"""Numbers of the inner size that an activation function keeps beyond those of one that PyTorch computes at once."""
_DROPOUTS = ("attention_probs_dropout_prob", "attention_dropout", "attn_pdrop", "dropout_rate")
_FUNCTIONS = ("hidden_act", "activation_function", "hidden_activation", "dense_act_fn", "activation")


@dataclass(frozen=True)
class LayerNumbers:
    """The numbers that one layer keeps for each token: multiples of the sizes of its parts."""

    hidden: float
    inner: float
    keys: float = 0.0
    exact: float = 7.0
    """Of those of the hidden size, how many stay float32 where the rest is computed in 16 bits."""


_LAYER_NORM = LayerNumbers(hidden=10, inner=2)
"""BERT and its relatives, and whatever has layer norms."""
_ROOT_MEAN_SQUARE = LayerNumbers(hidden=8, inner=4, keys=2, exact=2.5)
"""Llama and its relatives: root mean square norms, a gated feed-forward part and rotary positions."""
_FAMILIES = {
    "distilbert": LayerNumbers(hidden=9, inner=2),
    "gemma3_text": LayerNumbers(hidden=14, inner=4, keys=4, exact=8),
    "gpt2": LayerNumbers(hidden=10, inner=2, exact=5),
    "gpt_neox": LayerNumbers(hidden=10, inner=2, exact=1),
    "marian": LayerNumbers(hidden=10, inner=2, exact=5),
    "modernbert": LayerNumbers(hidden=10, inner=4, exact=1.5),
    "mt5": LayerNumbers(hidden=12.5, inner=3, exact=12.5),
    "opt": LayerNumbers(hidden=10, inner=2, exact=4),
    "qwen3": LayerNumbers(hidden=10, inner=4, keys=4, exact=3),
    "t5": LayerNumbers(hidden=12.5, inner=3, exact=12.5),
}
_CROSS_ATTENTION = 7.0
"""Multiples of the hidden size that attention to a source adds to a decoder's layer."""


class ModelShape:
    """The sizes that determine memory, read from a Hugging Face configuration whatever its family calls them."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config, self.model_type = config, str(config.get("model_type", ""))
        self.hidden = _first(config, "hidden_size", "d_model", "n_embd", "dim", default=768)
        encoders = _first(
            config, "num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", default=12
        )
        self.decoders = 0
        if config.get("is_encoder_decoder"):
            self.decoders = _first(config, "num_decoder_layers", "decoder_layers", default=encoders)
        self.layers = encoders + self.decoders
        self.heads = _first(config, "num_attention_heads", "n_head", "num_heads", "n_heads", default=12)
        self.vocabulary = _first(config, "vocab_size", default=30_000)
        self.inner = _first(
            config, "intermediate_size", "ffn_dim", "encoder_ffn_dim", "d_ff", "n_inner", "hidden_dim",
            default=4 * self.hidden,
        )  # fmt: skip
        head_size = _first(config, "head_dim", default=self.hidden // max(1, self.heads))
        self.keys = head_size * _first(config, "num_key_value_heads", default=self.heads)
        self.is_tied = bool(config.get("tie_word_embeddings", True))
        self._embeddings = 1 if self.is_tied else 2
        self._feed_forward = 3 if str(config.get("feed_forward_proj", "")).startswith("gated") else 2  # T5 1.1, mT5

    def parameters(self) -> int:
        """Approximate number of parameters of a model of this shape; used only if no weights can be counted."""
        per_layer = 4 * self.hidden**2 + self._feed_forward * self.hidden * self.inner
        attention_to_source = 4 * self.hidden**2 * self.decoders
        return int(self._embeddings * self.vocabulary * self.hidden + self.layers * per_layer + attention_to_source)

    @property
    def numbers(self) -> LayerNumbers:
        """What each layer keeps for a token."""
        found = _FAMILIES.get(self.model_type) or (_ROOT_MEAN_SQUARE if "rms_norm_eps" in self._config else _LAYER_NORM)
        function = next((str(self._config[name]) for name in _FUNCTIONS if name in self._config), "")
        more = 0.0 if self.model_type in _OWN_FUNCTION else _WRITTEN_OUT.get(function, 0.0)
        if self._feed_forward == 3:
            more = 5.0  # two projections instead of one, and GELU written out
        return replace(found, inner=found.inner + more)

    @property
    def changes_logits(self) -> bool:
        """Whether something follows the output layer, so that each part of the logits is computed the long way."""
        return self.model_type in _BIASED or any(self._config.get(name) for name in _CHANGES)

    def has_maps(self, dropout: float | None, *, on_cpu: bool) -> bool:
        """Whether attention maps exist at once: written out, or on a CPU, whose fused kernel knows no dropout."""
        if dropout is None:
            dropout = next((float(self._config[name] or 0) for name in _DROPOUTS if name in self._config), 0.0)
        return self.model_type in _EAGER or (on_cpu and dropout > 0)


def _first(config: dict[str, Any], *names: str, default: int) -> int:
    return next((int(config[name]) for name in names if isinstance(config.get(name), int)), default)


@dataclass(frozen=True)
class Pass:
    """A forward and a backward pass over `rows` sequences of `length` tokens; what trains and how it is computed."""

    shape: ModelShape
    rows: int
    length: int
    has_maps: bool
    is_float32: bool
    recomputes: bool
    adapts: bool
    is_quantized: bool

    @property
    def training_bytes(self) -> float:
        """At the peak, when the backward pass starts."""
        shape, tokens = self.shape, self.rows * self.length
        kept = (
            shape.layers * self._whole_layer_bytes
            + shape.decoders * tokens * _CROSS_ATTENTION * shape.hidden * self._width(0.5)
        )
        outside = _OUTSIDE * tokens * shape.hidden * 4
        if self.recomputes:
            return shape.layers * tokens * shape.hidden * 4 + self.recomputed_bytes + outside
        return kept + self._passing_bytes + outside

    @property
    def recomputed_bytes(self) -> float:
        """What is held of one layer while it is computed again, until the last gradient is there."""
        return self._whole_layer_bytes + 2 * self._passing_bytes if self.recomputes else 0.0

    @property
    def _whole_layer_bytes(self) -> float:
        decoders = self.shape.decoders / max(1, self.shape.layers)
        return self.rows * self.length * self._layer_bytes + self._map_numbers * (1 + decoders) * 4

    @property
    def _passing_bytes(self) -> float:
        return max(self.rows * self.length * self.shape.inner, self._map_numbers / 3) * 4

    @property
    def evaluation_bytes(self) -> float:
        """What one layer holds where no gradients are computed."""
        return self.rows * self.length * (6 * self.shape.hidden + 3 * self.shape.inner) * 4

    @property
    def _layer_bytes(self) -> float:
        """Of one token in one layer, without attention maps."""
        shape, numbers = self.shape, self.shape.numbers
        hidden, exact = numbers.hidden, numbers.exact / numbers.hidden
        if self.adapts:  # no norm trains, so what it scales need not stay; an adapter's inputs are float32
            hidden, exact = hidden - (2 if numbers.keys else 0), 1.0
        # Products with dequantized weights are added to the adapters', which are float32.
        inner = numbers.inner * shape.inner * self._width(0.75 if self.is_quantized else 0.0)
        return hidden * shape.hidden * self._width(exact) + inner + numbers.keys * shape.keys * 4

    @property
    def _map_numbers(self) -> float:
        return _MAPS * self.rows * self.shape.heads * self.length**2 if self.has_maps else 0.0

    def _width(self, exact: float) -> float:
        """Bytes of a number of which this share stays float32 under autocast."""
        return 4 if self.is_float32 else 2 + 2 * exact
