"""Function calls of Gemini's that come in pieces, and what gateways put into the part of a call."""

import re
from typing import Any

import msgspec
import pytest

from tests.translation.answers import answer, calls, decoder, text
from tests.translation.frames import sse
from translation.events import ToolEnded

Json = dict[str, Any]


def said(*parts: Json, finish: str | None = None) -> Json:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}]}


def piece(*values: Json, more: bool = True, **rest: Any) -> Json:
    return {"functionCall": {"partialArgs": list(values), "willContinue": more, **rest}}


def at(path: str, **value: Any) -> Json:
    return {"jsonPath": path, **value}


BEGUN: Json = {"functionCall": {"name": "Read", "willContinue": True}, "thoughtSignature": "c2ln"}
END: Json = {"functionCall": {}}
STOP = said(finish="STOP")
VALUES = (
    piece(at("$.path", stringValue="a", willContinue=True)),
    piece(at("$.path", stringValue="b"), at("$.n", numberValue=1.50)),
    piece(at("$.edits[0].old", stringValue="x"), at("$.edits[0].all", boolValue=False), at("$.edits[1]['a b']")),
)
ARGUMENTS = {"path": "ab", "n": 1.5, "edits": [{"old": "x", "all": False}, {"a b": None}]}


@pytest.mark.parametrize("end", [[END], [{**END, "thoughtSignature": "c2ln"}], [piece(more=False)]])
def test_a_call_in_pieces_is_shown_when_it_is_whole(end: list[Json]) -> None:
    reading, _, _ = decoder("gemini")
    early = [event for part in (BEGUN, *VALUES) for event in reading.feed(sse(said(part)))]
    assert early == []
    (ended,) = (event for event in reading.feed(sse(said(*end))) if isinstance(event, ToolEnded))
    assert msgspec.json.decode(ended.arguments) == ARGUMENTS
    assert b"c2ln" in ended.state
    assert calls(answer("gemini", sse(*map(said, (BEGUN, *VALUES, *end)), STOP))[0]) == [("Read", ARGUMENTS)]


def test_pieces_may_be_written_with_pythons_names() -> None:
    body = sse(*map(said, (BEGUN, *VALUES, END)), STOP)
    for name in ("jsonPath", "stringValue", "numberValue", "boolValue", "willContinue", "partialArgs", "functionCall"):
        body = body.replace(name.encode(), re.sub("([A-Z])", lambda found: "_" + found[0].lower(), name).encode())
    assert calls(answer("gemini", body)[0]) == [("Read", ARGUMENTS)]


def test_names_in_a_path_may_be_quoted_either_way() -> None:
    values = at("$[\"a.b\"]['it\\'s']", stringValue="x"), at("$['a.b'].c", stringValue="y")
    stream = map(said, (BEGUN, piece(*values), END))
    assert calls(answer("gemini", sse(*stream, STOP))[0]) == [("Read", {"a.b": {"it's": "x", "c": "y"}})]


def test_a_piece_without_a_text_adds_nothing_to_one() -> None:
    stream = map(said, (BEGUN, piece(at("$.a", stringValue="x")), piece(at("$.a")), END))
    assert calls(answer("gemini", sse(*stream, STOP))[0]) == [("Read", {"a": "x"})]


def test_a_call_in_one_piece_has_its_values() -> None:
    whole = piece(at("$.a", stringValue="x"), name="Read", more=False)
    assert calls(answer("gemini", sse(said(whole), STOP))[0]) == [("Read", {"a": "x"})]


def test_several_calls_in_pieces_follow_each_other() -> None:
    other = {"functionCall": {"name": "Bash", "args": {"path": "c"}}}
    stream = map(said, (BEGUN, VALUES[0], END, BEGUN, END, other))
    assert calls(answer("gemini", sse(*stream, STOP))[0]) == [
        ("Read", {"path": "a"}),
        ("Read", {}),
        ("Bash", {"path": "c"}),
    ]


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ((BEGUN,), "finished inside of a function call"),
        ((BEGUN, piece(name="Bash")), "inside of another"),
        ((BEGUN, piece(at("", stringValue="a"))), "a piece of arguments for ''"),
        ((BEGUN, piece(at("$.a[b]", stringValue="a"))), "a piece of arguments for '$.a[b]'"),
        ((BEGUN, piece(at(f"$.a[{'1' * 5000}]", stringValue="a"))), "a piece of arguments for '$.a[111"),
        ((BEGUN, piece(at("$[0]", stringValue="a"))), "do not fit"),
        ((BEGUN, piece(at("$.a[5]", stringValue="a"))), "do not fit"),
        ((BEGUN, piece(at("$.a", stringValue="a")), piece(at("$.a.b", stringValue="a"))), "do not fit"),
        ((piece(at("$.a", stringValue="a")),), "without a name"),
    ],
)
def test_pieces_that_make_no_call_are_an_error(parts: tuple[Json, ...], complaint: str) -> None:
    content, failed, _ = answer("gemini", sse(*map(said, parts), STOP))
    assert content == [] and complaint in failed


def test_a_call_that_the_token_limit_cut_is_none() -> None:
    content, end, _ = answer("gemini", sse(said(text("a"), BEGUN), said(VALUES[0], finish="MAX_TOKENS")))
    assert (content, end) == ([text("a")], "max_tokens")


def test_a_signature_inside_of_a_call_is_its() -> None:
    call = {"functionCall": {"name": "Read", "args": {}, "thoughtSignature": "c2ln"}}
    reading, _, _ = decoder("gemini")
    (ended,) = (event for event in reading.feed(sse(said(call))) if isinstance(event, ToolEnded))
    assert b"c2ln" in ended.state


def test_a_text_in_the_part_of_a_call_is_heard() -> None:
    content, end, _ = answer("gemini", sse(said({"text": "a", "functionCall": {"name": "Read"}}), STOP))
    assert (content[0], calls(content), end) == (text("a"), [("Read", {})], "tool_use")
