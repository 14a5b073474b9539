"""The options of a tokenizer: those of its class, those that Burnish adds, and those stored in its file."""

import inspect
from difflib import get_close_matches
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.tokens.options import TokenOptions
from backend.tokenizers import AnyTokenizer

FIELD = "model.tokenizer_options"
ADDED, ADDED_SPECIAL = "added_tokens", "added_special_tokens"
_OWN = (ADDED, ADDED_SPECIAL, "use_fast")
_SIDES = ("padding_side", "truncation_side")
_COMMON = {
    *_SIDES, *_OWN, "model_max_length", "clean_up_tokenization_spaces", "split_special_tokens", "chat_template",
    "model_input_names", "add_bos_token", "add_eos_token", "additional_special_tokens", "extra_special_tokens",
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
}  # fmt: skip
"""What every tokenizer of transformers takes, whatever its class."""
SWITCHES = ("add_prefix_space", "do_lower_case")
"""What the window offers to turn on or off."""


def given_at_construction(options: dict[str, Any]) -> dict[str, Any]:
    """The options without those applied afterwards. Raises InputError for an invalid value."""
    for side in _SIDES:
        if options.get(side, "left") not in ("left", "right"):
            raise _mistake(side, message("{options} is not a side; use left or right", options=repr(options[side])))
    for name in (ADDED, ADDED_SPECIAL):
        tokens = options.get(name, [])
        if not isinstance(tokens, list) or not all(isinstance(one, str) and one for one in tokens):
            raise _mistake(name, message("use a list of strings, for example ['<speaker>', '<pause>']"))
    return {name: value for name, value in options.items() if name not in _OWN}


def check(tokenizer: AnyTokenizer, options: dict[str, Any], name: str) -> None:
    """Raises InputError for an option without effect: transformers itself ignores unknown ones."""
    taken = _constructor_defaults(tokenizer)
    known = sorted({*taken, *_COMMON, *_options_of_steps(tokenizer)})
    for option, value in options.items():
        if option not in known:
            near = get_close_matches(option, known, 3)
            shown = (
                message("did you mean {near}?", near=" or ".join(near))
                if near
                else message("its options are {known}", known=", ".join(known))
            )
            raise _mistake(
                option, message("the tokenizer of {name} has no such option; {shown}", name=name, shown=shown)
            )
        if isinstance(taken.get(option), bool) and not isinstance(value, bool):
            raise _mistake(option, message("{value} is neither true nor false", value=repr(value)))
    if options.get("use_fast", tokenizer.is_fast) != tokenizer.is_fast:
        raise _mistake(
            "use_fast",
            message("transformers has no slow tokenizer for {name}; leave it out", name=name)
            if tokenizer.is_fast
            else message("transformers has no fast tokenizer for {name}; leave it out", name=name),
        )


