"""The `model` section: which weights and which tokenizer a run starts from."""

from typing import Annotated, Any, Literal

from pydantic import Field

from backend.contract.spec.section import Section


class ModelSection(Section):
    """Which model is trained."""

    name_or_path: Annotated[str, Field(title="Model", min_length=1, json_schema_extra={"path": True})]
    """A folder with a Hugging Face model, or the ID of a model on the Hub."""
    revision: Annotated[str, Field(title="Revision", json_schema_extra={"advanced": True})] = "main"
    """Branch, tag or commit of a Hub model."""
    tokenizer: Annotated[str | None, Field(title="Tokenizer", json_schema_extra={"path": True, "advanced": True})] = (
        None
    )
    """Folder or Hub ID of a different tokenizer. Empty uses the model's own."""
    initialise: Annotated[Literal["pretrained", "from_config"], Field(title="Start from")] = "pretrained"
    """Pretrained weights, or new random ones from the configuration (training from scratch)."""
    dropout: Annotated[float | None, Field(title="Dropout", ge=0, lt=1, json_schema_extra={"advanced": True})] = None
    """Overrides every dropout probability of the model. Empty keeps those of its configuration."""
    frozen: Annotated[list[str | int], Field(title="Frozen parameters", json_schema_extra={"advanced": True})] = []
    """Which parameters are not trained: `embeddings`, `encoder`, a number of lower layers, or patterns such as
    `*.layer.0.*`."""
    weights: Annotated[
        Literal["auto", "float32", "bfloat16", "int8", "nf4"],
        Field(title="Frozen weights", json_schema_extra={"advanced": True}),
    ] = "auto"
    """Number format in which weights that are not trained (under an adapter, or frozen) are kept in memory; what is
    trained stays in float32. `int8` and `nf4` quantize them to 8 and 4 bits; `nf4` is that of QLoRA. `auto` is bfloat16
    if the file is in bfloat16 and the run computes in it, otherwise float32."""
    config: Annotated[dict[str, Any], Field(title="Config overrides", json_schema_extra={"advanced": True})] = {}
    """Keys of the model's config.json to override, for example `{num_hidden_layers: 4}`."""
    tokenizer_options: Annotated[
        dict[str, Any], Field(title="Tokenizer options", json_schema_extra={"advanced": True})
    ] = {}
    """Options for creating the tokenizer, for example `{add_prefix_space: true}`."""
    new_embeddings: Annotated[
        Literal["mean_of_pieces", "usual"], Field(title="New token embeddings", json_schema_extra={"advanced": True})
    ] = "mean_of_pieces"
    """How to initialize the embeddings of tokens added after pretraining: `mean_of_pieces` averages the pieces that a
    token replaces, `usual` draws them like all new weights."""
    trust_remote_code: Annotated[bool, Field(title="Trust remote code", json_schema_extra={"advanced": True})] = False
    """Some models ship Python code. It only runs if you have approved that repository and commit."""
