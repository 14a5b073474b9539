"""A tokenizer opens from wherever it lies, with nothing stored left switched on, or says what to do."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.tokens.options import TokenOptions
from backend.tokenizers import options
from backend.tokenizers.loading import ensure_pad_token, fingerprint, open_tokenizer

BERT_TINY = resource("demo", "bert-tiny")


@pytest.fixture
def bert_folder(tmp_path: Path) -> Path:
    """A copy of the embedded model's tokenizer that a test may damage."""
    folder = tmp_path / "bert"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copy(BERT_TINY / name, folder)
    return folder


def test_stored_truncation_and_padding_are_switched_off_and_remembered():
    tokenizer = open_tokenizer(str(BERT_TINY))
    assert len(tokenizer("a " * 300, verbose=False)["input_ids"]) == 302
    assert len(tokenizer("a")["input_ids"]) == 3
    assert "truncation to 128 tokens and padding to 128 tokens" in options.stored_truncation(tokenizer)
    sides = {"truncation_side": "right", "padding_side": "right"}
    assert options.stored_options(tokenizer) == TokenOptions(max_length=128, padding="max_length", **sides)


def test_stored_lengths_do_not_travel_with_a_saved_tokenizer(tmp_path: Path):
    open_tokenizer(str(BERT_TINY)).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "tokenizer.json").read_text())
    assert (saved["truncation"], saved["padding"]) == (None, None)
    assert options.stored_truncation(open_tokenizer(str(tmp_path))) == ""


def test_bare_tokenizer_file_opens_like_its_folder():
    from_file = open_tokenizer(str(BERT_TINY / "tokenizer.json"))
    from_folder = open_tokenizer(str(BERT_TINY))
    assert from_file("Not bad!")["input_ids"] == from_folder("Not bad!")["input_ids"]


def test_vocabulary_alone_opens_too(bert_folder: Path):
    (bert_folder / "tokenizer.json").unlink()
    (bert_folder / "tokenizer_config.json").unlink()
    expected = open_tokenizer(str(BERT_TINY))("Not bad!")["input_ids"]
    assert open_tokenizer(str(bert_folder))("Not bad!")["input_ids"] == expected


def test_options_are_given_at_construction(bert_folder: Path):
    tokenizer = open_tokenizer(str(bert_folder), options={"do_lower_case": False})
    assert tokenizer.tokenize("Film") != open_tokenizer(str(bert_folder)).tokenize("Film")


def test_prefix_space_takes_effect_where_the_library_ignores_it(byte_level: Path):
    assert not open_tokenizer(str(byte_level)).tokenize("quick")[0].startswith("Ġ")
    assert open_tokenizer(str(byte_level), options={"add_prefix_space": True}).tokenize("quick")[0].startswith("Ġ")


@pytest.mark.parametrize("option", ["trust_remote_code", "revision", "tokenizer_file"])
def test_options_cannot_change_where_a_tokenizer_comes_from(option: str):
    with pytest.raises(InputError, match=f"{option}.*not a tokenizer option") as caught:
        open_tokenizer(str(BERT_TINY), options={option: True})
    assert caught.value.field == "model.tokenizer_options"


@pytest.mark.parametrize("left", [[], ["config.json"], ["config.json", "tokenizer_config.json"]])
def test_folder_without_tokenizer_says_what_to_set(bert_folder: Path, left: list[str]):
    for path in bert_folder.iterdir():
        if path.name not in left:
            path.unlink()
    with pytest.raises(InputError, match=r"it has no tokenizer .* set model\.tokenizer") as caught:
        open_tokenizer(str(bert_folder))
    assert caught.value.field == "model.tokenizer"


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_damaged_json_names_the_file_each_time(bert_folder: Path, name: str):
    path = bert_folder / name
    path.write_bytes(path.read_bytes()[:50])
    for _ in range(2):
        with pytest.raises(InputError, match=f"{name}: this file is damaged"):
            open_tokenizer(str(bert_folder))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tokenizer.json", "{}", "this file is damaged (it has no model); download it again"),
        ("tokenizer.json", "[" * 100_000, "this file is damaged (it is not a JSON object); download it again"),
        (
            "tokenizer_config.json",
            '{"model_max_length": "lots"}',
            "model_max_length in its tokenizer_config.json is 'lots', not a number",
        ),
        ("tokenizer_config.json", '{"cls_token": ["x"]}', "its tokenizer cannot be opened (Special token cls_token"),
        ("tokenizer_config.json", '{"tokenizer_class": "NoSuchTokenizer"}', "cannot be opened"),
    ],
)
def test_files_that_make_no_sense_are_told_in_a_sentence(bert_folder: Path, name: str, content: str, said: str):
    (bert_folder / name).write_text(content)
    if "NoSuch" in content:
        (bert_folder / "tokenizer.json").unlink()
        (bert_folder / "config.json").unlink()
    with pytest.raises(InputError) as raised:
        open_tokenizer(str(bert_folder))
    assert said in str(raised.value)


