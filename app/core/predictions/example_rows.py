"""Owns rows to try a model with where no run's data is at hand: a few for each task, by part."""

from typing import Any

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "text_classification": [
        {"text": "Funny, warm and beautifully played."},
        {"text": "The waiter was rude and the soup was cold.", "text_pair": "The service was poor."},
        {"text": "A man is playing a guitar on the street.", "text_pair": "Nobody is making music."},
    ],
    "text_regression": [
        {"text": "A plane is taking off.", "text_pair": "An air plane is taking off."},
        {"text": "A cat sleeps on the sofa.", "text_pair": "Stock prices fell today."},
    ],
    "token_classification": [
        {"tokens": "Ada Lovelace met Charles Babbage in London in 1833 ."},
        {"tokens": "The European Commission sits in Brussels ."},
    ],
    "question_answering": [
        {
            "question": "Where did Marie Curie study?",
            "context": "Marie Curie was born in Warsaw in 1867. At the age of 24 she followed her sister to Paris, where "
            "she studied at the Sorbonne and did most of her scientific work.",
        },
        {
            "question": "How high is the tower?",
            "context": "The tower was built in 1889 for the world's fair. It is 330 metres high, as tall as a building "
            "of 81 storeys.",
        },
    ],
    "seq2seq_lm": [
        {"source": "I have a small house near the river."},
        {"source": "The children are playing in the garden."},
    ],
    "causal_lm": [
        {"text": "It is a truth universally acknowledged,", "prompt": "Name three rivers of Europe."},
        {"text": "She looked out of the window and", "prompt": "Explain in one sentence what a tokenizer does."},
    ],
    "masked_lm": [{"text": "The capital of France is [MASK]."}, {"text": "She poured a cup of [MASK] tea."}],
    "multiple_choice": [
        {
            "text": "She opened her umbrella",
            "choices": ["because it began to rain.", "because the sun went down.", "and ate it with a spoon."],
        },
        {"text": "The glass fell to the floor", "choices": ["and broke.", "and flew away.", "and sang a song."]},
    ],
}
