"""Seeds for a place in a run, and random bits on a CPU faster than PyTorch draws them."""

import hashlib

import numpy as np
import torch


def derive_seed(*place: int | str) -> int:
    """A seed of 64 bits for a run's seed and a place in it, such as a step."""
    key = hashlib.blake2b("/".join(map(str, place)).encode(), digest_size=8).digest()
    return int.from_bytes(key, "little")


def draw_bits(count: int, generator: torch.Generator | None = None) -> np.ndarray:
    """So many uint16 from SFC64 (numpy), which is seeded from torch's generator; torch draws one number after another."""
    seed = int(torch.randint(torch.iinfo(torch.int64).max, (), generator=generator))
    return np.random.SFC64(seed).random_raw(-(-count // 4)).view(np.uint16)[:count]
