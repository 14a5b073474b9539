"""Owns how a wish to end a run leaves the middle of a long stage."""


class Interrupted(Exception):
    """The run was asked to end in the middle of a long stage."""

    def __init__(self, request: str) -> None:
        super().__init__(request)
        self.request = request