def apply(tokenizer: AnyTokenizer, options: dict[str, Any]) -> None:
    """What construction left undone: lower-casing and spaces of stored steps, and tokens that are added."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    normaliser = getattr(backend, "normalizer", None)
    if "do_lower_case" in options and hasattr(normaliser, "lowercase"):
        normaliser.lowercase = options["do_lower_case"]  # type: ignore[union-attr]
    if "add_prefix_space" in options and backend is not None:
        _prefix_space(backend, bool(options["add_prefix_space"]))
    tokenizer.add_tokens(options.get(ADDED, []))
    if special := options.get(ADDED_SPECIAL, []):
        before = [str(token) for token in tokenizer.all_special_tokens]
        known = [token for token in before if token not in tokenizer.special_tokens_map.values()]
        tokenizer.add_special_tokens({"additional_special_tokens": list(dict.fromkeys([*known, *special]))})


def _prefix_space(backend: Any, on: bool) -> None:
    """transformers 5.23 ignores `add_prefix_space` where a tokenizer.json is loaded as it is: set it in the backend."""
    for step in _pre_tokenizer_steps(backend):
        if hasattr(step, "add_prefix_space"):  # byte-level
            step.add_prefix_space = on
        elif hasattr(step, "prepend_scheme"):  # sentencepiece
            step.prepend_scheme = "always" if on else "never"


def switches(tokenizer: AnyTokenizer) -> dict[str, bool]:
    """Those of SWITCHES that the tokenizer takes, and whether they are on; those of which it does not say so are left out."""
    defaults = _constructor_defaults(tokenizer)
    there = {*defaults, *_options_of_steps(tokenizer)}
    values = {name: _current_value(tokenizer, name, defaults.get(name)) for name in SWITCHES if name in there}
    return {name: bool(value) for name, value in values.items() if value is not None}


def _current_value(tokenizer: AnyTokenizer, name: str, default: Any) -> Any:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if name == "do_lower_case" and hasattr(getattr(backend, "normalizer", None), "lowercase"):
        return backend.normalizer.lowercase  # type: ignore[union-attr]
    if name == "add_prefix_space" and backend is not None:
        for step in _pre_tokenizer_steps(backend):
            if hasattr(step, "add_prefix_space"):
                return step.add_prefix_space
            if hasattr(step, "prepend_scheme"):
                return step.prepend_scheme != "never"
    value = getattr(tokenizer, name, None)
    return tokenizer.init_kwargs.get(name, default) if value is None else value


def _constructor_defaults(tokenizer: AnyTokenizer) -> dict[str, Any]:
    """Option → default, from the constructors of the tokenizer's class and its base classes."""
    found: dict[str, Any] = {}
    for kind in type(tokenizer).__mro__:
        if kind is not object and "__init__" in vars(kind):
            parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
            named = [one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
            found = {one.name: one.default for one in named if not one.name.startswith("_")} | found
    return found


def _options_of_steps(tokenizer: AnyTokenizer) -> set[str]:
    """Options of a stored normaliser or pre-tokenizer, if the class is a general one."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return set()
    found = {"do_lower_case"} if hasattr(backend.normalizer, "lowercase") else set()
    steps = _pre_tokenizer_steps(backend)
    takes_space = any(hasattr(step, "add_prefix_space") or hasattr(step, "prepend_scheme") for step in steps)
    return found | ({"add_prefix_space"} if takes_space else set())


def _pre_tokenizer_steps(backend: Any) -> list[Any]:
    whole = backend.pre_tokenizer
    return list(whole) if type(whole).__name__ == "Sequence" else [whole]


def _mistake(option: str, reason: str) -> InputError:
    return InputError("{field}.{option}: {reason}", f"{FIELD}.{option}", field=FIELD, option=option, reason=reason)


def stored_truncation(tokenizer: AnyTokenizer) -> str:
    """The truncation and padding stored in the tokenizer's file, as a sentence; empty if there is none."""
    return getattr(tokenizer, "_stored_truncation", "")


def stored_options(tokenizer: AnyTokenizer) -> TokenOptions:
    """The same as options that switch it on again."""
    return getattr(tokenizer, "_stored_options", TokenOptions())


def switch_off_stored(tokenizer: AnyTokenizer) -> None:
    """Switch off truncation and padding unless requested; the stored settings are remembered."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return
    tokenizer._stored_options = _as_options(backend.truncation, backend.padding)  # type: ignore[attr-defined]
    tokenizer._stored_truncation = _as_sentence(backend.truncation, backend.padding)  # type: ignore[attr-defined]
    backend.no_truncation()
    backend.no_padding()
    for name in ("max_length", "stride", "truncation_strategy", "pad_to_multiple_of"):
        tokenizer.init_kwargs.pop(name, None)  # taken from there, and would be saved with the model


def _as_options(truncation: dict[str, Any] | None, padding: dict[str, Any] | None) -> TokenOptions:
    """A backend's truncation and padding as options with the same effect."""
    found: dict[str, Any] = {}
    if padding:
        length = padding.get("length")
        found = {"padding": "max_length" if length else "longest", "max_length": length or None}
        found |= {"padding_side": padding["direction"], "pad_to_multiple_of": padding.get("pad_to_multiple_of") or None}
    if truncation:
        found |= {"max_length": truncation["max_length"], "truncation": truncation["strategy"]}
        found["truncation_side"] = truncation["direction"]
    return TokenOptions(**found)


def _as_sentence(truncation: dict[str, Any] | None, padding: dict[str, Any] | None) -> str:
    """Both as a sentence."""
    found = [message("truncation to {truncation} tokens", truncation=truncation["max_length"])] if truncation else []
    if padding:
        length = padding.get("length")
        found.append(
            message("padding to {length} tokens", length=length) if length else message("padding to the longest row")
        )
    return (
        message("The tokenizer's file specifies {found}, which is turned off here.", found=" and ".join(found))
        if found
        else ""
    )
