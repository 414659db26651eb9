"""Habits of servers that speak the Responses API: each a stream, or a whole answer, read to what a client gets."""

from itertools import count
from typing import Any

import msgspec
import pytest

from tests.translation.answers import Json, answer
from tests.translation.frames import sse

PROVIDER = "openai-responses"


def event(kind: str, **fields: Any) -> Json:
    return {"type": f"response.{kind}", **fields}


def message(said: str, **fields: Any) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}], **fields}


def call(call_id: str, path: str = "", **fields: Any) -> Json:
    arguments = f'{{"path":"{path}"}}' if path else ""
    return {"type": "function_call", "call_id": call_id, "name": "Read", "arguments": arguments, **fields}


def completed(*output: Json) -> Json:
    return event("completed", response={"status": "completed", "output": list(output)})


def shown(*events: Json, provider: str = PROVIDER) -> tuple[list[Any], str]:
    """The words and the inputs of calls, and how it ended."""
    return said(answer(provider, sse(*events)))


def said(told: tuple[list[Json], str, object]) -> tuple[list[Any], str]:
    content, end, _ = told
    return [block.get("thinking") or block.get("text") or block["input"] for block in content], end


def nameless(*events: Json) -> list[Json]:
    """As a server tells them that makes up an id for each event, and counts none."""
    made = count()
    out: list[Json] = []
    for each in events:
        own = {"item": {**each["item"], "id": f"r{next(made)}"}} if "item" in each else {"item_id": f"r{next(made)}"}
        out.append({**each, **own})
    return out


TEXT = [
    event("output_item.added", item={"type": "message"}),
    event("output_text.delta", delta="Hel"),
    event("output_text.delta", delta="lo"),
    event("output_text.done", text="Hello"),
    event("output_item.done", item=message("Hello")),
]
SUMMARY = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
THOUGHT = [
    event("output_item.added", item={"type": "reasoning", "summary": []}),
    event("reasoning_summary_text.delta", delta="on"),
    event("reasoning_summary_text.delta", delta="e"),
    event("reasoning_summary_text.done", text="one"),
    event("reasoning_summary_part.added"),
    event("reasoning_summary_text.delta", delta="two"),
    event("output_item.done", item={"type": "reasoning", "summary": SUMMARY}),
]


def called(call_id: str, path: str) -> list[Json]:
    return [
        event("output_item.added", item=call(call_id)),
        event("function_call_arguments.delta", delta='{"path":'),
        event("function_call_arguments.delta", delta=f'"{path}"}}'),
        event("function_call_arguments.done", arguments=f'{{"path":"{path}"}}'),
        event("output_item.done", item=call(call_id, path)),
    ]


FIRST, SECOND = called("c1", "1"), called("c2", "2")
AT_ONCE = [FIRST[0], SECOND[0], FIRST[-1], SECOND[-1]]
ONE, TWO = {"path": "1"}, {"path": "2"}


@pytest.mark.parametrize(
    ("events", "output", "expected"),
    [
        (TEXT, [message("Hello", id="z")], ["Hello"]),
        (FIRST, [call("c1", "1", id="z")], [ONE]),
        (FIRST[:-1], [], [ONE]),
        (FIRST[:-2], [], [ONE]),
        ([*FIRST, *SECOND], [call("c1", "1", id="y"), call("c2", "2", id="z")], [ONE, TWO]),
        (AT_ONCE, [], [ONE, TWO]),
        ([*THOUGHT, *TEXT, *FIRST], [], ["one\n\ntwo", "Hello", ONE]),
        ([*TEXT[:3], FIRST[-1]], [], ["Hello", ONE]),
    ],
    ids=[
        "a text", "a call", "a call that is not done", "only pieces of a call", "two calls", "two calls at once",
        "one of each", "a call that was not said to begin",
    ],
)  # fmt: skip
def test_events_that_each_have_an_id_of_their_own_belong_to_what_began(
    events: list[Json], output: list[Json], expected: list[Any]
) -> None:
    content, end = shown(*nameless(*events), completed(*output))
    assert (content, end) == (expected, "tool_use" if isinstance(expected[-1], dict) else "end_turn")


def delta(said: str, kind: str = "output_text", **fields: Any) -> Json:
    return event(f"{kind}.delta", **{"item_id": "m", "output_index": 0, "delta": said, **fields})


def whole(said: str, kind: str = "output_text") -> Json:
    return event(f"{kind}.done", item_id="m", output_index=0, text=said)


def done(item: Json) -> Json:
    return event("output_item.done", output_index=0, item=item)


def thought(*parts: str) -> Json:
    return {"type": "reasoning", "id": "m", "summary": [{"type": "summary_text", "text": part} for part in parts]}


