"""Labels, prefixes, languages, truncation and scores of text to text; the reference's traps by name."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
import torch
from transformers import M2M100Config, M2M100ForConditionalGeneration, MT5Config, MT5ForConditionalGeneration
from transformers import NllbTokenizer as Nllb

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, Head
from backend.data.batches import collate
from backend.data.features import load_into_memory
from backend.data.rows import Rows
from backend.tasks.seq2seq_lm import SIGNATURES, Seq2SeqLm, Settings
from backend.tokenizers.loading import fingerprint, open_tokenizer

VERSES = Path(__file__).parents[2] / "data" / "parallel"
COLUMNS = {"source": "source", "target": "target"}
FACTS = {"max_length": 64}


@pytest.fixture(scope="module")
def mt5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as mT5 ships it: `spiece.model` and no tokenizer.json."""
    folder = tmp_path_factory.mktemp("mt5")
    lines = [line for ending in ("src", "trg") for line in (VERSES / f"train.{ending}").read_text("utf-8").splitlines()]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=320, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        character_coverage=1.0, num_threads=1, minloglevel=2,
    )  # fmt: skip
    (folder / "spiece.model").write_bytes(model.getvalue())
    (folder / "config.json").write_text(json.dumps({"model_type": "mt5"}))
    return folder


@pytest.fixture(scope="module")
def tokenizer(mt5: Path):
    return open_tokenizer(str(mt5))


@pytest.fixture
def nllb() -> Nllb:
    """A tokenizer with language tokens, of a few words."""
    words = ["<s>", "<pad>", "</s>", "<unk>", "▁", *"onetwuds"]
    languages = ["eng_Latn", "spa_Latn", "sin_Sinh"]
    return Nllb({word: place for place, word in enumerate(words)}, merges=[], extra_special_tokens=languages)


def rows_of(sources: list[str], targets: list[str] | None = None, **more: list[str]) -> Rows:
    table = {"source": sources, **({"target": targets} if targets is not None else {}), **more}
    count = len(sources)
    return Rows(pa.table(table), ("new.csv",), np.zeros(count, np.int32), np.arange(count) + 2, "f")


def task_with(**settings: object) -> Seq2SeqLm:
    return Seq2SeqLm(Settings.model_validate(settings))


def encode(tokenizer, rows: Rows, columns=COLUMNS, **settings: object) -> pa.Table:
    task = task_with(**settings)
    return pa.Table.from_batches(list(task.encode(rows, columns, tokenizer, FACTS)))


def perfect(features: pa.Table, tokenizer) -> dict[str, list[np.ndarray]]:
    """The outputs of a model that is right about everything."""
    labels = [np.array(ids) for ids in features["labels"].to_pylist()]
    return {
        "token_loss": [np.full(len(ids), 0.5, np.float32) for ids in labels],
        "token_prediction": [ids.astype(np.int32) for ids in labels],
        "generated": [ids[ids != tokenizer.eos_token_id] for ids in labels],
    }


# Encoding


def test_a_sentencepiece_model_alone_is_a_tokenizer(tokenizer):
    assert tokenizer.decode(tokenizer("In the beginning")["input_ids"], skip_special_tokens=True) == "In the beginning"


def test_labels_are_the_targets_own_tokens(tokenizer):
    features = encode(tokenizer, rows_of(["the light"], ["la luz"]))
    assert features["labels"].to_pylist() == [tokenizer(text_target="la luz")["input_ids"]]


def test_trap_1_labels_are_shifted_once_and_by_the_model(tokenizer):
    """The first label is the target's first token, and T5's own shift puts the start token before it."""
    features = encode(tokenizer, rows_of(["the light"], ["la luz"]))
    [labels] = features["labels"].to_pylist()
    config = MT5Config(vocab_size=512, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, pad_token_id=0)
    config.decoder_start_token_id = 0
    decoder_input = MT5ForConditionalGeneration(config)._shift_right(torch.tensor([labels]))
    assert decoder_input.tolist() == [[0, *labels[:-1]]]
    assert labels[-1] == tokenizer.eos_token_id


def test_trap_2_padding_is_no_target_and_the_end_is_one(tokenizer):
    features = load_into_memory(iter(encode(tokenizer, rows_of(["a", "b"], ["la luz del mundo", "la"])).to_batches()))
    batch = collate(features, np.arange(2), pad_token_id=0, head=Head.SEQ2SEQ_LM, length_multiple=1)
    [long, short] = features.table["labels"].to_pylist()
    assert batch["labels"][1].tolist() == [*short, *[IGNORE] * (len(long) - len(short))]
    assert short[-1] == tokenizer.eos_token_id


