"""Owns where the shipped resources lie: in a checkout beside the packages, in a wheel as `burnish_resources`."""

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def resource(*parts: str) -> Path:
    """The path of a shipped file or folder, for example `resource("demo", "sentiment.yaml")`."""
    installed = _ROOT / "burnish_resources"
    base = installed if installed.is_dir() else _ROOT / "resources"
    return base.joinpath(*parts)
