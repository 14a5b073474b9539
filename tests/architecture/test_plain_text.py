"""Text from data, models and runs is plain text: the application's style sees to it, and few places of our own write HTML."""

import ast

from tests.architecture.source import Module

WRITES_HTML = {
    "app/widgets/plots/plot_legend.py": "coloured signs before escaped names",
    "app/widgets/plots/plot_export.py": "the same legend in a picture",
    "app/pages/tokenizer/data/rows_page.py": "coloured signs before our own words",
}
"""Modules that may show HTML, and of what: constants, and what was escaped."""
HTML = {
    *("RichText", "AutoText", "MarkdownText", "setHtml", "insertHtml", "appendHtml", "setMarkdown", "setDefaultStyleSheet"),
    *("QTextBrowser", "QErrorMessage", "QWebEngineView", "setOpenExternalLinks", "LabelItem", "addLegend", "mightBeRichText"),
}  # fmt: skip
"""Names by which Qt and pyqtgraph are told to read text as HTML, or do so unasked."""
STYLE = "app/theme/__init__.py"


def names(module: Module) -> dict[str, int]:
    """Every name and attribute that is used, with a line."""
    found = {node.attr: node.lineno for node in module.nodes(ast.Attribute)}
    return {**found, **{node.id: node.lineno for node in module.nodes(ast.Name)}}


def test_html_is_written_in_few_places(modules: list[Module]):
    found = {module.path: HTML & names(module).keys() for module in modules if module.path.startswith("app/")}
    assert {path for path, used in found.items() if used - {"AutoText"}} == set(WRITES_HTML)
    assert {path for path, used in found.items() if "AutoText" in used} == {STYLE}, (
        "only the style asks who left it open"
    )


def test_no_widget_has_a_style_that_does_not_know_plain_text(modules: list[Module]):
    made = {"QProxyStyle", "QCommonStyle", "QStyleFactory"}
    assert [module.path for module in modules if made & names(module).keys()] == [STYLE]
    assert [module.path for module in modules if _sets_a_style(module)] == [STYLE]


def _sets_a_style(module: Module) -> bool:
    """Whether Qt is given a style; pyqtgraph's axes take theirs by keywords."""
    calls = (node for node in module.nodes(ast.Call) if node.args)
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == "setStyle" for call in calls)


def test_what_is_laid_out_once_is_plain_text(modules: list[Module]):
    """`QStaticText` is no widget: the style does not see it."""
    using = [module for module in modules if "QStaticText" in names(module)]
    assert using
    assert [module.path for module in using if "PlainText" not in names(module)] == []
