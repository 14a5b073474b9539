"""One New run page for all tests of a module, with its shortcuts as the main window makes them."""

import dataclasses

import pytest
from PySide6.QtGui import QKeySequence, QShortcut

from app import theme
from app.core import preferences
from app.pages.new_run.draft_controller import NEW
from app.pages.new_run.page import Page
from app.services.backend_client import BackendClient
from app.services.context import AppContext
from tests.app.helper_process import small_helper
from tests.app.pages.small_helper import DEMO


@pytest.fixture(scope="module")
def page(qapp, tmp_path_factory):
    """One page for all tests here, with its shortcuts as the main window makes them, and its own folders."""
    home = tmp_path_factory.mktemp("home")
    theme.apply(qapp, "light")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURNISH_CONFIG", str(home / "config"))
        patch.setenv("BURNISH_RUNS", str(home / "runs"))
        context = AppContext.create(preferences.load())
        context = dataclasses.replace(context, client=BackendClient(make_process=small_helper))
        made = Page(context)
        made.resize(1068, 800)
        for action in made.offered_actions():
            for keys in action.shortcuts():
                QShortcut(QKeySequence(keys), made, action.do)
        yield made
        context.close()
        made.close()
        made.deleteLater()


@pytest.fixture
def panel(qtbot, page):
    """The page as it is at first."""
    page.show()
    qtbot.waitUntil(lambda: page.catalog is not None, timeout=60_000)
    qtbot.waitUntil(lambda: page.activateWindow() or page.isActiveWindow())
    page.search_bar.search.clear()
    page.sections.open("data")
    page.draft.replace({**NEW, "task": {"type": "text_classification"}})
    page.draft.named = page.draft.task_chosen = False
    page.controller.overlay.forget()
    page.controller.replaced.emit()
    page.controller.forget_history()
    return page


@pytest.fixture
def demo(qtbot, panel):
    """The page with the demo in it, and the answers about it."""
    panel.load_spec(DEMO, "Demo")
    qtbot.waitUntil(lambda: panel.checks.plan is not None and not panel.reason())
    return panel
