"""Owns how the window starts a process of the backend: which Python, which arguments, which environment."""

from collections.abc import Mapping

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment

from backend.contract.processes import child_environment, python_command


def backend_process(arguments: list[str], environment: Mapping[str, str], parent: QObject) -> QProcess:
    """`python -P -m backend …`, not started yet."""
    program, *words = python_command("backend", *arguments)
    process = QProcess(parent)
    process.setProgram(program)
    process.setArguments(words)
    variables = QProcessEnvironment()
    for name, value in child_environment(environment).items():
        variables.insert(name, value)
    process.setProcessEnvironment(variables)
    return process


def last_line(text: str) -> str:
    """The last line with words: by agreement the sentence for people."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
