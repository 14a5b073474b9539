"""Excel and OpenDocument workbooks: cells as their CSV would say them, sheets, and files that are refused before they are read."""

import io
import zipfile
from pathlib import Path

import pytest

from backend import registry
from backend.contract.errors import InputError
from backend.data.formats import workbook
from backend.helper.queries.data import QUERIES
from backend.inspect.data_report import data_report, request_of_data
from backend.inspect.recognition import recognise
from backend.preflight.datasets import choose_columns

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STYLES = f'<styleSheet {MAIN}><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"


def text(place: str, value: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def xlsx(path: Path, *sheets: tuple[str, str, str]) -> Path:
    """A workbook of (name, state, rows as XML)."""
    names = "".join(
        f'<sheet name="{name}" sheetId="{number}" state="{state}" r:id="r{number}"/>'
        for number, (name, state, _) in enumerate(sheets, 1)
    )
    relations = "".join(
        f'<Relationship Id="r{number}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number in range(1, len(sheets) + 1)
    )
    packages = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", f'<Types xmlns="{packages}/content-types"/>')
        packed.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{packages}/relationships">'
            f'<Relationship Id="r1" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        packed.writestr(
            "xl/workbook.xml", f'<workbook {MAIN} xmlns:r="{RELATIONS}"><sheets>{names}</sheets></workbook>'
        )
        packed.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{packages}/relationships">{relations}'
            f'<Relationship Id="s" Type="{RELATIONS}/styles" Target="styles.xml"/></Relationships>',
        )
        packed.writestr("xl/styles.xml", STYLES)
        for number, (_, _, rows) in enumerate(sheets, 1):
            packed.writestr(
                f"xl/worksheets/sheet{number}.xml", f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>"
            )
    return path


def ods(path: Path, rows: str, mime: str = "application/vnd.oasis.opendocument.spreadsheet") -> Path:
    content = (
        f'<office:document-content xmlns:office="{OFFICE}:office:1.0" xmlns:table="{OFFICE}:table:1.0" '
        f'xmlns:text="{OFFICE}:text:1.0"><office:body><office:spreadsheet><table:table table:name="Films">{rows}'
        "</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("mimetype", mime)
        packed.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{OFFICE}:manifest:1.0"/>')
        packed.writestr("content.xml", content)
    return path


HEADER = f'<row r="2">{text("A2", "text")}{text("B2", "stars")}{text("C2", "seen")}{text("D2", "good")}{text("E2", "sum")}</row>'
FILMS = HEADER + (
    f'<row r="3">{text("A3", "a film")}<c r="B3"><v>3</v></c><c r="C3" s="1"><v>44562</v></c><c r="D3" t="b"><v>1</v></c>'
    '<c r="E3"><f>B3*0.5</f><v>1.5</v></c></row>'
    f'<row r="5">{text("A5", "None")}<c r="B5"><v>2.50</v></c></row>'
)
ODS = (
    "<table:table-row>"
    '<table:table-cell office:value-type="string"><text:p>text</text:p></table:table-cell>'
    '<table:table-cell office:value-type="string"><text:p>stars</text:p></table:table-cell></table:table-row>'
    "<table:table-row>"
    '<table:table-cell office:value-type="string"><text:p>a film</text:p></table:table-cell>'
    '<table:table-cell office:value-type="float" office:value="3"><text:p>3</text:p></table:table-cell></table:table-row>'
    '<table:table-row table:number-rows-repeated="1048574">'
    '<table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
)


def test_cells_read_as_their_csv_would(desk):
    rows = desk.read(xlsx(desk.folder / "films.xlsx", ("Films", "visible", FILMS)))
    assert rows.table.to_pylist() == [
        {"text": "a film", "stars": "3", "seen": "2022-01-01", "good": "true", "sum": "1.5"},
        {"text": "None", "stars": "2.5", "seen": None, "good": None, "sum": None},
    ]
    assert [rows.place(number) for number in range(2)] == ["films.xlsx:3", "films.xlsx:5"]


def test_an_open_document_sheet_is_read(desk):
    rows = desk.read(ods(desk.folder / "films.ods", ODS))
    assert rows.table.to_pylist() == [{"text": "a film", "stars": "3"}]


def test_the_first_visible_sheet_is_read_or_the_one_that_is_named(desk):
    other = f'<row r="1">{text("A1", "text")}</row><row r="2">{text("A2", "other")}</row>'
    path = xlsx(desk.folder / "a.xlsx", ("Notes", "hidden", other), ("Films", "visible", FILMS))
    assert desk.read(path).table["text"].to_pylist() == ["a film", "None"]
    assert desk.read(path, sheet="Notes").table["text"].to_pylist() == ["other"]
    with pytest.raises(
        InputError, match=r"^data\.sheet: a\.xlsx has no sheet 'Plays'; its sheets are 'Notes', 'Films'"
    ):
        desk.read(path, sheet="Plays")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (f'<row r="1">{text("A1", "a")}{text("B1", "a")}</row>', "two columns 'a'; rename one of them in row 1"),
        (
            f'<row r="1">{text("A1", "a")}</row><row r="2">{text("B2", "x")}</row>',
            "row 2: column 2 has a value but no name",
        ),
        ("", "is empty"),
        (f'<row r="1">{text("A1", "a")}</row>', "no rows"),
        (
            f'<row r="1">{text("A1", "a")}</row><row r="1048576">{text("XFD1048576", "b")}</row>',
            "too large for a workbook",
        ),
    ],
)
def test_a_sheet_that_is_no_table_is_refused_with_its_row(desk, rows: str, words: str):
    assert words in desk.refusal(xlsx(desk.folder / "a.xlsx", ("Films", "visible", rows)))


