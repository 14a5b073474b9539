"""Owns the most memory that this process ever had."""

import psutil


def peak_mb() -> float:
    """Most resident memory, in megabytes (10^6 bytes)."""
    used = psutil.Process().memory_info()
    try:
        import resource  # there is none on Windows, which tells it otherwise
    except ImportError:
        return getattr(used, "peak_wset", used.rss) / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if psutil.MACOS else most * 1024 / 1e6
