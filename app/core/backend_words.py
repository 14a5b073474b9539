"""Translates single words of the backend and its files: stages, units, states, column titles."""

from app.core.backend_messages import translate_message
from app.core.i18n import thin, tr
from backend.contract.run.events import STAGE_WORDS


def translate_word(word: str) -> str:
    """A backend word in the current language; if it is neither listed below nor a message, unchanged except for
    digit grouping."""
    found = tr(STAGE_WORDS.get(word, word)) if word else ""
    return thin(translate_message(word)) if found == word else found


def capitalize(text: str) -> str:
    """A text with a capital first letter; the rest is unchanged."""
    return text[:1].upper() + text[1:]


SPLITS = {"train": tr("training"), "validation": tr("validation"), "test": tr("test")}
"""Split → what its rows are for."""

STAGES = (
    tr("finding model"), tr("loading data"), tr("tokenizing"), tr("loading model"), tr("compiling"), tr("training"),
    tr("evaluating"), tr("predicting"), tr("saving"), tr("finding the model"), tr("reading the data"),
    tr("measuring lengths"), tr("counting"), tr("Starting"), tr("Reading the data"), tr("Counting the new tokens"),
    tr("Opening the tokenizer…"), tr("Reading the vocabulary…"), tr("Comparing the data"), tr("Loading the model"),
    tr("Computing intervals"), tr("searching"),
)  # fmt: skip
UNITS = (
    tr("tokens"), tr("rows"), tr("texts"), tr("words"), tr("characters"), tr("pieces"), tr("steps"), tr("epochs"),
    tr("bytes"), tr("parts"), tr("checks"), tr("merges"), tr("seconds"), tr("trials"),
)  # fmt: skip
COSTS = (
    tr("Weights"), tr("Gathered weights"), tr("Gradients"), tr("Optimizer"), tr("Activations"), tr("Libraries"), tr("Tokenizing"),
    tr("Startup"), tr("Compiling"), tr("Training"), tr("Evaluations"), tr("Checkpoints"), tr("Saving"), tr("Predictions"),
    tr("Evaluation"), tr("Loading"),
    tr("Final model"), tr("Predictions, log"), tr("While saving"), tr("Prepared data"), tr("Download"),
)  # fmt: skip
CACHES = (
    tr("Tokenized features"), tr("Measured lengths"), tr("Data reports"), tr("Cached rows"), tr("Opened predictions"),
    tr("Converted weights"), tr("Compiled programs"),
)  # fmt: skip
STATES = (
    tr("fine"), tr("note"), tr("missing"), tr("finished"), tr("failed"), tr("stopped"), tr("paused"), tr("lost"), tr("queued"),
    tr("interrupted"),
)  # fmt: skip
KINDS = (tr("text"), tr("label"), tr("number"), tr("list"), tr("mapping"), tr("empty"))
"""What the cells of a column hold."""
TYPES = (tr("normal"), tr("special"), tr("added"), tr("byte"), tr("unused"))
"""Of a vocabulary's pieces."""
CHOICES = (tr("epoch"), tr("never"))
"""What a field takes besides numbers."""
OTHERS = (tr("CPU"), tr("a common name"), tr("Optimizer options"))

COLUMNS = {
    "name": tr("Name"), "pieces": tr("Pieces"), "made": tr("Created"), "folder": tr("Folder"), "token": tr("Token"),
    "pieces_now": tr("Current pieces"), "occurs": tr("Occurrences"), "note": tr("Note"), "id": tr("ID"), "piece": tr("Piece"),
    "text": tr("Text"), "bytes": tr("Bytes"), "length": tr("Length"), "type": tr("Type"), "script": tr("Script"),
    "frequency": tr("Frequency"), "score": tr("Score"), "rank": tr("Rank"), "left": tr("Left"), "right": tr("Right"),
    "result": tr("Result"), "limit": tr("Limit"), "rows": tr("Rows"), "share": tr("Share"), "row": tr("Row"),
    "place": tr("Place"), "tokens": tr("Tokens"), "label": tr("Label"), "tokenizer": tr("Tokenizer"),
    "language": tr("Language"), "unknown": tr("Unknown"), "per_word": tr("Per word"), "per_row": tr("Per row"),
    "per_character": tr("Per character"), "median": tr("Median"), "longest": tr("Longest"), "run": tr("Run"), "state": tr("State"), "task": tr("Task"),
    "model": tr("Model"), "data": tr("Data"), "steps": tr("Steps"), "seconds": tr("Seconds"), "setting": tr("Setting"),
}  # fmt: skip
"""Titles of columns in tables that Burnish makes itself; those of people's data keep their names."""
