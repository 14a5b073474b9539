"""Measures how many rows of training data a chat template writes out a second, in this process and in the one with limits.

    .venv/bin/python -m tests.benchmarks.chat_templates

`here` renders each beginning of a conversation in this process, as Burnish did before templates had limits; `limited` is
what it does now. `+ tokens` is either with the tokens made of the text, which is what a run waits for.
"""

import time
from collections.abc import Callable

from transformers import AutoTokenizer

from backend.contract.resources import resource
from backend.tasks._chat import ChatTemplate, Message, RenderedConversation, is_answered, tokens_of

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SHAPES = {"instructions, 2 messages": (2, 6000), "chats, 10 messages": (10, 1000), "chats, 40 messages": (40, 150)}
ROUNDS = 3


def main() -> None:
    """Print a line for each kind of conversation."""
    tokenizer = AutoTokenizer.from_pretrained(str(resource("demo", "bert-tiny")))
    template = ChatTemplate(CHATML, tokenizer)
    template.write([[{"role": "user", "content": "warm"}]], [""])

    def text(messages: list[Message], prompt: bool) -> str:
        return tokenizer.apply_chat_template(
            messages, chat_template=CHATML, tokenize=False, add_generation_prompt=prompt
        )  # fmt: skip

    def here(conversations: list[list[Message]]) -> list[RenderedConversation]:
        found = []
        for messages in conversations:
            whole, answers = text(messages, not is_answered(messages)), []
            for number, message in enumerate(messages):
                if message["role"] == "assistant":
                    last = number == len(messages) - 1
                    until = whole if last else text(messages[: number + 1], False)
                    answers.append((len(text(messages[:number], True)), len(until)))
            found.append(RenderedConversation(whole, answers))
        return found

    def limited(conversations: list[list[Message]]) -> list[RenderedConversation]:
        return template.write(conversations, [""] * len(conversations))

    for name, (turns, rows) in SHAPES.items():
        conversations = [_conversation(row, turns) for row in range(rows)]
        assert here(conversations[:50]) == limited(conversations[:50])
        rates = []
        for tokens in (False, True):
            ways = [_then_tokens(way, tokenizer) if tokens else way for way in (here, limited)]
            rates += [max(one) for one in zip(*([_rate(way, conversations) for way in ways] for _ in range(ROUNDS)), strict=True)]  # fmt: skip
        print(
            f"{name:<26} here {rates[0]:>7.0f}  limited {rates[1]:>7.0f}  ({rates[1] / rates[0]:.2f})"
            f"   + tokens: here {rates[2]:>6.0f}  limited {rates[3]:>6.0f} rows/s  ({rates[3] / rates[2]:.2f})"
        )


def _conversation(row: int, turns: int) -> list[Message]:
    words = "the quick brown fox jumps over the lazy dog " * 8
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": f"{row} {number} {words}"} for number in range(turns)]


def _then_tokens(way: Callable[[list[list[Message]]], list[RenderedConversation]], tokenizer: object) -> Callable:
    return lambda conversations: tokens_of(way(conversations), tokenizer)


def _rate(way: Callable[[list[list[Message]]], object], conversations: list[list[Message]]) -> float:
    begun = time.perf_counter()
    for start in range(0, len(conversations), 1000):
        way(conversations[start : start + 1000])
    return len(conversations) / (time.perf_counter() - begun)


if __name__ == "__main__":
    main()
