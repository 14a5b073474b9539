"""Reduces values and texts to what is safe to share: numbers, and words from our own code.

It is an allow-list: unknown text becomes a placeholder. What every secret looks like cannot be listed.
"""

import ast
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from backend.contract.spec.environment import VARIABLES

_SETTINGS = """
    adam_beta1 adam_beta2 adam_epsilon adapter address alpha append_end at_start batch_size best_metric beta1 beta2 bias bleu_words
    bridge checkpoint_every class_weights clip_threshold collective_timeout column_names columns compile config configuration coordinator cpu_offload data decay_rate
    delimiter device devices direction doc_stride dora drop_last dropout early_stopping early_stopping_threshold encoding engine
    environment epochs epsilon1 epsilon2 evaluation every faulty_tags first_choice folder format frozen generate group_column
    gradient_checkpointing hardware head host_timeout hosts initialise initialization keep_checkpoints kind label_all_tokens label_separator label_smoothing labels labels_per_row
    language layer_decay learned_scheme learning_rate length_buckets length_penalty loraplus_ratio loss_on mask_probability master_weights max_answer_length
    max_gradient_norm max_length max_new_tokens max_records max_restarts max_rows max_steps max_target_length memory_limit metrics
    micro_batch_size min_new_tokens mismatched_rows misplaced_answers model momentum n_best name name_or_path nesterov
    new_embeddings no_repeat_ngram_size null_threshold num_beams optimizer optimizer_options packing pair parallelism precision
    prefix prefix_backward prefix_forward processes quoting rank relative_step repetition_penalty revision rows rows_without_labels rslora sample saved
    scale_parameter schedule schedule_cycles schedule_divisor schedule_end schedule_final_divisor schedule_power schedule_steps
    schedule_timescale scheme scores seed seeds separator sheet source source_ending source_language split_seed strategy stride strict_entities target_ending
    target_language targets task temperature template tensor_parallel test threads thresholds tokenizer tokenizer_options top_k top_p train
    train_language train_rows training trust_remote_code type validation version version_2_with_negative warmup warmup_init
    weight_decay weights whole_words window written_scheme
    text text_pair label tokens tags question context answers target
    hidden_size num_hidden_layers num_attention_heads num_key_value_heads intermediate_size max_position_embeddings vocab_size
    num_labels n_embd n_layer n_head n_positions d_model d_ff d_kv num_layers num_heads hidden_dropout_prob
    attention_probs_dropout_prob layer_norm_eps tie_word_embeddings torch_dtype
"""
SETTINGS = frozenset(_SETTINGS.split())
"""Names of settings, of a task's parts, and of what a model's configuration often holds."""
_CHOICES = """
    13a BILOU BIO IOB1 IOBES adafactor adam adamw adamw_8bit adapter all all-linear always answer ar arrow auto backward balanced beam bfloat16 bfloat16_stochastic bg blocks both
    causal_lm char chat cola conll constant constant_with_warmup cosine cosine_with_restarts cpu csv cuda data ddp de default demo double el en
    end_of_text epoch es examples files float16 float32 forward fr from_config fsdp glue hi hub if_possible instructions intl int8
    inverse_sqrt ja-mecab jax json jsonl ko-mecab linear lion loftq lora lora_only main many masked_lm mean_of_pieces merged mnli mps mrpc multiple_choice
    nearest never newline nf4 no_answer none one one_cycle paged_adamw paged_adamw_8bit parallel parquet pissa pissa_niter_16 plain polynomial pretrained qnli
    qqp question_answering refuse repair rte ru same seq2seq_lm sgd skip spaces squad sst2 stsb summarisation sw tab tatoeba text text_classification
    text_regression th token_classification torch tpu tr translation tsv tuned unknown ur usual utf-8 vi wnli workbook xnli xpu zh
"""
CHOICES = frozenset(_CHOICES.split())
"""What a setting that is chosen from a list may be."""
_VARIANTS = """
    mae mse f1_micro precision_macro recall_macro accuracy_mm best_f1 best_f1_threshold best_exact best_exact_threshold
    f1_HasAns f1_NoAns exact_match_HasAns exact_match_NoAns
"""
TEXT, PATH, NAME = "[text]", "[path]", "[name]"
_ENDINGS = {".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow", ".txt", ".conll", ".gz", ".xlsx", ".ods", ".zip"}
_VERSION = re.compile(
    r"\d{1,5}(?:\.\d{1,5}){0,4}(?:(?:a|b|rc|\.post|\.dev)\d{1,8})?(?:\+(?:cpu|xpu|cu\d{2,3}|rocm[\d.]{1,5}))?"
)
_EXCEPTION = re.compile(
    r"(?<![\w/\\=:.-])(?:[a-z_][\w]*\.)*([A-Z][A-Za-z]{2,40}(?:Error|Exception|Warning|Interrupt|Exit)|RunFailed)(?=:|$|\s)"
)
_FACTS = re.compile(
    r"\b(?P<step>step \d{1,9}\b)"
    r"|\b(?P<size>\d{1,5}(?:\.\d{1,3})? ?(?:[KMGT]i?B|bytes|rows|tokens|steps|devices|processes)\b)"
    r"|(?P<shape>[\[(]\d{1,7}(?:, \d{1,7}){1,5}[\])]|\b\d{1,7}x\d{1,7}\b)"
    r"|\b(?P<line>line \d{1,7}(?:, column \d{1,6})?)"
    r"|\b(?P<setting>(?:task|model|data|training|evaluation|adapter|hardware)\.[a-z0-9_.]+)"
)
_COUNT = re.compile(r"\d{1,5}|true|false")
_FRAME = re.compile(r'\s+File "(?P<path>[^"]{1,4096})", line (?P<line>\d{1,7}),? in (?P<function>[\w.<>]{1,80})')
_FROZEN = re.compile(r"<frozen [\w.]{1,60}>")
_FUNCTION = re.compile(r"\bdef (\w+)")
_NAMELESS = {"<module>", "<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
_ROOT = Path(__file__).parents[3]
_OWN_FOLDERS = ("backend", "app", "burnish")
_PACKAGE = re.compile(r"[\\/](?:site|dist)-packages[\\/](\w+)")
_STANDARD = re.compile(r"[\\/](?:lib(?:64)?[\\/]python3\.\d{1,2}t?|Python3\d{1,2}[\\/]Lib)[\\/](\w+)")
"""Where Linux and macOS, and where Windows has Python's own modules."""
_KNOWN_PACKAGES = """
    PySide6 accelerate datasets filelock flax fsspec httpcore httpx huggingface_hub jax jaxlib jinja2 joblib jsonschema msgspec
    numpy optax orbax pandas peft platformdirs psutil pyarrow pydantic pydantic_core pyqtgraph python_calamine regex requests
    rouge_score ruamel sacrebleu safetensors scipy sentencepiece seqeval sklearn tokenizers torch torchax torchvision tqdm
    transformers triton urllib3 yaml
"""
_PACKAGES = frozenset(_KNOWN_PACKAGES.split())
"""Public packages whose function names may appear; any other may be a private plug-in."""
YOUR_CODE = "(your code)"


def public_choice(text: str) -> str:
    """A known choice stays, a path is reduced to its kind, any other text is removed."""
    if text in CHOICES or text in metric_names():
        return text
    ending = PurePosixPath(text).suffix.lower()
    if ending in _ENDINGS:
        return f"{PATH}{ending}"
    return PATH if "/" in text or "\\" in text else TEXT


def public_setting(value: Any) -> Any:
    """A nested setting: numbers, setting names and known choices stay; unknown names are removed."""
    if isinstance(value, Mapping):
        return dict(_public_items(value))
    if isinstance(value, list):
        items = [public_setting(item) for item in value]
        return items if all(isinstance(item, int | float) for item in items) else [f"{len(items)} of them"]
    return public_choice(value) if isinstance(value, str) else value


def _public_items(values: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    unknown = 0
    for key, value in values.items():
        if key in SETTINGS:
            yield key, public_setting(value)
        elif key in VARIABLES:  # of the environment: any text, mostly a count
            yield key, value if isinstance(value, str) and _COUNT.fullmatch(value) else TEXT
        else:
            unknown += 1
    if unknown:
        yield NAME, f"{unknown} of them"


def public_version(text: str) -> str:
    """A version number."""
    return text if _VERSION.fullmatch(text) else TEXT


def public_metrics(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    """Scores by name; a name that contains a label or a file is replaced by a number."""
    known = metric_names()
    return {name if name in known else f"[metric {at}]": score for at, (name, score) in enumerate(metrics.items())}


@cache
def metric_names() -> frozenset[str]:
    """The metrics declared in our own files, and their usual variants; other packages' names could contain anything."""
    files = sorted((_ROOT / "backend" / "metrics").glob("*.py"))
    declared = {name for file in files for name in _declared_metrics(file.read_text(encoding="utf-8"))}
    return frozenset(declared) | frozenset(_VARIANTS.split())


def _declared_metrics(module: str) -> Iterator[str]:
    """The names in a module's METRICS: the first argument of each call in it. Importing the module would load much."""
    for statement in ast.parse(module).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="METRICS")], value=ast.Tuple(elts=metrics)):
                for metric in metrics:
                    match metric:
                        case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                            yield name


