"""The heading above a group of rows in a list."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GroupHeading:
    """What the group is called, and how many lines it has."""

    title: str
    count: int