PART = event("reasoning_summary_part.added", item_id="m", output_index=0)
SUMMED, THINKS = "reasoning_summary_text", "reasoning_text"


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([delta("Hel"), whole("Hello"), done(message("Hello", id="m"))], ["Hello"]),
        ([delta("Hel"), done(message("Hello", id="m"))], ["Hello"]),
        ([delta("Hel"), completed(message("Hello", id="m"))], ["Hello"]),
        ([delta("a"), whole("ab"), delta("a"), whole("ac"), done(message("abac", id="m"))], ["abac"]),
        ([delta("a"), whole("a"), delta("a"), whole("aa")], ["aaa"]),
        ([delta("Hel"), whole("hello"), done(message("hello", id="m"))], ["Hel"]),
        ([delta("Hello"), whole("Hel"), done(message("", id="m"))], ["Hello"]),
        ([delta("hm", THINKS), whole("hm, so", THINKS), delta("x", item_id="n", output_index=1)], ["hm, so", "x"]),
        ([delta("on", SUMMED), whole("one", SUMMED), PART, delta("t", SUMMED), whole("two", SUMMED)], ["one\n\ntwo"]),
        ([delta("on", SUMMED), PART, delta("tw", SUMMED), whole("two", SUMMED)], ["on\n\ntwo"]),
        ([delta("on", SUMMED), done(thought("one", "two"))], ["one\n\ntwo"]),
        ([delta("hm", THINKS), whole("hm, so", SUMMED)], ["hm"]),
    ],
    ids=[
        "a text", "its item", "the response", "two parts", "parts that begin alike", "another text", "less of it",
        "reasoning", "two parts of a summary", "a part that is not told once more", "the item of a summary",
        "a summary of reasoning",
    ],
)  # fmt: skip
def test_a_whole_that_is_told_at_the_end_completes_its_pieces(events: list[Json], expected: list[Any]) -> None:
    content, _ = shown(*events, completed())
    assert content == expected


def test_two_messages_are_two_blocks_and_parts_of_one_are_one() -> None:
    notes, final = message("Let me see.", id="m", phase="commentary"), message("Done.", id="n", phase="final_answer")
    parts = {**notes, "content": [*notes["content"], *final["content"]]}
    streamed = [delta("Let me see."), done(notes), delta("Do", item_id="n", output_index=1), delta("ne.", item_id="n")]
    assert shown(*streamed, completed(notes, final)) == (["Let me see.", "Done."], "end_turn")
    body = msgspec.json.encode({"status": "completed", "output": [notes, final]})
    assert said(answer(PROVIDER, body)) == (["Let me see.", "Done."], "end_turn")
    assert shown(completed(parts)) == (["Let me see.Done."], "end_turn")
    assert shown(delta("a"), delta("b", item_id="n"), completed()) == (["ab"], "end_turn")  # who never ends one


def test_a_message_behind_a_call_is_a_block_once() -> None:
    items = [message("a", id="m"), call("c", "1", id="f"), message("b", id="n"), message("c", id="o")]
    assert shown(completed(*items)) == (["a", ONE, "b", "c"], "tool_use")


HERMES = '<tool_call>\n{"name": "Read", "arguments": {"path": "1"}}\n</tool_call>'
INSIDE = message(f"Let me see.{HERMES}", id="m")


def test_calls_that_vllm_leaves_in_a_text_are_calls() -> None:
    pieces = [delta(letter) for letter in INSIDE["content"][0]["text"]]
    body = msgspec.json.encode({"status": "completed", "output": [INSIDE]})
    for told in (sse(*pieces, done(INSIDE), completed(INSIDE)), body):
        assert said(answer(PROVIDER, told, model="Qwen/Qwen3-32B")) == (["Let me see.", ONE], "tool_use")
    cut = event("incomplete", response={"status": "incomplete", "output": []})
    assert said(answer(PROVIDER, sse(*pieces[:-20], cut), model="qwen3")) == (["Let me see."], "max_tokens")


@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-4.1", "o3", "chatgpt-4o-latest", "codex-mini-latest"])
def test_openais_own_models_only_speak_of_such_calls(model: str) -> None:
    content, end, _ = answer(PROVIDER, sse(completed(INSIDE)), model=model)
    assert (content, end) == ([{"type": "text", "text": INSIDE["content"][0]["text"]}], "end_turn")


def test_an_error_may_be_called_like_the_events_around_it() -> None:
    for kind in ("error", "response.error"):
        content, end = shown(delta("a"), {"type": kind, "message": "boom"})
        assert content == ["a"] and end.startswith("boom")
        assert shown({"type": kind, "error": {"message": "boom"}}) == ([], "boom")
