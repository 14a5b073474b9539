"""The Tatoeba Challenge from a folder, an archive and a server: resumed downloads, archives that want to escape."""

import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data import archive
from backend.data.rows import Rows
from backend.data.sources.source import ReadOptions
from backend.data.sources.tatoeba import Settings, Tatoeba

VERSES = Path(__file__).parents[2] / "data" / "parallel"
FILES = tuple(f"{split}.{ending}" for split in ("train", "test") for ending in ("id", "src", "trg"))


class Shop:
    """A server with one archive; it may break off, and it remembers what was asked."""

    def __init__(self, content: bytes) -> None:
        self.content, self.tag = content, '"first"'
        self.break_after: int | None = None
        """Bytes of an answer after which the connection is cut, once."""
        self.size: str | None = ""
        """What it says the archive's size is, where that is not the truth; None says nothing."""
        self.elsewhere = ""
        """Where it sends everybody."""
        self.ranges: list[str | None] = []
        self.sent = 0
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                shop.answer(self)

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}/{{pair}}.tar"

    def answer(self, asked: BaseHTTPRequestHandler) -> None:
        wanted = asked.headers["Range"]
        self.ranges.append(wanted)
        if asked.path != "/eng-spa.tar":
            asked.send_error(404)
            return
        if self.elsewhere:
            asked.send_response(302)
            asked.send_header("Location", self.elsewhere)
            asked.end_headers()
            return
        start = 0
        if wanted and asked.headers["If-Range"] == self.tag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        asked.send_response(206 if start else 200)
        asked.send_header("ETag", self.tag)
        if self.size is not None:
            asked.send_header("Content-Length", self.size or str(len(self.content) - start))
        asked.end_headers()
        end = len(self.content) if self.break_after is None else min(len(self.content), start + self.break_after)
        self.break_after = None
        asked.wfile.write(self.content[start:end])
        self.sent += end - start
        asked.close_connection = True

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def tar_of(members: dict[str, bytes | tarfile.TarInfo], mode: str = "w") -> bytes:
    """An archive with these names; bytes are a file's content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def challenge(mode: str = "w") -> bytes:
    release = "data/release/v2023-09-26/eng-spa"
    return tar_of({f"{release}/{name}": (VERSES / name).read_bytes() for name in FILES}, mode)


@pytest.fixture
def shop() -> Iterator[Shop]:
    one = Shop(challenge())
    yield one
    one.close()


@pytest.fixture
def reading(tmp_path: Path) -> ReadOptions:
    return ReadOptions(tmp_path / "cache")


def read(reading: ReadOptions, split: str = "train", name: str | None = None, **settings: object) -> Rows:
    data = DataSection.model_validate({split: name})
    rows = Tatoeba(Settings.model_validate(settings)).read(split, data, reading)
    assert rows is not None
    return rows


# Folders and archives of this computer


def test_a_folder_gives_sources_and_targets(reading: ReadOptions):
    rows = read(reading, folder=str(VERSES))
    assert len(rows) == 60
    assert rows.table.to_pylist()[0] == {
        "source": "In the beginning God created the heaven and the earth.",
        "target": "EN el principio crió Dios los cielos y la tierra.",
    }


def test_both_directions_give_two_rows_per_line(reading: ReadOptions):
    assert len(read(reading, folder=str(VERSES), direction="both")) == 120


def test_validation_is_test_where_there_is_no_dev(reading: ReadOptions):
    assert read(reading, "validation", folder=str(VERSES)).files == ("test.src",)


def test_test_is_read_only_where_it_is_named(reading: ReadOptions):
    source = Tatoeba(Settings(folder=str(VERSES)))
    assert source.read("test", DataSection(), reading) is None
    assert len(read(reading, "test", "test", folder=str(VERSES))) == 20


def test_a_split_that_is_not_there_is_named_with_those_that_are(reading: ReadOptions):
    with pytest.raises(InputError, match=r"has no dev\.src with a matching dev\.trg; it has train, test"):
        read(reading, "validation", "dev", folder=str(VERSES))


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_gives_the_same_rows_as_its_folder(reading: ReadOptions, tmp_path: Path, mode: str):
    path = tmp_path / "eng-spa.tar.gz"
    path.write_bytes(challenge(mode))
    assert read(reading, folder=str(path)).table == read(reading, folder=str(VERSES)).table


def test_an_archive_that_was_cut_is_refused_and_leaves_nothing(reading: ReadOptions, tmp_path: Path):
    path = tmp_path / "eng-spa.tar"
    path.write_bytes(challenge()[:5000])
    with pytest.raises(InputError, match=r"data\.folder: eng-spa\.tar is not a tar archive, or it is damaged"):
        read(reading, folder=str(path))
    assert [left for left in reading.cache.glob("*") if left.suffix != ".lock"] == []


def test_neither_folder_nor_pair_is_refused(reading: ReadOptions):
    with pytest.raises(InputError, match=r"data\.pair: specify a language pair"):
        read(reading)


# From a server


def test_a_pair_is_fetched_once_and_its_archive_is_not_kept(shop: Shop, reading: ReadOptions):
    assert len(read(reading, pair="eng-spa", address=shop.address)) == 60
    assert len(read(reading, "test", "test", pair="eng-spa", address=shop.address)) == 20
    assert shop.ranges == [None]
    assert list((reading.cache / "downloads").glob("*.tar*")) == []


def test_size_and_progress_are_told(shop: Shop, tmp_path: Path):
    told: list[tuple[int, int, str]] = []
    reading = ReadOptions(tmp_path / "cache", lambda done, total, unit: told.append((done, total, unit)))
    read(reading, pair="eng-spa", address=shop.address)
    assert (len(shop.content), len(shop.content), "bytes") in told


def test_a_connection_that_breaks_goes_on_where_it_stopped(shop: Shop, reading: ReadOptions):
    shop.break_after = 7000
    assert len(read(reading, pair="eng-spa", address=shop.address)) == 60
    assert shop.ranges == [None, "bytes=7000-"]
    assert shop.sent == len(shop.content)


def test_a_stopped_download_goes_on_at_the_next_start(shop: Shop, tmp_path: Path):
    class Stopped(Exception):
        pass

    def stop(done: int, total: int, unit: str) -> None:
        if done and unit == "bytes":
            raise Stopped(done)

    with pytest.raises(Stopped) as stopped:
        read(ReadOptions(tmp_path / "cache", stop), pair="eng-spa", address=shop.address)
    assert len(read(ReadOptions(tmp_path / "cache"), pair="eng-spa", address=shop.address)) == 60
    assert shop.ranges == [None, f"bytes={stopped.value.args[0]}-"]


def test_an_archive_that_changed_meanwhile_is_fetched_from_its_beginning(shop: Shop, tmp_path: Path):
    path = tmp_path / "eng-spa.tar"
    shop.break_after = 7000

    def change(done: int, total: int, unit: str) -> None:
        shop.tag, shop.content = '"second"', b"another file" * 2000

    archive.fetch(shop.address.replace("{pair}", "eng-spa"), path, change)
    assert path.read_bytes() == b"another file" * 2000


def test_a_pair_that_the_server_does_not_have_is_refused_with_the_address(shop: Shop, reading: ReadOptions):
    with pytest.raises(InputError) as caught:
        read(reading, pair="eng-xyz", address=shop.address)
    assert "/eng-xyz.tar cannot be downloaded (the server responded with 404" in str(caught.value)


def test_a_server_that_does_not_answer_is_named(reading: ReadOptions):
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9/eng-spa\.tar cannot be downloaded"):
        read(reading, pair="eng-spa", address="http://127.0.0.1:9/{pair}.tar")


@pytest.mark.parametrize("size", ["abc", "-5", "1e9", str(10**17), "9" * 30])
def test_a_size_that_cannot_be_is_told(shop: Shop, reading: ReadOptions, size: str):
    shop.size = size
    with pytest.raises(InputError, match=r"invalid size|the disk only has room for"):
        read(reading, pair="eng-spa", address=shop.address)


def test_an_answer_without_a_size_is_bounded(shop: Shop, reading: ReadOptions, monkeypatch: pytest.MonkeyPatch):
    shop.size = None
    assert len(read(reading, pair="eng-spa", address=shop.address)) == 60
    monkeypatch.setattr(archive, "LARGEST_UNPACKED", 2000)
    with pytest.raises(InputError, match="did not report a size and sent more than"):
        read(ReadOptions(reading.cache / "other"), pair="eng-spa", address=shop.address)


@pytest.mark.parametrize("address", ["ftp://127.0.0.1:9/eng-spa.tar", "file:///eng-spa.tar"])
def test_a_redirect_leads_to_no_other_kind_of_address(shop: Shop, reading: ReadOptions, address: str):
    shop.elsewhere = address
    with pytest.raises(InputError, match=r"unknown url type|not allowed"):
        read(reading, pair="eng-spa", address=shop.address)


@pytest.mark.parametrize("address", ["http://[::1/{pair}", "http://" + "a" * 300 + "/{pair}", "http://x:99999/{pair}"])
def test_what_is_no_address_is_refused_in_one_sentence(reading: ReadOptions, address: str):
    with pytest.raises(InputError, match="is not a valid URL"):
        read(reading, pair="eng-spa", address=address)


def test_offline_names_address_and_folder(tmp_path: Path):
    with pytest.raises(InputError) as caught:
        read(ReadOptions(tmp_path / "cache", offline=True), pair="eng-spa")
    assert "Tatoeba-Challenge-v2023-09-26/eng-spa.tar" in str(caught.value)
    assert str(tmp_path / "cache" / "downloads") in str(caught.value)


def test_an_archive_brought_by_hand_is_used_offline_and_kept(tmp_path: Path):
    brought = tmp_path / "cache" / "downloads" / "eng-spa.tar"
    brought.parent.mkdir(parents=True)
    brought.write_bytes(challenge())
    assert len(read(ReadOptions(tmp_path / "cache", offline=True), pair="eng-spa")) == 60
    assert brought.is_file()


def test_other_kinds_of_address_are_refused(reading: ReadOptions):
    with pytest.raises(InputError, match="start with https://"):
        read(reading, pair="eng-spa", address="file:///etc/{pair}")


# Archives that want to escape


@pytest.mark.parametrize(
    "name", ["../train.src", "/tmp/train.src", "data/../../train.src", "..\\train.src", "C:/train.src"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(reading: ReadOptions, tmp_path: Path, name: str):
    path = tmp_path / "evil.tar"
    path.write_bytes(tar_of({name: b"gotcha\n"}))
    with pytest.raises(InputError, match="would be written outside its folder"):
        read(reading, folder=str(path))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cache", "evil.tar"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_link_in_place_of_a_file_is_refused(reading: ReadOptions, tmp_path: Path, kind: bytes):
    info = tarfile.TarInfo("eng-spa/train.src")
    info.type, info.linkname = kind, "/etc/passwd"
    path = tmp_path / "evil.tar"
    path.write_bytes(tar_of({"link": info}))
    with pytest.raises(InputError, match="as a link or device"):
        read(reading, folder=str(path))


def test_an_archive_with_two_of_a_file_is_refused(reading: ReadOptions, tmp_path: Path):
    path = tmp_path / "two.tar"
    path.write_bytes(tar_of({"eng-spa/train.src": b"one\n", "eng-fra/train.src": b"two\n"}))
    with pytest.raises(InputError, match=r"contains train\.src twice"):
        read(reading, folder=str(path))


def test_other_files_of_an_archive_are_left_in_it(reading: ReadOptions, tmp_path: Path):
    path = tmp_path / "eng-spa.tar"
    path.write_bytes(
        tar_of({"README.md": b"hello", **{f"eng-spa/{name}": (VERSES / name).read_bytes() for name in FILES}})
    )
    read(reading, folder=str(path))
    assert list(reading.cache.rglob("README.md")) == []