def test_a_folder_that_may_not_be_read_is_told_in_a_sentence(bert_folder: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(path: Path, *_: object) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("backend.models.model_files.read_regular", refuse)
    with pytest.raises(InputError, match=r"cannot be read \(permission denied\); check its permissions"):
        open_tokenizer(str(bert_folder))


def test_json_that_is_no_tokenizer_is_refused(tmp_path: Path):
    path = tmp_path / "tokenizer.json"
    path.write_text('{"version": "1.0", "model": {"type": "Unheard"}}')
    with pytest.raises(InputError, match=r"its tokenizer cannot be opened .* set model\.tokenizer"):
        open_tokenizer(str(path))


def test_pickled_tokenizer_is_never_opened(tmp_path: Path):
    (tmp_path / "vocab.pkl").write_bytes(b"cos\nsystem\n(S'touch boom'\ntR.")
    with pytest.raises(InputError, match="only available as a pickle"):
        open_tokenizer(str(tmp_path))
    with pytest.raises(InputError, match="pickled tokenizers are never opened"):
        open_tokenizer(str(tmp_path / "vocab.pkl"))


def test_tokenizer_code_does_not_run_without_consent(bert_folder: Path):
    config = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Mine", None]}}
    (bert_folder / "tokenizer_config.json").write_text(json.dumps(config))
    (bert_folder / "mine.py").write_text(f"open({str(bert_folder / 'ran')!r}, 'w')")
    with pytest.raises(InputError, match=r"runs its own Python code \(mine\.py\), and you have not approved"):
        open_tokenizer(str(bert_folder))
    assert not (bert_folder / "ran").exists()


def test_name_that_is_nowhere_is_one_sentence():
    with pytest.raises(InputError, match=r"no such folder, it is not in the Hub cache and the Hub was not contacted"):
        open_tokenizer("nobody/nothing")


def test_path_that_is_nowhere_is_one_sentence(tmp_path: Path):
    with pytest.raises(InputError, match="there is no such folder, and this is not a Hub ID either"):
        open_tokenizer(str(tmp_path / "gone" / "model"))


def test_fingerprint_outlives_calls_and_copies(tmp_path: Path):
    tokenizer = open_tokenizer(str(BERT_TINY))
    before = fingerprint(tokenizer)
    tokenizer(["a", "a b c"], truncation=True, max_length=3, padding=True)
    assert fingerprint(tokenizer) == before
    copy = shutil.copytree(BERT_TINY, tmp_path / "elsewhere")
    assert fingerprint(open_tokenizer(str(copy))) == before


def test_fingerprint_is_the_same_in_every_release():
    """The order of the rows is drawn from it: with another one, every run trains, and resumes, in another order."""
    assert fingerprint(open_tokenizer(str(BERT_TINY))) == "7a7871d3b828f39521b6e1f524c22276"


def test_fingerprint_changes_with_the_chat_template(byte_level: Path):
    tokenizer = open_tokenizer(str(byte_level))
    before = fingerprint(tokenizer)
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    assert fingerprint(tokenizer) != before


def test_fingerprint_changes_with_options_and_vocabulary(byte_level: Path, unigram: Path):
    plain = fingerprint(open_tokenizer(str(byte_level)))
    assert plain != fingerprint(open_tokenizer(str(byte_level), options={"add_prefix_space": True}))
    assert plain != fingerprint(open_tokenizer(str(byte_level), options={"padding_side": "left"}))
    assert plain != fingerprint(open_tokenizer(str(unigram)))


def test_missing_padding_token_falls_back_on_end_of_text(byte_level: Path):
    tokenizer = open_tokenizer(str(byte_level))
    assert ensure_pad_token(tokenizer) == tokenizer.eos_token_id
    assert tokenizer.pad_token is None
    assert ensure_pad_token(open_tokenizer(str(BERT_TINY))) == 0


def test_opens_where_no_framework_is_installed(tmp_path: Path):
    """A process whose packages are all of ours but torch and jax."""
    packages = tmp_path / "packages"
    packages.mkdir()
    site = Path(pytest.__file__).parents[1]
    for entry in site.iterdir():
        if not entry.name.startswith(("torch", "functorch", "jax", "flax", "accelerate", "__editable__", "_editable")):
            (packages / entry.name).symlink_to(entry)
    code = (
        "import sys; from backend.tokenizers.loading import open_tokenizer\n"
        f"print(open_tokenizer({str(BERT_TINY)!r})('film')['input_ids'], 'torch' in sys.modules)"
    )
    paths = f"import sys; sys.path[:0] = {[str(packages), str(Path(__file__).parents[3])]!r}\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", paths + code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.strip() == "[101, 2143, 102] False", done.stderr
