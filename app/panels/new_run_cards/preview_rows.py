"""Owns the few rows of a data preview as the table widget wants them."""

from backend.contract.queries import DataPreview


class PreviewRows:
    """The rows of a `DataPreview`."""

    def __init__(self, preview: DataPreview) -> None:
        self.columns = preview.columns
        self._rows = preview.rows
        self.row_count = len(preview.rows)

    def cell(self, row: int, column: int) -> object:
        """One value; a short row has nothing there."""
        cells = self._rows[row]
        return cells[column] if column < len(cells) else None
