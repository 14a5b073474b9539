"""Owns the few words that say what a model is for, from its class or from what the hub calls its task."""

_CLASSES = (
    ("ForMaskedLM", "fills in masked words"),
    ("ForCausalLM", "continues a text"),
    ("LMHeadModel", "continues a text"),
    ("ForSequenceClassification", "classifies texts"),
    ("ForTokenClassification", "labels words"),
    ("ForQuestionAnswering", "answers questions about a text"),
    ("ForMultipleChoice", "chooses among answers"),
    ("ForPreTraining", "a base to train from"),
    ("ForConditionalGeneration", "turns one text into another"),
    ("MTModel", "translates"),
    ("Model", "a base to train from"),
)
_TASKS = {
    "fill-mask": "fills in masked words",
    "text-generation": "continues a text",
    "text2text-generation": "turns one text into another",
    "translation": "translates",
    "summarization": "summarises",
    "text-classification": "classifies texts",
    "token-classification": "labels words",
    "question-answering": "answers questions about a text",
    "multiple-choice": "chooses among answers",
    "zero-shot-classification": "classifies texts by labels it never saw",
    "sentence-similarity": "compares sentences",
    "feature-extraction": "turns texts into vectors",
    "text-ranking": "ranks texts",
}


def of_class(architecture: str) -> str:
    """What a class of transformers is for; empty where its name does not tell."""
    return next((words for ending, words in _CLASSES if architecture.endswith(ending)), "")


def of_hub_task(pipeline_tag: str) -> str:
    """What the hub's own name of a task means."""
    return _TASKS.get(pipeline_tag, pipeline_tag.replace("-", " "))
