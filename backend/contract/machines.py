"""Other computers on which runs can be started: `machines.yaml` in the user's configuration folder; it holds no secrets."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from backend.contract import places, spec_file
from backend.contract.errors import InputError
from backend.contract.run.folder import HERE
from backend.contract.safe_files import write_whole
from backend.contract.spec.section import Section, validate

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_OPTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,:/@=+-]{0,199}")
"""Of what becomes an option of a batch script, where a space or a line break would start another one."""
_TIME = re.compile(r"(\d+-)?\d+(:\d+){0,2}")
_ADDRESS = re.compile(r"[A-Za-z0-9_\[][^\s\x00-\x1f\x7f]{0,252}")


class Machine(Section):
    """A computer that `ssh` reaches with the user's own keys and configuration, and how runs are started there."""

    address: str = Field("", title="Address", max_length=253)
    """What you would type after `ssh`: `user@host`, or a Host of your ssh configuration. Empty for this computer, if it submits jobs."""
    folder: str = Field("burnish", title="Folder", min_length=1, max_length=1000)
    """Where runs and data are kept there; a relative folder is taken from the home folder."""
    setup: str = Field("", title="Set up", max_length=2000)
    """Shell commands that make `burnish` available there, such as `source ~/venv/bin/activate`."""
    command: str = Field("burnish", title="Command", min_length=1, max_length=1000)
    """The program `burnish` there, if it is not found by that name."""
    checkpoints: bool = Field(False, title="Copy checkpoints")
    """Also copy the checkpoints back when a run has ended."""
    ssh_config: str = Field("", title="ssh configuration", max_length=1000)
    """A configuration file for `ssh` other than your own."""
    scheduler: str = Field("", title="Scheduler", pattern=r"^[a-z0-9_-]{0,40}$")
    """What starts runs there: empty for Burnish itself, `slurm` or `ray` for a job of such a cluster, or the launcher of an installed package."""
    partition: str = Field("", title="Partition", max_length=200)
    """The partition for jobs, if it is not the cluster's default."""
    account: str = Field("", title="Account", max_length=200)
    """The account that jobs are charged to, if it is not your default."""
    time: str = Field("", title="Time limit", max_length=20)
    """The time limit of a job, such as `4:00:00` or `2-12`. A longer run is queued again and continues."""
    gpus: str = Field("", title="GPUs", max_length=200)
    """How many GPUs of a node a job gets, such as `2` or `a100:2`."""
    script_lines: str = Field("", title="Extra lines", max_length=10_000)
    """More lines of the batch script: `#SBATCH --mem=32G`, or shell commands that run before Burnish."""

    dashboard: str = Field("", title="Dashboard", max_length=500)
    """Where a Ray cluster takes jobs: the address of its dashboard, such as `http://head:8265`."""
    cpus: str = Field("", title="CPUs per worker", max_length=4)
    """How many CPUs a worker of a Ray cluster gets; 1 if empty."""
    open_cluster: bool = Field(False, title="Open cluster")
    """Agree to a Ray cluster at a public address without a token, or with a token but without https."""

    @field_validator("address")
    @classmethod
    def _check_address(cls, address: str) -> str:
        if address and not _ADDRESS.fullmatch(address):  # a leading hyphen would be an option of ssh
            raise ValueError("write it as user@host, or as a Host of your ssh configuration")
        return address

    @field_validator("partition", "account", "gpus")
    @classmethod
    def _check_option(cls, value: str) -> str:
        if value and not _OPTION.fullmatch(value):
            raise ValueError("use only letters, digits and . , : / @ = + _ -")
        return value

    @field_validator("time")
    @classmethod
    def _check_time(cls, time: str) -> str:
        if time and not _TIME.fullmatch(time):
            raise ValueError("write it as hours:minutes:seconds or days-hours, for example 4:00:00")
        return time

    @field_validator("dashboard")
    @classmethod
    def _check_dashboard(cls, dashboard: str) -> str:
        if dashboard and not _is_web_address(dashboard):
            raise ValueError("write it as http://host:8265 or https://host, without a name or a token")
        return dashboard.rstrip("/")

    @field_validator("cpus")
    @classmethod
    def _check_cpus(cls, cpus: str) -> str:
        if cpus and not (cpus.isascii() and cpus.isdecimal() and int(cpus)):
            raise ValueError("write a whole number, for example 8")
        return cpus

    @model_validator(mode="after")
    def _check_place(self) -> "Machine":
        if self.scheduler == "ray" and not self.dashboard:
            raise ValueError("give the address of the Ray cluster's dashboard, for example http://head:8265")
        if not self.address and not self.scheduler:
            raise ValueError("give the address, for example user@host; only a scheduler can do without one")
        return self


def _is_web_address(text: str) -> bool:
    """Whether it is an address of HTTP without what could be a secret, such as a name and a password."""
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
    return is_whole and text.isprintable() and " " not in text and not (parts.username or parts.query or parts.fragment)


def machines_file() -> Path:
    """The file that describes the user's machines."""
    return places.config_folder() / "machines.yaml"


def read_machines() -> dict[str, Machine]:
    """Every machine by name, sorted; none if there is no file. Raises InputError that names the mistake."""
    path = machines_file()
    if not path.exists():
        return {}
    values = spec_file.read(path)
    found = {}
    for name in sorted(values):
        check_name(name)
        if not isinstance(values[name], dict):
            raise InputError("{path}: {name} must have settings such as address", path=path, name=name)
        found[name] = validate(Machine, values[name], name)
    return found


def write_machines(machines: dict[str, Machine]) -> None:
    """Replace the file; whatever equals a default is left out."""
    path = machines_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {name: machine.model_dump(exclude_defaults=True) for name, machine in sorted(machines.items())}
    write_whole(path, spec_file.dump(values).encode(), 0o600)


def find_machine(name: str) -> Machine:
    """The machine with that name. Raises InputError that names those there are."""
    machines = read_machines()
    if name in machines:
        return machines[name]
    if not machines:
        raise InputError(
            "there is no machine {name}; add it with: burnish machines add {name} --address USER@HOST", name=name
        )
    raise InputError("there is no machine {name}; you have {known}", name=name, known=", ".join(machines))


def check_name(name: object) -> None:
    """Raises InputError for a name that could not be used on a command line."""
    if name == HERE:
        raise InputError("{name} means this computer; choose another name for a machine", name=name)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(
            "{name}: use letters, digits, dots, hyphens and underscores for a machine's name", name=repr(name)
        )
