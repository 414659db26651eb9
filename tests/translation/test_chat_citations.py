"""What chat models that search by themselves (OpenAI's search models, OpenRouter's `:online`) say they found."""

from typing import Any

import pytest

from tests.translation.answers import Json, answer, chunk, piece
from tests.translation.frames import sse

PAGES = [{"url": f"https://{name}.example", "title": name.upper(), "start_index": 0, "end_index": 3} for name in "ab"]
TOLD = [{"type": "url_citation", "url_citation": page} for page in PAGES]
TEXT, NOTED = chunk({"content": "Sunny."}), chunk({"annotations": TOLD})
END = (chunk(finish="stop"), b"[DONE]")


def cited(*pieces: Json | bytes) -> Any:
    content, end, _ = answer("openai", sse(*pieces))
    assert end in ("end_turn", "tool_use")
    return content[0].get("citations", [])


def whole(**more: Any) -> bytes:
    return sse({"choices": [{"index": 0, "message": {"content": "Sunny."} | more, "finish_reason": "stop"}]})[6:]


EXPECTED = [
    {
        "type": "web_search_result_location",
        "url": page["url"],
        "title": page["title"],
        "encrypted_index": "",
        "cited_text": "",
    }
    for page in PAGES
]


@pytest.mark.parametrize(
    "pieces",
    [
        (TEXT, NOTED, *END),
        (NOTED, TEXT, *END),
        (chunk({"content": "Sunny.", "annotations": TOLD}, finish="stop"), b"[DONE]"),
        (TEXT, chunk(finish="stop"), NOTED, b"[DONE]"),
        (TEXT, NOTED, NOTED, *END),
        (chunk({"content": "Sun", "annotations": TOLD[:1]}), chunk({"content": "ny.", "annotations": TOLD[1:]}), *END),
        (TEXT, {"choices": [{"message": {"content": "Sunny.", "annotations": TOLD}, "finish_reason": "stop"}]}),
        (TEXT, chunk({"annotations": [{"type": "url_citation", **page} for page in PAGES]}), *END),
        (TEXT, NOTED, piece('{"path":"1"}', "Read", "a"), chunk(finish="tool_calls"), b"[DONE]"),
    ],
)
def test_pages_that_an_answer_names_are_citations_of_its_text_wherever_they_stand(pieces: tuple[Any, ...]) -> None:
    assert cited(*pieces) == EXPECTED


def test_a_whole_answer_has_them_too() -> None:
    content, end, _ = answer("openai", whole(annotations=TOLD))
    assert (content[0]["text"], content[0]["citations"], end) == ("Sunny.", EXPECTED, "end_turn")


@pytest.mark.parametrize("odd", [None, [], {}, "x", [{"type": "file", "file": {}}], [{"type": "url_citation"}], [5]])
def test_annotations_of_any_other_kind_cost_nothing(odd: Any) -> None:
    assert cited(TEXT, chunk({"annotations": odd}), *END) == []
    content, _, _ = answer("openai", whole(annotations=odd))
    assert content == [{"type": "text", "text": "Sunny."}]