def test_a_prefix_stands_before_every_source(tokenizer):
    features = encode(tokenizer, rows_of(["the light"], ["la luz"]), prefix="translate: ")
    assert features["input_ids"].to_pylist() == [tokenizer("translate: the light")["input_ids"]]


@pytest.mark.parametrize(
    ("prefix", "read"),
    [
        ("to english", "to english: uno"),
        ("summarize:", "summarize: uno"),
        (">>spa<<", ">>spa<< uno"),
        ("Q ", "Q uno"),
        ("", "uno"),
    ],
)
def test_a_prefix_is_parted_from_the_text(tokenizer, prefix: str, read: str):
    assert task_with(prefix=prefix)._sources(rows_of(["uno"]), COLUMNS, range(1)) == [read]


def test_a_column_says_the_prefix_row_by_row(tokenizer):
    rows = rows_of(["one", "uno"], prefix=["to spanish", ""])
    task = task_with(prefix="unused")
    assert task._sources(rows, {**COLUMNS, "prefix": "prefix"}, range(2)) == ["to spanish: one", "uno"]


def test_without_any_target_there_are_no_labels(tokenizer):
    assert "labels" not in encode(tokenizer, rows_of(["the light"])).column_names
    assert "labels" not in encode(tokenizer, rows_of(["the light"], [""])).column_names


def test_an_unknown_target_among_known_ones_has_no_labels(tokenizer):
    features = encode(tokenizer, rows_of(["the light", "the earth"], ["", "la tierra"]))
    assert features["labels"].to_pylist()[0] == []


def test_what_truncation_leaves_out_is_counted(tokenizer):
    long = "In the beginning God created the heaven and the earth."
    features = encode(tokenizer, rows_of([long, "the"], ["la", long]), max_target_length=8)
    whole = len(tokenizer(long)["input_ids"])
    assert features["cut_target"].to_pylist() == [0, whole - 8]
    assert features["cut_source"].to_pylist() == [0, 0]


def test_cut_sequences_still_end_with_the_end_token(tokenizer):
    features = encode(tokenizer, rows_of(["the"], ["In the beginning God created the heaven"]), max_target_length=8)
    [labels] = features["labels"].to_pylist()
    assert (len(labels), labels[-1]) == (8, tokenizer.eos_token_id)


def test_rows_over_many_chunks_stay_in_order(tokenizer):
    words = [f"{number} light" for number in range(2300)]
    features = encode(tokenizer, rows_of(words, words))
    assert features["row"].to_pylist() == list(range(2300))
    assert features["input_ids"][2299].as_py() == tokenizer("2299 light")["input_ids"]


# Language tokens


def test_language_tokens_mark_source_target_and_the_answers_beginning(nllb):
    features = encode(nllb, rows_of(["one"], ["uno"]), source_language="eng_Latn", target_language="spa_Latn")
    spanish = nllb.convert_tokens_to_ids("spa_Latn")
    assert features["input_ids"][0].as_py()[0] == nllb.convert_tokens_to_ids("eng_Latn")
    assert features["labels"][0].as_py()[0] == spanish
    assert features["decoder_prompt"].to_pylist() == [[spanish]]


def test_languages_may_differ_from_row_to_row(nllb):
    rows = rows_of(["one", "uno"], ["uno", "one"], of=["eng_Latn", "spa_Latn"], into=["spa_Latn", "eng_Latn"])
    features = encode(nllb, rows, {**COLUMNS, "source_language": "of", "target_language": "into"})
    english, spanish = nllb.convert_tokens_to_ids(["eng_Latn", "spa_Latn"])
    assert [ids[0] for ids in features["input_ids"].to_pylist()] == [english, spanish]
    assert features["decoder_prompt"].to_pylist() == [[spanish], [english]]


def test_encoding_leaves_the_tokenizer_as_it_was(nllb):
    before = fingerprint(nllb)
    encode(nllb, rows_of(["one"], ["uno"]), source_language="spa_Latn", target_language="eng_Latn")
    assert fingerprint(nllb) == before


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, "task.source_language: this model marks every text with its language; choose one of eng_Latn"),
        ({"source_language": "eng_Latn"}, "task.target_language: this model marks"),
        ({"source_language": "english"}, "has no language 'english'; its languages are eng_Latn, sin_Sinh, spa_Latn"),
    ],
)
def test_a_language_that_lacks_or_is_unknown_is_refused(nllb, settings: dict[str, str], named: str):
    with pytest.raises(InputError, match=named):
        encode(nllb, rows_of(["one"], ["uno"]), **settings)


