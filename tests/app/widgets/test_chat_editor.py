"""The editor of a conversation."""

from PySide6.QtCore import Qt

from app.widgets.text.chat_editor import ChatEditor


def test_a_conversation_is_written_message_by_message(qtbot, styled):
    editor = ChatEditor()
    qtbot.addWidget(editor)
    with qtbot.waitSignal(editor.changed):
        qtbot.mouseClick(editor.add_button, Qt.MouseButton.LeftButton)
    assert [role for role, _ in editor.messages()] == ["system", "user", "assistant"]
    with qtbot.waitSignal(editor.changed):
        editor.rows[2].content.setPlainText("A piece of text.")
    with qtbot.waitSignal(editor.changed):
        qtbot.mouseClick(editor.rows[0].remove, Qt.MouseButton.LeftButton)
    assert editor.messages() == [("user", "What is a token?"), ("assistant", "A piece of text.")]
