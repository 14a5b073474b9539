"""Slurm's programs as a few lines of shell, for one job at a time: they understand just what Burnish says to them."""

import os
import signal
from pathlib import Path

_PROGRAMS = {
    "sbatch": r"""
case "$1 $(cat "$2")" in *--partition=nope*)
  echo "sbatch: error: invalid partition specified: nope" >&2
  echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2; exit 1;;
esac
if [ "$1" = --test-only ]; then echo "sbatch: Job 1 to start at 2026-11-27T15:00:00 on nodes n1" >&2; exit; fi
script=$2; shift 2
echo PENDING > "$here/state"; echo $(($(cat "$here/job") + 1)) > "$here/job"; job=$(cat "$here/job")
pwd > "$here/place"
( while [ "$(cat "$here/state")" != CANCELLED ]; do
    if [ -e "$here/hold" ]; then sleep 0.05; continue; fi
    rm -f "$here/requeued"
    SLURM_JOB_ID=$job setsid bash "$script" "$@" >> "job-$job.log" 2>&1 & echo $! > "$here/pid"
    echo RUNNING > "$here/state"
    wait $!; code=$?
    [ -e "$here/requeued" ] && continue
    [ "$(cat "$here/state")" = CANCELLED ] || { [ $code = 0 ] && echo COMPLETED || echo FAILED; } > "$here/ended"
    [ -s "$here/ended" ] && mv "$here/ended" "$here/state"
    break
  done ) > /dev/null 2>&1 &
[ -e "$here/deaf" ] && { echo "sbatch: error: Batch job submission failed: Socket timed out" >&2; exit 1; }
echo "$job"
""",
    "squeue": r"""
[ -e "$here/mute" ] && { echo "slurm_load_jobs error: Socket timed out on send/recv operation" >&2; exit 1; }
case "$*" in *--user=*)
  [ -e "$here/state" ] && echo "$(cat "$here/job")|$(cat "$here/state")|$(cat "$here/place")"; exit 0;;
esac
[ -e "$here/state" ] || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
echo "$(cat "$here/state")|Resources|2026-11-27T15:30:00|2026-11-27T19:30:00"
""",
    "scancel": r"""
echo CANCELLED > "$here/state"
[ -e "$here/pid" ] && kill -TERM -- "-$(cat "$here/pid")" 2> /dev/null; exit 0
""",
    "scontrol": 'echo PENDING > "$here/state"; touch "$here/requeued"',
    "sinfo": "echo 'debug|1|(null)|infinite'; echo 'gpu|4|gpu:a100:2|1-00:00:00'",
    "sacct": 'echo "Slurm accounting storage is disabled" >&2; exit 1',
}


class FakeSlurm:
    """A cluster of one node. While it is held, jobs stay pending."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        (folder / "job").write_text("0")
        for name, lines in _PROGRAMS.items():
            (folder / name).write_text(f'#!/bin/bash\nhere=$(dirname "$0")\n{lines}')
            (folder / name).chmod(0o755)

    def hold(self) -> None:
        """Keep jobs pending."""
        (self._folder / "hold").touch()

    def lose_answers(self) -> None:
        """From now on jobs are submitted, but `sbatch` does not get to know it."""
        (self._folder / "deaf").touch()

    @property
    def jobs(self) -> int:
        """How many it has taken."""
        return int((self._folder / "job").read_text())

    def be_mute(self, is_mute: bool) -> None:
        """Whether it does not say which jobs there are."""
        (self._folder / "mute").touch() if is_mute else (self._folder / "mute").unlink()

    def release(self) -> None:
        """Let jobs start."""
        (self._folder / "hold").unlink()

    @property
    def state(self) -> str:
        """Of the last job."""
        return (self._folder / "state").read_text().strip()

    @state.setter
    def state(self, state: str) -> None:
        (self._folder / "state").write_text(state)

    def warn(self) -> None:
        """Send the signal before a time limit to the batch script, as `--signal=B:USR1` asks for."""
        os.kill(int((self._folder / "pid").read_text()), signal.SIGUSR1)