TITLE_PAGES = {
    "one line": f'<row r="1">{text("A1", "Film reviews")}</row>',
    "lines": "".join(f'<row r="{number}">{text(f"A{number}", "about")}</row>' for number in range(1, 5)),
    "pairs": f'<row r="1">{text("A1", "Reviews")}</row><row r="2">{text("A2", "by")}{text("B2", "Ann")}</row>',
    "empty": "",
}
LIST = "".join(f'<row r="{number}">{text(f"A{number}", "a text")}</row>' for number in range(1, 60))


@pytest.mark.parametrize("rows", TITLE_PAGES.values(), ids=TITLE_PAGES)
def test_a_sheet_that_looks_like_a_table_is_offered_in_place_of_a_title_page(desk, rows: str):
    path = xlsx(
        desk.folder / "a.xlsx", ("About", "visible", rows), ("More", "visible", ""), ("Films", "visible", FILMS)
    )
    fix = workbook.suggest_sheet(path)
    assert fix is not None
    assert (fix.title, fix.changes) == ("Read sheet Films", {"data.sheet": "Films"})
    assert fix.preview[:2] == ("text | stars | seen | good | sum", "a film | 3 | 2022-01-01 | true | 1.5")
    assert "“About” is used, but it does not look like a table; “Films” does:" in fix.sentence


def test_a_title_page_says_nothing_about_the_task(desk):
    words = ("Film reviews", "The texts are on the second sheet", "Ann wrote them")
    page = "".join(f'<row r="{number}">{text(f"A{number}", one)}</row>' for number, one in enumerate(words, start=1))
    path = xlsx(desk.folder / "a.xlsx", ("About", "visible", page), ("Films", "visible", FILMS))
    preview = next(query.answer for query in QUERIES if query.name == "preview_data")
    data = {"source": "files", "train": str(path)}
    found = preview({"task": "text_classification", "data": data}, lambda progress: None)
    assert (found.fix is not None, found.other_tasks) == (True, [])
    found = preview({"task": "text_classification", "data": {**data, "sheet": "About"}}, lambda progress: None)
    assert "causal_lm" in [other.task for other in found.other_tasks]