def extract_facts(text: str) -> str:
    """The exception types, steps, sizes, shapes, line numbers and setting names in a sentence, in order."""
    found = [(match.start(), match.group(1)) for match in _EXCEPTION.finditer(text)]
    for match in _FACTS.finditer(text):
        is_known = match.lastgroup != "setting" or set(match.group().split(".")) <= SETTINGS
        found += [(match.start(), match.group())] if is_known else []
    return ", ".join(dict.fromkeys(fact for _, fact in sorted(found))) or TEXT


def traceback_lines(lines: list[str]) -> Iterator[str]:
    """The traceback frames and exceptions in a log; only frames of public code keep their names."""
    for line in lines:
        if frame := _FRAME.fullmatch(line.rstrip()):
            name = PureWindowsPath(frame["path"]).name  # knows both kinds of slashes
            is_public = _is_public(frame["path"], frame["function"])
            yield f"  {name}, line {frame['line']}, in {frame['function']}" if is_public else f"  {YOUR_CODE}"
        elif line.startswith("Traceback (most recent call last)"):
            yield "Traceback"
        elif _EXCEPTION.match(line):
            yield extract_facts(line)


def _is_public(path: str, function: str) -> bool:
    """Whether a frame is in Burnish, a known package or Python, wherever they are installed."""
    if (found := _PACKAGE.search(path)) and found[1] not in _OWN_FOLDERS:
        return found[1] in _PACKAGES and _is_here(("purelib", "platlib"), path[found.start(1) :], function)
    if not found and (found := _STANDARD.search(path)):
        return found[1] in sys.stdlib_module_names and _is_here(("stdlib",), path[found.start(1) :], function)
    return bool(_FROZEN.fullmatch(path)) or _is_own(PureWindowsPath(path).parts, function)


def _is_here(places: tuple[str, ...], path: str, function: str) -> bool:
    """Whether this Python installation has that function in that file: anyone can name a folder `torch`."""
    parts = PureWindowsPath(path).parts
    name = function.rpartition(".")[2]
    return ".." not in parts and any(
        name in _own_functions(Path(sysconfig.get_path(place)).joinpath(*parts)) for place in places
    )


def _is_own(parts: tuple[str, ...], function: str) -> bool:
    """Whether our file of that name has that function: someone else's folder may be called `backend` too."""
    start = max((at for at, part in enumerate(parts) if part in _OWN_FOLDERS), default=None)
    if start is None or ".." in parts:
        return False
    return function in _own_functions(_ROOT.joinpath(*parts[start:]))


@cache
def _own_functions(file: Path) -> frozenset[str]:
    try:
        return frozenset(_FUNCTION.findall(file.read_text(encoding="utf-8"))) | _NAMELESS
    except (OSError, ValueError):
        return frozenset()  # we have no such file
