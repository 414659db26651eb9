"""Anthropic's typed tools for other models: client tools get a real JSON Schema, server tools are told apart.

A client tool (`bash_20250124`) is run by the client, which knows its input by heart; another model has to be told. A
server tool (`web_search_20250305`) runs on the API's side: an adapter maps it to its provider's own or leaves it out.
"""

from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from translation.client.paths import decode
from translation.memo import remembered
from translation.values import Tool

Kind = Literal["custom", "client", "server"]


class Definition(msgspec.Struct, frozen=True):
    description: str
    schema: bytes


@remembered
def kind(tool: Tool) -> Kind:
    """A type that nobody knows is a server tool: there is no schema to offer for it."""
    if tool.type == "custom":
        return "custom"
    return "client" if any(fnmatchcase(tool.type, pattern) for pattern, _ in CLIENT_TOOLS) else "server"


def definition(tool: Tool) -> Definition:
    """What to tell another model about a tool: its own words, or the table's for a typed client tool."""
    if tool.type == "custom":
        return Definition(tool.description + _examples(tool) if tool.examples else tool.description, tool.schema)
    for pattern, known in CLIENT_TOOLS:
        if fnmatchcase(tool.type, pattern):
            return Definition(known.description + _screen(tool) + _examples(tool), known.schema)
    return Definition(tool.description, tool.schema)


class _Screen(msgspec.Struct):
    display_width_px: int | None = None
    display_height_px: int | None = None


_SCREEN = msgspec.json.Decoder(_Screen)


def _screen(tool: Tool) -> str:
    """A computer tool says how large its screen is."""
    if not tool.type.startswith("computer_") or not tool.raw:
        return ""
    screen = decode(_SCREEN, tool.raw, f"tools.{tool.name}")
    if not screen.display_width_px or not screen.display_height_px:
        return ""
    return f" The screen is {screen.display_width_px} x {screen.display_height_px} pixels."


def _examples(tool: Tool) -> str:
    return f"\n\nExamples of its input: {tool.examples.decode()}" if tool.examples else ""


def _string(description: str, *choices: str) -> dict[str, object]:
    return {"type": "string", **({"enum": list(choices)} if choices else {}), "description": description}


def _integer(description: str) -> dict[str, object]:
    return {"type": "integer", "description": description}


def _pair(description: str) -> dict[str, object]:
    return {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2, "description": description}


def _object(properties: dict[str, object], *required: str) -> bytes:
    return msgspec.json.encode({"type": "object", "properties": properties, "required": list(required)})


BASH = Definition(
    "Run a command in a persistent bash session. Give `command`, or `restart` to start the session anew.",
    _object(
        {
            "command": _string("The bash command to run."),
            "restart": {"type": "boolean", "description": "True restarts the session; then no command is needed."},
        }
    ),
)


def _editor(*extra: str) -> Definition:
    return Definition(
        "View, create and edit text files. Paths are absolute; `old_str` must occur in the file exactly once.",
        _object(
            {
                "command": _string("What to do.", "view", "create", "str_replace", "insert", *extra),
                "path": _string("Absolute path of the file or directory."),
                "file_text": _string("For `create`: the whole content of the new file."),
                "old_str": _string("For `str_replace`: the text to replace."),
                "new_str": _string("For `str_replace`: what replaces it. For older `insert`: the text to insert."),
                "insert_line": _integer("For `insert`: the line after which to insert; 0 is the start of the file."),
                "insert_text": _string("For `insert`: the text to insert."),
                "view_range": _pair("For `view`: first and last line, counted from 1; -1 is the end of the file."),
            },
            "command",
            "path",
        ),
    )


MEMORY = Definition(
    "Keep notes in files below /memories that outlast this conversation. Look at the directory before you work.",
    _object(
        {
            "command": _string("What to do.", "view", "create", "str_replace", "insert", "delete", "rename"),
            "path": _string("Path below /memories; for every command but `rename`."),
            "view_range": _pair("For `view`: first and last line, counted from 1."),
            "file_text": _string("For `create`: the content of the file."),
            "old_str": _string("For `str_replace`: the text to replace."),
            "new_str": _string("For `str_replace`: what replaces it."),
            "insert_line": _integer("For `insert`: the line after which to insert."),
            "insert_text": _string("For `insert`: the text to insert."),
            "old_path": _string("For `rename`: the path now."),
            "new_path": _string("For `rename`: the path afterwards."),
        },
        "command",
    ),
)

BASIC_ACTIONS = (
    "screenshot", "left_click", "right_click", "middle_click", "double_click", "mouse_move", "left_click_drag", "key",
    "type", "cursor_position",
)  # fmt: skip
FULL_ACTIONS = (
    *BASIC_ACTIONS, "triple_click", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait",
)  # fmt: skip


def _computer(*actions: str) -> Definition:
    return Definition(
        "Use a computer by mouse, keyboard and screenshots. Look at a screenshot before and after you act.",
        _object(
            {
                "action": _string("What to do.", *actions),
                "coordinate": _pair("x and y in pixels: where to click, scroll, move or drag to."),
                "start_coordinate": _pair("For `left_click_drag`: where the drag begins."),
                "text": _string("For `type`: the text. For `key` and `hold_key`: the keys, such as `ctrl+s`."),
                "scroll_direction": _string("For `scroll`.", "up", "down", "left", "right"),
                "scroll_amount": _integer("For `scroll`: how many clicks of the wheel."),
                "duration": {"type": "number", "description": "For `wait` and `hold_key`: seconds."},
                "region": {
                    "type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4,
                    "description": "For `zoom`: left, top, right and bottom in pixels.",
                },
            },
            "action",
        ),
    )  # fmt: skip


CLIENT_TOOLS: tuple[tuple[str, Definition], ...] = (  # type pattern; first match wins
    ("bash_*", BASH),
    ("text_editor_20241022", _editor("undo_edit")),
    ("text_editor_20250124", _editor("undo_edit")),
    ("text_editor_*", _editor()),
    ("memory_*", MEMORY),
    ("computer_20241022", _computer(*BASIC_ACTIONS)),
    ("computer_20250124", _computer(*FULL_ACTIONS)),
    ("computer_2*", _computer(*FULL_ACTIONS, "zoom")),
)