def test_a_title_page_that_cannot_be_read_offers_the_sheet_in_its_refusal(desk):
    path = xlsx(
        desk.folder / "a.xlsx", ("About", "visible", TITLE_PAGES["pairs"]), ("Films", "visible", FILMS)
    )  # fmt: skip
    with pytest.raises(InputError, match=r"no name.*; or set data\.sheet to Films, which looks like a table") as told:
        desk.read(path)
    assert told.value.fix == workbook.suggest_sheet(path)
    with pytest.raises(InputError) as told:
        desk.read(path, sheet="About")
    assert told.value.fix is None


@pytest.mark.parametrize(
    "sheets",
    [
        [("Films", FILMS), ("More", FILMS)],
        [("Texts", LIST), ("Films", FILMS)],
        [("About", TITLE_PAGES["lines"]), ("Texts", LIST)],
        [("About", TITLE_PAGES["lines"])],
    ],
)
def test_no_other_sheet_is_offered_where_none_is_better(desk, sheets):
    assert (
        workbook.suggest_sheet(xlsx(desk.folder / "a.xlsx", *((name, "visible", rows) for name, rows in sheets)))
        is None
    )


@pytest.mark.parametrize("repeat", ["table-cell table:number-columns-repeated", "table-row table:number-rows-repeated"])
def test_a_repeated_value_of_an_open_document_does_not_fill_the_memory(desk, repeat: str):
    part, attribute = repeat.split(" ")
    cell = '<table:table-cell office:value-type="float" office:value="1"/>'
    row = f"<table:table-row>{cell}</table:table-row>".replace(f"<table:{part}", f'<table:{part} {attribute}="1000000"')
    many = cell.replace("/>", " table:number-columns-repeated='16000'/>")
    wide = f"<table:table-row>{many}</table:table-row>"
    assert "too large for a workbook" in desk.refusal(ods(desk.folder / "a.ods", ODS + wide + row))


def row(*values: str, columns: str = "1", rows: str = "1") -> str:
    repeated = f'office:value-type="string" table:number-columns-repeated="{columns}"'
    cells = "".join(f"<table:table-cell {repeated}><text:p>{value}</text:p></table:table-cell>" for value in values)
    return f'<table:table-row table:number-rows-repeated="{rows}">{cells}</table:table-row>'


def spaces(count: str) -> str:
    return f'a<text:s text:c="{count}"/>b'


@pytest.mark.parametrize(
    "rows",
    [
        row(spaces("2000000000")),
        row(spaces("+2000000000")),
        row(spaces("200000000") * 5),
        row(spaces("100000"), columns="16000"),
        row("a" * 1_000_000, rows="1000"),
        row("a", columns="+1000000000"),
    ],
    ids=["spaces", "signed spaces", "many spaces", "repeated spaces", "a repeated text", "a signed repeat"],
)
@pytest.mark.parametrize("how", ["read", "recognised"])
def test_text_that_would_not_fit_into_memory_is_refused_before_it_is_made(desk, rows: str, how: str):
    path = ods(desk.folder / "a.ods", ODS.replace("<table:table-row>", rows + "<table:table-row>", 1))
    said = desk.refusal(path) if how == "read" else " ".join(recognise([str(path)]).unreadable)
    assert "too large for a workbook" in said


def test_spaces_and_repeats_within_reason_are_read(desk):
    rows = row("text", "stars") + row(spaces("3"), "1", rows="2")
    path = ods(desk.folder / "a.ods", ODS.replace("<table:table-row>", rows + "<table:table-row>", 1))
    assert desk.read(path).table["text"].to_pylist() == ["a   b", "a   b", "text", "a film"]


def sharing(path: Path, cells: str, *texts: str, name: str = "xl/sharedStrings.xml") -> Path:
    """A workbook whose cells in column A name these texts, of which the first is the column's name."""
    rows = f'<row r="1"><c r="A1" t="s"><v>0</v></c></row>{cells}'
    xlsx(path, ("Films", "visible", rows))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, f"<sst {MAIN}>{''.join(f'<si><t>{one}</t></si>' for one in ('text', *texts))}</sst>")
    return path


