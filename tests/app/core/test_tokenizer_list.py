"""What tokenizers are called on screen, and that of the run that is being set up."""

from app.core.text import tokenizer_list
from backend.contract.tokens import options

SPACED = options.format_name("/demo/gpt2", options={"add_prefix_space": True})


def test_the_last_folder_tells_tokenizers_apart_or_two_or_their_options():
    assert tokenizer_list.titles(["/a/bert", "org/gpt2"]) == ["bert", "gpt2"]
    assert tokenizer_list.titles(["/a/b/model", "/a/c/model"]) == ["…/b/model", "…/c/model"]
    assert tokenizer_list.titles(["/demo/gpt2", SPACED])[1].endswith("demo/gpt2 with options")


def test_the_tokenizer_of_a_draft_has_its_options():
    model = {"name_or_path": "/demo/gpt2", "tokenizer": None, "tokenizer_options": {"add_prefix_space": True}}
    assert tokenizer_list.of_draft(model) == (SPACED, "New run · gpt2, with its options")
    assert tokenizer_list.of_draft({"name_or_path": "a/b", "revision": "v1", "tokenizer": "c/d"})[0] == "c/d"
    assert tokenizer_list.of_draft({}) == ("", "")
