"""What Anthropic's toolsets consist of, in the words that another model is told."""

import msgspec
from msgspec import Struct

Schema = dict[str, object]


class Definition(Struct, frozen=True):
    description: str
    schema: bytes


def _of(kind: str, description: str) -> Schema:
    return {"type": kind, "description": description}


def _choice(description: str, *choices: str) -> Schema:
    return {"type": "string", "enum": list(choices), "description": description}


def _numbers(count: int, description: str) -> Schema:
    return {
        "type": "array", "items": {"type": "integer"}, "minItems": count, "maxItems": count, "description": description,
    }  # fmt: skip


def _strings(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _member(description: str, required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Definition:
    schema = {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}
    return Definition(description, msgspec.json.encode(schema))


def _target(description: str, fields: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object", "description": description, "properties": fields, "required": ["type", *required],
        "additionalProperties": False,
    }  # fmt: skip


X, Y = _of("integer", "Viewport pixels from the left."), _of("integer", "Viewport pixels from the top.")
REF = _of("string", "A reference from `read_page` or `find`, such as ref_7.")
POINT = {"type": _choice("The kind of target.", "coordinate"), "x": X, "y": Y}
ELEMENT = {"type": _choice("The kind of target.", "ref"), "ref": REF}
EITHER = {
    "type": _choice("`coordinate` with x and y, or `ref` with ref.", "coordinate", "ref"), "x": X, "y": Y, "ref": REF,
}  # fmt: skip
AT_POINT = {"target": _target("A point of the viewport.", POINT, "x", "y")}
AT_ELEMENT = {"target": _target("An element of the page.", ELEMENT, "ref")}
AT_EITHER = {"target": _target("A point of the viewport, or an element of the page.", EITHER)}
TAB = {"tab_id": _of("string", "The tab to act on; the active one if left out.")}
THIS_TAB = {"tab_id": _of("string", "The tab, as `list_tabs` names it.")}
HELD = {"modifiers": _of("string", "Keys that are held meanwhile, such as ctrl+shift.")}
KEYS = {"text": _of("string", "The keys: ctrl+a for a chord, spaces between keys that follow each other.")}
DIRECTION = {"scroll_direction": _choice("Where to.", "up", "down", "left", "right")}
NOTCHES = {"scroll_amount": _of("integer", "How many clicks of the wheel.")}
REPEAT = {"repeat": _of("integer", "How often.")}
REGION = {"region": _numbers(4, "Left, top, right and bottom in pixels of a full screenshot.")}
CLICK = HELD | TAB

BROWSER = {
    "navigate": _member(
        "Go to a URL in the browser, or `back`, `forward` or `reload`.",
        {"url": _of("string", "https if none is said.")},
        TAB,
    ),
    "list_tabs": _member("List the browser's tabs with their ids, titles and URLs.", {}),
    "new_tab": _member("Open an empty tab; its id is the result.", {}),
    "switch_tab": _member("Make a tab the active one.", THIS_TAB),
    "close_tab": _member("Close a tab.", THIS_TAB),
    "read_page": _member(
        "The page's accessibility tree, with references to its elements for later calls. Ask for less of a large page.",
        {},
        {
            "filter": _choice("Which elements.", "all", "interactive"),
            "depth": _of("integer", "How many levels."),
            "ref": _of("string", "Only what is below this element."),
            **TAB,
        },
    ),
    "get_page_text": _member("The page's text, for articles and documentation.", {}, TAB),
    "read_console": _member("What the page's console said since it was last read.", {}, TAB),
    "read_network": _member("The page's network requests since they were last read.", {}, TAB),
    "find": _member(
        "Find elements by a description of them; up to 20 references.",
        {"query": _of("string", "What to look for.")},
        TAB,
    ),
    "form_input": _member(
        "Set the value of a form's element: true or false for a checkbox, an option's value or text for a select.",
        {**AT_ELEMENT, "value": {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean")]}},
        TAB,
    ),
    "file_upload": _member(
        "Choose the files of a file input; `paths` or `document_ids` are needed.",
        AT_ELEMENT,
        {"paths": _strings("Paths of files."), "document_ids": _strings("Ids of documents."), **TAB},
    ),
    "scroll_to": _member("Scroll an element into view.", AT_ELEMENT, TAB),
    "screenshot": _member("A picture of the browser's viewport.", {}, TAB),
    "zoom": _member("A part of the viewport, enlarged.", REGION, TAB),
    "left_click": _member("Click.", AT_EITHER, CLICK),
    "right_click": _member("Click with the right button.", AT_EITHER, CLICK),
    "middle_click": _member("Click with the middle button.", AT_EITHER, CLICK),
    "double_click": _member("Click twice.", AT_EITHER, CLICK),
    "triple_click": _member("Click three times, which mostly selects a line or paragraph.", AT_EITHER, CLICK),
    "hover": _member("Point at something without a click.", AT_EITHER, TAB),
    "left_click_drag": _member(
        "Drag from one point to another.", {"from": _target("Where it begins.", POINT, "x", "y"), **AT_POINT}, TAB
    ),
    "left_mouse_down": _member("Press the left button and hold it.", AT_POINT, TAB),
    "left_mouse_up": _member("Let the left button go.", AT_POINT, TAB),
    "mouse_move": _member("Move the pointer without a click.", AT_POINT, TAB),
    "scroll": _member("Turn the wheel at a point.", DIRECTION | AT_POINT, NOTCHES | TAB),
    "type": _member("Type a text where the focus is.", {"text": _of("string", "The text.")}, TAB),
    "key": _member("Press keys.", KEYS, REPEAT | TAB),
    "hold_key": _member("Hold keys for a while.", KEYS | {"duration": _of("number", "Seconds.")}, TAB),
    "wait": _member("Wait.", {"duration": _of("number", "Seconds.")}, TAB),
    "javascript_exec": _member(
        "Run JavaScript in the page; the value of its last expression is the result, without `return`.",
        {"text": _of("string", "The code.")},
        TAB,
    ),
}
PLACE = {"coordinate": _numbers(2, "x and y in pixels.")}
HERE = {"coordinate": _numbers(2, "x and y in pixels; where the pointer is if left out.")}
HELD_KEYS = {"text": _of("string", "Keys that are held meanwhile.")}
SECONDS = {"duration": _of("integer", "Seconds.")}
COMPUTER = {
    "key": _member("Press keys.", KEYS, REPEAT),
    "hold_key": _member("Hold keys for a while.", KEYS | SECONDS),
    "type": _member("Type a text on the keyboard.", {"text": _of("string", "The text.")}),
    "cursor_position": _member("Where the pointer is.", {}),
    "mouse_move": _member("Move the pointer, to hover without a click.", PLACE),
    "left_mouse_down": _member("Press the left button and hold it.", {}),
    "left_mouse_up": _member("Let the left button go.", {}),
    "left_click": _member("Click.", {}, HERE | HELD_KEYS),
    "left_click_drag": _member(
        "Drag from one point to another.",
        {"start_coordinate": _numbers(2, "x and y where it begins."), **PLACE},
        HELD_KEYS,
    ),
    "right_click": _member("Click with the right button.", {}, HERE | HELD_KEYS),
    "middle_click": _member("Click with the middle button.", {}, HERE | HELD_KEYS),
    "double_click": _member("Click twice.", {}, HERE | HELD_KEYS),
    "triple_click": _member("Click three times.", {}, HERE | HELD_KEYS),
    "scroll": _member("Turn the wheel.", DIRECTION | NOTCHES, HERE | HELD_KEYS),
    "wait": _member("Wait.", SECONDS),
    "screenshot": _member("A picture of the screen.", {}),
    "zoom": _member("A part of the screen, enlarged.", REGION),
}

MEMBERS = {"browser_toolset_20260801": BROWSER, "computer_toolset_20260801": COMPUTER}
FAMILIES = {"browser_toolset_20260801": "browser", "computer_toolset_20260801": "computer"}
UNASKED = frozenset(("file_upload", "javascript_exec", "read_console", "read_network"))  # only where `configs` ask
