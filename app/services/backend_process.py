"""Owns how the window starts a process of the backend: which Python, which arguments, which environment."""

import sys
from collections.abc import Mapping

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment


def backend_process(arguments: list[str], environment: Mapping[str, str], parent: QObject) -> QProcess:
    """`python -P -m backend …`, not started yet. `-P`, as folders named `backend` are common in working folders."""
    process = QProcess(parent)
    process.setProgram(sys.executable)
    process.setArguments(["-P", "-m", "backend", *arguments])
    variables = QProcessEnvironment.systemEnvironment()
    for name, value in environment.items():
        variables.insert(name, value)
    process.setProcessEnvironment(variables)
    return process


def last_line(text: str) -> str:
    """The last line with words: by agreement the sentence for people."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
