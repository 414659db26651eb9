"""Anthropic's typed tools told to other models."""

import msgspec
import pytest

from translation.errors import InvalidRequest
from translation.typed_tools import definition, kind
from translation.values import Tool


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("custom", "custom"),
        ("bash_20250124", "client"),
        ("text_editor_20250728", "client"),
        ("memory_20250818", "client"),
        ("computer_20251124", "client"),
        ("computer_toolset_20260801", "server"),
        ("web_search_20250305", "server"),
        ("something_20300101", "server"),
    ],
)
def test_client_tools_and_server_tools_are_told_apart(type_: str, expected: str) -> None:
    assert kind(Tool("x", type=type_)) == expected


@pytest.mark.parametrize(
    ("type_", "field", "required"),
    [
        ("bash_20250124", "command", []),
        ("text_editor_20250124", "old_str", ["command", "path"]),
        ("text_editor_20250728", "insert_text", ["command", "path"]),
        ("memory_20250818", "new_path", ["command"]),
        ("computer_20250124", "scroll_amount", ["action"]),
    ],
)
def test_a_client_tool_has_a_real_schema(type_: str, field: str, required: list[str]) -> None:
    found = definition(Tool("x", type=type_))
    schema = msgspec.json.decode(found.schema)
    assert found.description
    assert field in schema["properties"]
    assert schema["required"] == required


def test_versions_differ_as_the_api_says() -> None:
    def commands(type_: str) -> list[str]:
        choices: list[str] = msgspec.json.decode(definition(Tool("x", type=type_)).schema)["properties"]["command"][
            "enum"
        ]
        return choices

    assert "undo_edit" in commands("text_editor_20250124")
    assert "undo_edit" not in commands("text_editor_20250728")


def test_a_computer_tells_the_size_of_its_screen() -> None:
    sized = Tool("computer", type="computer_20250124", raw=b'{"display_width_px":1024,"display_height_px":768}')
    assert definition(sized).description.endswith("1024 x 768 pixels.")
    assert "pixels" not in definition(Tool("computer", type="computer_20250124", raw=b"{}")).description


@pytest.mark.parametrize("size", [b"null", b"0"])
def test_half_a_screen_is_not_told(size: bytes) -> None:
    raw = b'{"type":"computer_20250124","name":"c","display_width_px":800,"display_height_px":%b}' % size
    assert "screen is" not in definition(Tool("c", type="computer_20250124", raw=raw)).description


def test_a_screen_that_has_no_size_is_refused_by_its_path() -> None:
    raw = b'{"type":"computer_20250124","name":"c","display_width_px":"wide"}'
    with pytest.raises(InvalidRequest, match=r"^tools\.c\.display_width_px: Input should be a valid integer$"):
        definition(Tool("c", type="computer_20250124", raw=raw))


def test_a_custom_tool_keeps_its_own_words() -> None:
    own = Tool("Read", "Reads.", b'{"type":"object"}')
    assert (definition(own).description, definition(own).schema) == ("Reads.", b'{"type":"object"}')
    assert definition(Tool("s", "Searches.", type="web_search_20250305")).description == "Searches."
