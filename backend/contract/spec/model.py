"""Owns the `model` section: which weights and which tokenizer a run begins with."""

from typing import Annotated, Any, Literal

from pydantic import Field

from backend.contract.spec.section import Section


class ModelSection(Section):
    """Which model is trained."""

    name_or_path: Annotated[str, Field(title="Model", min_length=1, json_schema_extra={"path": True})]
    """A folder with a Hugging Face model, or the id of one on the hub."""
    revision: Annotated[str, Field(title="Revision", json_schema_extra={"advanced": True})] = "main"
    """Branch, tag or commit of a hub model."""
    tokenizer: Annotated[str | None, Field(title="Tokenizer", json_schema_extra={"path": True, "advanced": True})] = (
        None
    )
    """Folder or hub id of another tokenizer; empty takes the model's own."""
    initialise: Annotated[Literal["pretrained", "from_config"], Field(title="Begin with")] = "pretrained"
    """Trained weights, or new ones drawn from the configuration (training from scratch)."""
    dropout: Annotated[float | None, Field(title="Dropout", ge=0, lt=1, json_schema_extra={"advanced": True})] = None
    """Replaces every dropout probability of the model; empty keeps what its configuration says."""
    frozen: Annotated[list[str | int], Field(title="Frozen", json_schema_extra={"advanced": True})] = []
    """What is not trained: `embeddings`, `encoder`, a number of lower layers, patterns such as `*.layer.0.*`."""
    config: Annotated[dict[str, Any], Field(title="Configuration changes", json_schema_extra={"advanced": True})] = {}
    """Keys of the model's config.json that shall differ, for example `{num_hidden_layers: 4}`."""
    tokenizer_options: Annotated[
        dict[str, Any], Field(title="Tokenizer options", json_schema_extra={"advanced": True})
    ] = {}
    """Options given to the tokenizer when it is built, for example `{add_prefix_space: true}`."""
    new_embeddings: Annotated[
        Literal["mean_of_pieces", "usual"], Field(title="New tokens begin as", json_schema_extra={"advanced": True})
    ] = "mean_of_pieces"
    """Embeddings of tokens that the model was not trained with: the mean of the pieces that a token replaces, or
    `usual`, drawn as all new weights are."""
    trust_remote_code: Annotated[bool, Field(title="Run code from the hub", json_schema_extra={"advanced": True})] = (
        False
    )
    """Some models ship Python code. It runs only if you have agreed to that repository and commit."""