def test_a_language_for_a_tokenizer_without_any_is_refused(tokenizer):
    with pytest.raises(InputError, match=r"task.target_language: this model's tokenizer has no language tokens"):
        encode(tokenizer, rows_of(["one"], ["uno"]), target_language="spa_Latn")


def test_the_answers_beginning_is_what_transformers_forces(nllb):
    """The model's labels and its forced first token agree: the decoder starts, then the language."""
    features = encode(nllb, rows_of(["one"], ["uno"]), source_language="eng_Latn", target_language="spa_Latn")
    config = M2M100Config(
        vocab_size=len(nllb), d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=32,
        pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, use_cache=False,
    )  # fmt: skip
    model = M2M100ForConditionalGeneration(config).eval()
    [prompt] = features["decoder_prompt"].to_pylist()
    ids = torch.tensor(features["input_ids"].to_pylist())
    made = model.generate(ids, forced_bos_token_id=prompt[0], max_new_tokens=2, min_new_tokens=2, do_sample=False)
    assert made[0, :2].tolist() == [2, features["labels"][0][0].as_py()]


# Which rows can be used


def test_rows_without_source_or_target_are_listed():
    rows = rows_of(["one", " ", "three"], ["uno", "dos", ""])
    assert task_with().unusable(rows, COLUMNS, "training") == [(1, "no source"), (2, "no target")]
    assert task_with().unusable(rows, COLUMNS, "predicting") == [(1, "no source")]


# Predictions and scores


def test_predictions_are_text_and_the_actual_is_the_raw_target(tokenizer):
    rows = rows_of(["the light"], ["la  luz"])
    features = encode(tokenizer, rows, prefix="to spanish")
    task = task_with(prefix="to spanish")
    table = task.decode(perfect(features, tokenizer), features, rows, COLUMNS, FACTS, tokenizer).table
    assert table.to_pylist() == [{"prediction": "la luz", "actual": "la  luz", "source_text": "to spanish: the light"}]


def test_a_cut_source_is_shown_as_the_model_got_it(tokenizer):
    rows = rows_of(["In the beginning God created the heaven"], ["la"])
    task = task_with()
    features = pa.Table.from_batches(list(task.encode(rows, COLUMNS, tokenizer, {"max_length": 4})))
    read = task.decode(perfect(features, tokenizer), features, rows, COLUMNS, FACTS, tokenizer).table["source_text"]
    assert "In the beginning God created the heaven".startswith(read[0].as_py())
    assert len(read[0].as_py()) < 20


def test_trap_3_only_written_tokens_are_decoded(tokenizer):
    """Labels, which hold -100 in a batch, never reach the tokenizer; special tokens leave no trace in the text."""
    rows = rows_of(["the light"], ["la luz"])
    features = encode(tokenizer, rows)
    outputs = perfect(features, tokenizer)
    outputs["generated"] = [np.array([0, *outputs["generated"][0], 1, 0])]
    assert (
        task_with().decode(outputs, features, rows, COLUMNS, FACTS, tokenizer).table["prediction"][0].as_py()
        == "la luz"
    )


def scores_of(tokenizer, rows: Rows, features: pa.Table, outputs, **settings: object) -> dict[str, float]:
    task = task_with(**settings)
    return task.score(task.decode(outputs, features, rows, COLUMNS, FACTS, tokenizer), FACTS)


def test_a_perfect_model_has_perfect_scores(tokenizer):
    targets = (VERSES / "train.trg").read_text("utf-8").splitlines()[:4]
    rows = rows_of(["a"] * 4, targets)
    features = encode(tokenizer, rows, max_target_length=512)
    scores = scores_of(tokenizer, rows, features, perfect(features, tokenizer))
    assert scores["bleu"] == pytest.approx(100)
    assert scores["chrf"] == pytest.approx(100)
    assert [scores[name] for name in ("rouge1", "rouge2", "rougeL", "rougeLsum", "exact_match")] == [1.0] * 5
    assert scores["perplexity"] == pytest.approx(np.exp(0.5))


