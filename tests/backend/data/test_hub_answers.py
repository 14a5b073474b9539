"""Names that a hub's answer gives are what they may be, or nothing is made of them."""

import pytest

from backend.contract.errors import InputError
from backend.data.hub_answers import check_commit, check_digest, check_file_name, check_revision

BAD_PARTS = [
    "", ".", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "..\\x", "C:\\x\\y", "a\0b", "a\nb", "\x1b[2J", "x" * 256,
    "/".join("ab" for _ in range(400)), "\ud800", None, 7, ["a"], b"a",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_PARTS)
def test_name_that_leads_out_of_a_repository_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="an invalid file name"):
        check_file_name(name)


@pytest.mark.parametrize("name", ["config.json", "sub/modeling.py", "a b.txt", "日本語.json", "..x", "x..y"])
def test_ordinary_name_passes(name: str) -> None:
    assert check_file_name(name) == name


@pytest.mark.parametrize("name", ["CON", "nul.json", "a/Com1.txt", "a.", "a ", "a:b", "a?"])
def test_names_that_windows_keeps_for_itself_are_refused_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_file_name(name)
    monkeypatch.setattr("backend.data.hub_answers.os.name", "nt")
    with pytest.raises(InputError, match="an invalid file name"):
        check_file_name(name)


@pytest.mark.parametrize(
    "commit", ["", "main", "a" * 39, "a" * 41, "A" * 40, "../" + "a" * 37, "a" * 40 + "\n", None, 7]
)
def test_commit_is_forty_hex_digits(commit: object) -> None:
    with pytest.raises(InputError, match="an invalid commit"):
        check_commit(commit)


@pytest.mark.parametrize("digest", ["", "../../x", "/x", "a" * 31, "g" * 40, "a" * 129, "a" * 40 + "\n", None])
def test_digest_is_hex(digest: object) -> None:
    with pytest.raises(InputError, match="an invalid ETag"):
        check_digest(digest)


@pytest.mark.parametrize("revision", ["../../x", "/x", "a\0", "a\\b", ""])
def test_revision_of_a_spec_names_no_other_place(revision: str) -> None:
    with pytest.raises(InputError, match=r"model\.revision: .* is not a branch, tag or commit") as refused:
        check_revision(revision)
    assert refused.value.field == "model.revision"


def test_revision_may_be_a_pull_request() -> None:
    assert check_revision("refs/pr/1") == "refs/pr/1"
