"""Describes a chosen model before it is queried: how well a run did, what a model contains, whether it fits."""

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import QObject, QTimer

from app.core.draft.model_consent import CODE
from app.core.formatting import metric_title, name_of_path, number, sentence
from app.core.i18n import inside, tr
from app.pages.predictions.interactive.try_form import TryForm
from app.pages.predictions.interactive.try_target import GONE, TargetChoice
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from backend.contract.rpc.models import ModelCode, ModelDescription
from backend.contract.rpc.protocol import ErrorReply

CALM_MS = 200


class TargetFacts(QObject):
    """Queries the helper about models that are not runs, shortly after they are chosen."""

    def __init__(self, context: AppContext, form: TryForm, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._context, self._form = context, form
        self._questions = [
            LatestQuestion(
                context.client,
                "describe_model",
                partial(self._on_described, choice),
                partial(self._on_mistake, choice),
                opened="",
            )
            for choice in (form.first, form.second)
        ]
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self._describe)
        form.targets_changed.connect(self._calm.start)
        self._gone: list[bool] = []
        context.library_watcher.changed.connect(self._on_runs_changed)
        self._code: dict[TargetChoice, Mapping[str, str]] = {}
        for choice in (form.first, form.second):
            choice.agreed.connect(partial(self._on_agreed, choice))

    def _describe(self) -> None:
        task = self._form.task_chosen.kind
        self._gone = [choice.is_gone for choice in self._form.choices()]
        for choice, question in zip(self._form.choices(), self._questions, strict=False):
            name = choice.chosen_whole()
            if choice.is_gone:
                choice.show_facts(GONE, is_problem=True)
            elif choice.is_run:
                choice.show_facts(self._of_run(name))
            elif name and task:
                question.ask({"name_or_path": name, "task": task})
            else:
                choice.show_facts("")

    def _on_runs_changed(self) -> None:
        """A run was deleted, or came back."""
        if self._gone != [choice.is_gone for choice in self._form.choices()]:
            self._describe()

    def _of_run(self, path: str) -> str:
        run = self._context.library.find(path)
        if run is None:
            return ""
        words = [name_of_path(run.model)]
        if (value := run.metrics.get(run.metric)) is not None:
            words.append(f"{inside(metric_title(run.metric))} {number(value)}")
        return " · ".join(filter(None, words))

    def _on_described(self, choice: TargetChoice, one: ModelDescription) -> None:
        if self._is_still(choice):
            self._code[choice] = one.code
            entry = self._form.entry
            choice.show_description(one, entry.trained_architecture if entry else "")

    def ask_about_code(self, place: int) -> None:
        """Show a model's own code if it was not loaded because the code is not approved."""
        choice = self._form.choices()[place]
        target = choice.chosen()

        def on_found(code: ModelCode) -> None:
            if choice.chosen() == target and code.code and not code.agreed:
                self._code[choice] = code.code
                files = tr(" Files: {files}.", files=", ".join(code.files))
                choice.ask_consent("trust", f"{CODE}{files}", code.folders[0])

        self._context.client.ask("model_code", {"target": target}, on_found, lambda mistake: None)

    def _on_agreed(self, choice: TargetChoice, consent: str) -> None:
        target = choice.chosen()

        def done(_: object) -> None:
            self._form.show_mistake("")
            self._describe()

        def on_failed(mistake: ErrorReply) -> None:
            self._form.show_mistake(sentence(mistake.message, mistake.field))

        if consent == "trust":
            question = {"target": target, "code": dict(self._code.get(choice, {}))}
            self._context.client.ask("agree_to_code", question, done, on_failed)
        else:
            choice.show_facts(tr("Converting…"))
            question = {"name_or_path": target, "task": self._form.task_chosen.kind, "consent": True}
            self._context.client.ask("convert_model", question, done, on_failed)

    def _on_mistake(self, choice: TargetChoice, mistake: ErrorReply) -> None:
        if self._is_still(choice):
            choice.show_facts(sentence(mistake.message, mistake.field), is_problem=True)

    def _is_still(self, choice: TargetChoice) -> bool:
        """Whether the answer is about the model that is still chosen."""
        question = self._questions[0 if choice is self._form.first else 1]
        return not choice.is_run and question.answered.get("name_or_path") == choice.chosen_whole()