def naming(number: str, count: int = 1000) -> str:
    return "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>{number}</v></c></row>' for row in range(2, 2 + count))


LONG = "a" * 1_000_000


@pytest.mark.parametrize("number", ["1", "<![CDATA[1]]>", "1<x/>2", "1<!-- -->2", "1<v>2</v>", "01", "1</v><v>2"])
@pytest.mark.parametrize("how", ["read", "recognised"])
def test_a_long_text_that_many_cells_share_is_refused_before_it_is_copied(desk, number: str, how: str):
    path = sharing(desk.folder / "a.xlsx", naming(number), LONG, "short")
    said = desk.refusal(path) if how == "read" else " ".join(recognise([str(path)]).unreadable)
    assert "too large for a workbook (1,000," in said


@pytest.mark.parametrize("texts", [("", LONG), ("x<si><t>y</t></si>", LONG)], ids=["an empty text", "a nested text"])
def test_texts_that_the_library_counts_in_another_way_hide_no_long_one(desk, texts: tuple[str, ...]):
    said = desk.refusal(sharing(desk.folder / "a.xlsx", naming("1") + naming("2"), *texts))
    assert "too large for a workbook" in said or "is damaged" in said


@pytest.mark.parametrize("name", ["XL/SHAREDSTRINGS.xml", "xl\\sharedStrings.xml"])
def test_shared_texts_under_another_spelling_are_measured_too(desk, name: str):
    assert "too large for a workbook" in desk.refusal(sharing(desk.folder / "a.xlsx", naming("1"), LONG, name=name))


def test_two_parts_of_shared_texts_are_refused(desk):
    path = sharing(desk.folder / "a.xlsx", naming("1", 2), "short")
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("xl/SharedStrings.xml", f"<sst {MAIN}><si/></sst>")
    assert "is damaged" in desk.refusal(path)


def test_more_texts_than_cells_are_refused(desk, monkeypatch: pytest.MonkeyPatch):
    path = sharing(desk.folder / "a.xlsx", naming("1", 2), *["short"] * 100)
    monkeypatch.setattr(workbook, "MAX_CELLS", 50)
    assert "too large for a workbook (101 texts)" in desk.refusal(path)


def test_a_shared_text_within_reason_is_read(desk):
    path = sharing(desk.folder / "a.xlsx", naming("1", 1) + naming("2", 1).replace("2", "3"), "a" * 30_000, "", "short")
    assert desk.read(path).table["text"].to_pylist() == ["a" * 30_000, "short"]


CORNERS = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (CORNERS.replace('"', "'"), "too large for a workbook"),
        (CORNERS.replace("<c ", "<c\n"), "too large for a workbook"),
        (CORNERS.replace('r="A1"', 'r="XFD1"').replace(' r="XFD1048576"', ""), "too large for a workbook"),
        (CORNERS + "&unknown;", "is damaged"),
    ],
)
def test_corners_that_are_written_in_another_way_are_found_too(desk, rows: str, words: str):
    path = xlsx(desk.folder / "a.xlsx", ("Films", "visible", rows))
    assert words in desk.refusal(path)
    assert words in " ".join(recognise([str(path)]).unreadable)


def test_a_sheet_in_an_unusual_place_is_measured_too(desk):
    path = xlsx(desk.folder / "usual.xlsx", ("Films", "visible", CORNERS))
    with zipfile.ZipFile(path) as usual, zipfile.ZipFile(desk.folder / "a.xlsx", "w") as moved:
        for name in usual.namelist():
            content = usual.read(name).replace(b"worksheets/sheet1.xml", b"media/image1.png")
            moved.writestr(name.replace("worksheets/sheet1.xml", "media/image1.png"), content)
    assert "too large for a workbook" in desk.refusal(desk.folder / "a.xlsx")


