from typing import TypeVar

T = TypeVar("T")

def broadcast_from_rank_zero(data: T) -> T: ...
