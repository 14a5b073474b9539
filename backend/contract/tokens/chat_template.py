"""The plain chat template for a tokenizer without one, and how template errors are reported."""

import traceback

from backend.contract.messages import message

PLAIN = (
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ message.content }}\n\n"
    "{% elif message.role == 'assistant' %}Assistant: {{ message.content }}{{ eos_token }}\n"
    "{% else %}User: {{ message.content }}\n"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
PLAIN_WITH_BEGINNING = "{{ bos_token }}" + PLAIN
"""For a tokenizer that puts a beginning of text before every text: a template writes it itself."""

STUMBLES = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What a template may end with beside jinja2's TemplateError, since it computes."""


def template_among(stored: object) -> str:
    """A tokenizer's template for plain chats, stored as one or as several by name; empty if there is none."""
    one = stored.get("default") if isinstance(stored, dict) else stored
    return one if isinstance(one, str) else ""


def line_of(error: Exception) -> int | None:
    """The template line that an exception mentions, from 1; None if it mentions none."""
    line = getattr(error, "lineno", None)
    if isinstance(line, int):
        return line
    # jinja2 writes its tracebacks as if the template were a file of that name.
    within = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return within[-1] if within else None


def reason_of(error: Exception) -> str:
    """Why a template is invalid, with the line, as part of a sentence: `line 3: unexpected '}'`."""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".").split(". ")
    why = "; ".join(
        one if one.startswith("Jinja") or one[1:2].isupper() else f"{one[:1].lower()}{one[1:]}" for one in reason
    )
    line = line_of(error)
    return why if line is None else message("line {line}: {why}", line=line, why=why)
