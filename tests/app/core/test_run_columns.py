"""What the columns of the table of runs must have for the table to fit into any width."""

from app.core.runs.run_columns import COLUMNS


def test_only_the_first_column_has_no_width_of_its_own():
    assert [key for key, column in COLUMNS.items() if not column.width] == [next(iter(COLUMNS))]


def test_columns_leave_one_after_another():
    places = sorted(column.leaves for column in COLUMNS.values() if column.leaves)
    assert places == list(range(1, len(places) + 1))
