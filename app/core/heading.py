"""The heading above a group of rows in a list."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GroupHeading:
    """The group's title, and its number of lines."""

    title: str
    count: int