def test_an_absurd_size_is_refused_before_anything_is_unpacked(desk, monkeypatch: pytest.MonkeyPatch):
    path = xlsx(desk.folder / "a.xlsx", ("Films", "visible", FILMS + " " * 100_000))
    monkeypatch.setattr(workbook, "MAX_BYTES", 50_000)
    assert "too large for a workbook" in desk.refusal(path)


@pytest.mark.parametrize("name", ["a.xlsx", "a.ods", "a.xls"])
def test_a_damaged_workbook_is_refused_in_one_sentence(desk, name: str):
    content = b"\xd0\xcf\x11\xe0 broken" if name.endswith("xls") else b"PK\x03\x04 broken"
    assert "is damaged or is not a readable workbook" in desk.refusal(desk.write(name, content))


def test_which_of_several_sheets_is_read_is_said(desk):
    other = f'<row r="1">{text("A1", "play")}</row><row r="2">{text("A2", "Hamlet")}</row>'
    path = xlsx(desk.folder / "a.xlsx", ("Films", "visible", FILMS), ("Plays", "visible", other))
    subject = request_of_data({"train": str(path)}, {}, None, desk.folder)
    chosen = request_of_data({"train": str(path), "sheet": "Plays"}, {}, None, desk.folder)
    words = "a.xlsx: the sheet “Films” is used; set data.sheet to use another one: “Plays”."

    assert recognise([str(path)]).warnings == [words]
    assert data_report(subject).notes == [words]
    assert data_report(chosen).notes == []
    assert desk.read(path).sheets == words.removesuffix(".")
    task = registry.find("task", "text_classification", "task.type")
    with pytest.raises(
        InputError, match=r"no column 'play'.*“Films” is used; set data.sheet to use another one: “Plays”"
    ):
        choose_columns(task(task.Settings()), {"text": "play"}, desk.read(path), to_predict=True)


def test_a_binary_workbook_is_refused_because_nobody_can_measure_it(desk):
    with zipfile.ZipFile(desk.folder / "a.xlsb", "w") as packed:
        packed.writestr("xl/workbook.bin", b"")
    with pytest.raises(InputError, match=r"save it as .xlsx"):
        workbook.is_workbook(desk.folder / "a.xlsb")


def test_a_workbook_is_recognised_and_a_document_is_not(desk):
    path = xlsx(desk.folder / "films.xlsx", ("Films", "visible", FILMS))
    found = recognise([str(path)])
    assert (found.data, found.words) == (
        {"source": "files", "train": str(path)}, "This is a workbook: films.xlsx for training."
    )  # fmt: skip
    letter = ods(desk.folder / "letter.odt", ODS, "application/vnd.oasis.opendocument.text")
    with pytest.raises(InputError, match="a document that is not a workbook"):
        recognise([str(letter)])


def zipped(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, "text,label\na,1\nb,0\n")
    return content.getvalue()


@pytest.mark.parametrize("name", ["films.csv.zip", "films.zip", "films.csv"])
def test_a_zipped_table_is_read(desk, name: str):
    path = desk.write(name, zipped("films/films.csv", "__MACOSX/._films.csv"))
    assert desk.read(path).table["text"].to_pylist() == ["a", "b"]
    assert "unpacked from zip" in recognise([str(path)]).words


def test_a_zip_of_several_files_is_refused(desk):
    assert "is a zip archive of several files" in desk.refusal(desk.write("a.zip", zipped("a.csv", "b.csv")))


def test_a_zip_that_is_locked_by_a_password_is_refused(desk):
    content = bytearray(zipped("a.csv"))
    content[6] |= 1  # the bit of an encrypted member, in its own header and in the archive's list of them
    content[content.index(b"PK\x01\x02") + 8] |= 1
    assert "password-protected; download or copy" in desk.refusal(desk.write("a.csv.zip", bytes(content)))