def test_loss_and_accuracy_are_means_over_tokens_of_all_rows(tokenizer):
    rows = rows_of(["a", "b"], ["la luz del mundo", "la"])
    features = encode(tokenizer, rows)
    outputs = perfect(features, tokenizer)
    [long, short] = [len(ids) for ids in outputs["token_loss"]]
    outputs["token_loss"][1][:] = 2.0
    outputs["token_prediction"][1][:] = -1
    scores = scores_of(tokenizer, rows, features, outputs)
    assert scores["loss"] == pytest.approx((0.5 * long + 2.0 * short) / (long + short))
    assert scores["accuracy"] == pytest.approx(long / (long + short))


def test_scores_agree_with_sacrebleu_and_rouge_score_on_real_verses(tokenizer):
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu import corpus_bleu, corpus_chrf

    references = (VERSES / "test.trg").read_text("utf-8").splitlines()
    written = [" ".join(text.split()[:-2][::-1]) for text in references[10:]] + references[10:]
    predictions = predicted(written, references)
    scores = task_with().score(predictions, FACTS)
    assert scores["bleu"] == pytest.approx(corpus_bleu(written, [references]).score)
    assert scores["chrf"] == pytest.approx(corpus_chrf(written, [references]).score)
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    each = [scorer.score(one, other)["rougeL"].fmeasure for one, other in zip(references, written, strict=True)]
    assert scores["rougeL"] == pytest.approx(np.mean(each))


def predicted(written: list[str], references: list[str]):
    from backend.tasks.task import Predictions

    return Predictions(pa.table({"prediction": written, "actual": references}))


def test_rouge_of_other_writing_counts_its_words():
    """rouge_score's own words are of Latin letters; of Sinhala it would see nothing."""
    scores = task_with().score(predicted(["සිංහල භාෂාව"], ["සිංහල භාෂාව ලස්සනයි."]), FACTS)
    assert scores["rouge1"] == pytest.approx(0.8)


def test_rouge_lsum_goes_line_by_line():
    scores = task_with().score(predicted(["b c\na"], ["a\nb c"]), FACTS)
    assert scores["rougeLsum"] == pytest.approx(1.0)
    assert scores["rougeL"] < 1.0


def test_chinese_is_scored_by_its_characters():
    scores = task_with().score(predicted(["我今天喜欢红色的猫"], ["我今天喜欢黑色的猫"]), FACTS)
    assert scores["bleu"] > 20  # as one word it would have none right


def test_scores_go_without_targets(tokenizer):
    rows = rows_of(["the light"])
    features = encode(tokenizer, rows)
    outputs = {"generated": [np.array([5, 6])]}
    predictions = task_with().decode(outputs, features, rows, COLUMNS, FACTS, tokenizer)
    assert predictions.table["actual"].null_count == 1
    assert predictions.documents == {}
    assert task_with().score(predictions, FACTS) == {}


def test_chosen_scores_alone_are_computed():
    predictions = predicted(["la luz"], ["la luz"])
    assert set(task_with(scores="translation").score(predictions, FACTS)) == {"bleu", "chrf", "exact_match"}
    assert "bleu" not in {metric.name for metric in task_with(scores="summarisation").metrics}


def test_signatures_say_how_scores_were_computed(tokenizer):
    rows = rows_of(["the light"], ["la luz"])
    features = encode(tokenizer, rows)
    documents = task_with().decode(perfect(features, tokenizer), features, rows, COLUMNS, FACTS, tokenizer).documents
    assert "tok:13a|smooth:exp|version:" in documents[SIGNATURES]["bleu"]
    assert "nc:6|nw:0" in documents[SIGNATURES]["chrf"]


def test_a_way_of_cutting_words_that_is_not_installed_is_refused():
    with pytest.raises(InputError, match=r"pip install 'sacrebleu\[ja\]'"):
        task_with(bleu_words="ja-mecab").fit(rows_of(["a"], ["b"]), COLUMNS)


def test_trap_25_lengths_count_new_tokens(tokenizer):
    """The reference's maximum of 150 counts the start token; here it is 149 new ones."""
    asked = task_with(max_new_tokens=149, num_beams=2, repetition_penalty=2.5, early_stopping=True).generation(
        tokenizer
    )
    assert (asked.max_new_tokens, asked.num_beams, asked.repetition_penalty, asked.early_stopping) == (
        149,
        2,
        2.5,
        True,
    )
    assert asked.eos_token_id == tokenizer.eos_token_id


def test_targets_are_no_labels_to_count() -> None:
    assert Seq2SeqLm(Settings()).label_column(COLUMNS) is None


def test_rows_of_a_split_without_targets_are_usable() -> None:
    assert Seq2SeqLm(Settings()).unusable(rows_of(["one", ""]), COLUMNS, "training") == [(1, "no source")]
