"""Tests that files and questions reach the agent through any shell, and that each failure is one clause with a way out."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.machines import Machine, write_machines
from backend.remote import protocol
from backend.remote.connection import (
    NoConnection,
    agent_script,
    connect,
    connect_by_name,
    describe_failure,
    remote_command,
)
from backend.remote.protocol import ConnectionLost
from backend.remote.tree import tree_name

UseSsh = Callable[[str], None]
PLENTY = 1 << 40
"""Bytes that are free there."""


def _quiet(done: int, total: int, unit: str) -> None:
    """Nobody watches."""


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """A file of several pieces."""
    path = tmp_path / "big.bin"
    path.write_bytes(bytes(range(256)) * (protocol.PIECE // 128))
    return path


def test_agent_greets_with_its_folder(machine: Machine, place: Path) -> None:
    with connect("lab", machine) as (_, greeting):
        assert greeting.folder == str(place)
        assert greeting.free_bytes > 0


def test_words_of_a_login_shell_are_passed_over(machine: Machine, use_ssh: UseSsh) -> None:
    use_ssh('echo "Welcome to the lab"; printf "no newline"; echo; exec sh -c "$last"')
    with connect("lab", machine) as (_, greeting):
        assert greeting.versions


@pytest.mark.parametrize("name", ["it's here", "$(touch hurt)", "a;touch hurt", "`touch hurt`", "-rf", "#", "ä ö\\"])
def test_folder_with_a_hostile_name_is_only_a_folder(machine: Machine, place: Path, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    folder = place / name
    with connect("lab", machine.model_copy(update={"folder": str(folder)})) as (_, greeting):
        assert greeting.folder == str(folder)
    assert (folder / "runs").is_dir()
    assert not (tmp_path / "hurt").exists()


def test_files_arrive_and_are_not_sent_again(machine: Machine, place: Path, big: Path) -> None:
    sent: list[int] = []
    with connect("lab", machine) as (connection, _):
        connection.put_files({_digest(big): big}, PLENTY, lambda done, total, unit: sent.append(done))
        assert sent[-1] == big.stat().st_size
        connection.put_files({_digest(big): big}, PLENTY, lambda done, total, unit: sent.append(0))
    assert sent[-1] == big.stat().st_size
    assert (place / "files" / _digest(big)).read_bytes() == big.read_bytes()


def test_files_for_which_there_is_no_room_are_not_sent(machine: Machine, place: Path, big: Path) -> None:
    with (
        connect("lab", machine) as (connection, _),
        pytest.raises(InputError, match=r"lab: .* only 1 MB are free there"),
    ):
        connection.put_files({_digest(big): big}, 1_000_000, _quiet)
    assert list((place / "files").iterdir()) == []


def test_half_sent_file_goes_on_where_it_ended(machine: Machine, place: Path, big: Path) -> None:
    content = big.read_bytes()
    (place / "files").mkdir(parents=True)
    (place / "files" / f"{_digest(big)}.part").write_bytes(content[: protocol.PIECE])
    sent: list[int] = []
    with connect("lab", machine) as (connection, _):
        connection.put_files({_digest(big): big}, PLENTY, lambda done, total, unit: sent.append(total))
    assert sent[-1] == len(content) - protocol.PIECE
    assert (place / "files" / _digest(big)).read_bytes() == content


def test_damaged_file_is_refused_and_forgotten(machine: Machine, place: Path, big: Path) -> None:
    with (
        connect("lab", machine) as (connection, _),
        pytest.raises(InputError, match="lab: a file was damaged on its way"),
    ):
        connection.put_files({"a" * 64: big}, PLENTY, _quiet)
    assert list((place / "files").iterdir()) == []


@pytest.mark.parametrize("digest", ["../../evil", "/etc/passwd", "abc"])
def test_name_that_is_no_digest_is_refused(machine: Machine, place: Path, digest: str) -> None:
    with connect("lab", machine) as (connection, _), pytest.raises(InputError, match="not a SHA-256 digest"):
        connection.ask(protocol.GetMissing(files={digest: 1}), protocol.Missing)


def test_tree_that_leads_outside_is_refused(machine: Machine) -> None:
    files = {"../../outside": "0" * 64}
    with connect("lab", machine) as (connection, _), pytest.raises(InputError, match="not a name inside a folder"):
        connection.ask(protocol.Start(spec="", trees={tree_name(files): files}, run="x"), protocol.Started)


def test_mistake_in_a_spec_is_said_as_burnish_says_it_there(machine: Machine, place: Path) -> None:
    with connect("lab", machine) as (connection, _):
        with pytest.raises(InputError, match=r"lab: .*task"):
            connection.ask(protocol.Start(spec="version: 1\nname: x\n", trees={}, run="x"), protocol.Started)
        connection.ask(protocol.GetMissing(files={}), protocol.Missing)  # the connection goes on
    assert list((place / "runs").iterdir()) == []


def test_name_that_leads_outside_is_not_a_run(machine: Machine) -> None:
    with connect("lab", machine) as (connection, _), pytest.raises(InputError, match="is not a name of a run"):
        connection.ask(protocol.Start(spec="", trees={}, run="../outside"), protocol.Started)


def test_folder_that_cannot_be_used_is_named(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    write_machines({"lab": machine.model_copy(update={"folder": str(tmp_path / "file" / "x")})})
    sentence = r"lab: .*file/x/.*: not a directory; check the path and its permissions, or choose another folder with: burnish machines add lab"
    with pytest.raises(NoConnection, match=sentence), connect_by_name("lab"):
        pass


def test_set_up_commands_that_end_the_shell_are_named(machine: Machine) -> None:
    write_machines({"lab": machine.model_copy(update={"setup": "exit 3"})})
    with (
        pytest.raises(NoConnection, match="its set-up commands end the shell there with code 3"),
        connect_by_name("lab"),
    ):
        pass


def test_run_that_is_not_there_is_named(machine: Machine) -> None:
    with connect("lab", machine) as (connection, _), pytest.raises(InputError, match="gone is not a run folder"):
        connection.ask(protocol.Describe(run="gone"), protocol.Started)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ('echo "ssh: connect to host lab port 22: Connection refused" >&2; exit 255', "nothing answers there"),
        ('echo "someone@lab: Permission denied (publickey)." >&2; exit 255', "does not accept your key"),
        ('echo "Host key verification failed." >&2; exit 255', "host key is unknown"),
        ('echo "ssh: Could not resolve hostname lab: Name or service not known" >&2; exit 255', "name is unknown"),
        ('echo "sh: 1: exec: burnish: not found" >&2; exit 127', "burnish is not installed there"),
        ("echo \"burnish: argument COMMAND: invalid choice: '_agent'\" >&2; exit 2", "too old"),
        ('echo "module: command not found" >&2; exit 1', "module: command not found"),
        ("exit 0", "the connection ended|^$"),
    ],
)  # fmt: skip
def test_reason_of_a_failed_connection(machine: Machine, use_ssh: UseSsh, lines: str, reason: str) -> None:
    use_ssh(lines)
    with pytest.raises(ConnectionLost, match=reason), connect("lab", machine):
        pass


def test_changed_host_key_is_not_taken_for_an_unknown_one() -> None:
    words = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n"
    assert "has changed" in describe_failure(255, words)


GREETING = """echo "burnish agent 1"; echo '{"message":"Greeting","contract_version":"1.0","versions":{},"folder":"/x","free_bytes":1}'"""


def test_machine_that_never_hangs_up_is_left(machine: Machine, use_ssh: UseSsh, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("backend.remote.connection.END_SECONDS", 0.2)
    use_ssh(f"{GREETING}; exec sleep 60")
    started = time.monotonic()
    with connect("lab", machine):
        pass
    assert time.monotonic() - started < 30


def test_agent_that_was_not_asked_for_long_is_not_taken_to_be_gone(machine: Machine, use_ssh: UseSsh, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("backend.remote.connection.SILENCE_SECONDS", 2.0)
    use_ssh(f"""{GREETING}; read question; sleep 1.5; echo '{{"message":"Done"}}'""")
    with connect("lab", machine) as (connection, _):
        time.sleep(2.5)  # as while a large file is sent
        assert connection.ask(protocol.EndNow(run="x"), protocol.Done)


def test_full_disk_there_ends_the_upload(machine: Machine, use_ssh: UseSsh, big: Path) -> None:
    missing = f'{{"message":"Missing","files":{{"{_digest(big)}":0}}}}'
    refused = '{"message":"Refused","reason":"the disk is full"}'
    use_ssh(f"{GREETING}; read question; echo '{missing}'; echo '{refused}'; cat > /dev/null")
    sent: list[int] = []

    def report(done: int, total: int, unit: str) -> None:
        sent.append(done)
        time.sleep(0.3)

    with connect("lab", machine) as (connection, _), pytest.raises(InputError, match="lab: the disk is full"):
        connection.put_files({_digest(big): big}, PLENTY, report)
    assert big.stat().st_size not in sent


def test_other_major_version_of_the_contract_is_refused(machine: Machine, use_ssh: UseSsh) -> None:
    use_ssh(
        """echo "burnish agent 1"; echo '{"message":"Greeting","contract_version":"9.0","versions":{},"folder":"/x","free_bytes":1}'; cat"""
    )
    with pytest.raises(InputError, match="another version of Burnish"), connect("lab", machine):
        pass


def test_no_password_is_asked_and_no_key_is_lent(machine: Machine) -> None:
    command, _ = remote_command(machine, agent_script(machine))
    assert {"BatchMode=yes", "ForwardAgent=no", "ClearAllForwardings=yes"} <= set(command)
    assert command[command.index("--") + 1] == machine.address


@pytest.mark.parametrize("address", ["-oProxyCommand=touch hurt", "", "a b", "lab\nhurt"])
def test_address_that_ssh_would_take_for_an_option_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"ssh|string|address"):
        Machine.model_validate({"address": address})
