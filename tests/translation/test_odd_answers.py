"""Answers as servers and gateways really send them: each a line of a table, read to the message that a client gets."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from tests.translation.answers import MODELS, READ, REQUEST, Json, answer, calls, chunk, decoder, piece, text
from tests.translation.frames import sse
from translation.adapter import Ending, Target
from translation.adapters import adapter
from translation.client.parse import parse
from translation.errors import UpstreamGaveUp
from translation.events import Failed, Finished, ToolEnded, ToolStarted
from translation.providers import gemini_wire
from translation.providers.gemini_names import NAMES
from translation.providers.profiles import PROFILES
from translation.think_text import ThinkText
from translation.twins import Twins
from translation.values import Usage

# ---------------------------------------------------------------- chat


def called(*pieces: Json | bytes, finish: str = "tool_calls") -> list[tuple[str, Json]] | str:
    content, end, _ = answer("openai", sse(*pieces, chunk(finish=finish), b"[DONE]"))
    return calls(content) if end in ("tool_use", "max_tokens") else end


ONE, TWO = '{"path":"1"}', '{"path":"2"}'
P1, P2 = {"path": "1"}, {"path": "2"}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((piece(None, "Re", "a"), piece(None, "ad"), piece(ONE)), [("Read", P1)]),
        ((piece(None, "ReadF", "a"), piece(None, "ile"), piece(ONE)), [("ReadFile", P1)]),
        ((piece(None, "Read", "a"), piece(None, "File"), piece(ONE)), [("ReadFile", P1)]),
        ((piece(None, "Read", "a"), piece(None, "Read"), piece(ONE, "Read")), [("Read", P1)]),
        ((piece("", "Bash"), piece(ONE, "Read", None, 1)), [("Bash", {}), ("Read", P1)]),
        ((piece(None, "Nope", "a"), piece(ONE, "x")), [("Nope", P1)]),
        ((piece('{"path":', "Read", "a"), piece('"1"}', "Read", "b")), [("Read", P1)]),
        ((piece('{"path":', "Read", "a", None), piece('"1"}', "Read", "b", None)), [("Read", P1)]),
        ((piece('{"path":', "Read", "a", None), piece('"1"}', None, "b", None)), [("Read", P1)]),
        ((piece(ONE, "Read"), piece(TWO, "Bash")), [("Read", P1), ("Bash", P2)]),
        ((piece(ONE, "Read"), piece(TWO, "Read")), [("Read", P1), ("Read", P2)]),
        ((piece("", "Read"), piece(ONE), piece("", "Bash"), piece(TWO)), [("Read", P1), ("Bash", P2)]),
        ((piece(ONE, "Read", "a"), piece(TWO, "Bash", "a")), [("Read", P1), ("Bash", P2)]),
        ((piece(ONE, "Read", "a"), piece(TWO, "Read", "a")), [("Read", P1), ("Read", P2)]),
        ((piece(ONE, "Read", "a", None), piece(TWO, "Read", "a", None)), [("Read", P1), ("Read", P2)]),
        ((piece(ONE, "Read", "a"), piece(ONE, "Read", "a"), piece("", "Read", "a")), [("Read", P1)]),
        ((piece(ONE, None, "a"), piece("", "Read", "a")), [("Read", P1)]),
        ((piece('{"path":', "Read"), piece('"1"}', "Read")), [("Read", P1)]),
        ((piece("{}", "Read"), piece(ONE, "Read")), [("Read", P1)]),
        ((piece(ONE, "Read", 5), piece(TWO, "Read", 6)), [("Read", P1), ("Read", P2)]),
        ((piece(ONE, "Read", 5, None), piece(TWO, "Read", 6, None)), [("Read", P1), ("Read", P2)]),
        ((piece(ONE, "Read", "a", "0"),), [("Read", P1)]),
        ((piece('{"path":"1",}', "Read", "a"),), [("Read", P1)]),
        ((piece('{"path":"1,}",}', "Read", "a"),), [("Read", {"path": "1,}"})]),
        ((piece('```json\n{"path":"1"}\n```', "Read", "a"),), [("Read", P1)]),
        ((piece('{"path":', "Read", "a"), piece(ONE)), [("Read", P1)]),
        ((piece('{"path":', "Read", "a"), piece(ONE, "Read", "a")), [("Read", P1)]),
        ((piece("[]", "Read", "a"),), [("Read", {})]),
        ((piece([], "Read", "a"),), [("Read", {})]),
        ((piece("[]", "Read", "a"), piece(ONE)), [("Read", P1)]),
        ((piece("", "", "", 0), piece(ONE, "Read", "a", 1), piece("", None, None, 2)), [("Read", P1)]),
        ((piece("", "Read", "a"), piece('{"path":', "null", "null"), piece('"1"}', "null", "")), [("Read", P1)]),
        ((piece("", "Read", "a", None), piece(ONE, "None", "None", None)), [("Read", P1)]),
        ((piece('{"pa', "Read", "a", None), piece('th":"1"}', "Read", None, None)), [("Read", P1)]),
        ((piece("{}", "Bash"), piece(ONE, "Read")), [("Bash", {}), ("Read", P1)]),
        ((piece("", "Read", "a"), piece(ONE, "Bash", "b", 1)), [("Read", {}), ("Bash", P1)]),
        ((piece(ONE, None, "a", None), piece("", "Read", "a", None), piece(TWO, None, "b", None),
          piece("", "Bash", "b", None)), [("Read", P1), ("Bash", P2)]),
    ],
    ids=[
        "a name in pieces", "a name that begins with another", "a name that goes on after another", "a name repeated",
        "a call that is nothing but a name", "no tool's name in pieces",
        "an id for each piece", "an id for each piece, no index", "an id for each piece, no index, one name",
        "one index, no ids", "one index, no ids, one name", "one index, no ids, arguments apart",
        "one index, one id", "one index, one id, one name", "no index, one id, one name", "a call told twice",
        "a name that comes late", "fragments that repeat the name", "a placeholder first",
        "ids are numbers", "ids are numbers, no index", "an index as text", "a comma too many", "a comma in a string",
        "fenced", "arguments so far", "arguments so far with id and name",
        "no arguments in PHP", "no arguments in PHP, as a list", "a placeholder in PHP", "calls that are none",
        "null as a word", "None as a word, no index", "fragments that repeat the name, no index",
        "no arguments and another call, same index", "a tool whose name begins another's, and another call",
        "names that come late, no index",
    ],
)  # fmt: skip
def test_calls_are_told_apart_and_mended(pieces: tuple[Json, ...], expected: list[tuple[str, Json]]) -> None:
    assert called(*pieces) == expected


def ending(given: Json, finish: str | None = "stop") -> Json:
    """The same chunk with a finish reason."""
    return {"choices": [{**given["choices"][0], "finish_reason": finish}]}


SAY_A, SAY_B = chunk({"content": "a"}), chunk({"content": "b"})
COUNTS = {"prompt_tokens": 10, "completion_tokens": 1}
SAME_CALLS = [(ONE, "Read", "a"), ("", "Read", "b"), (ONE, None, None)]
THINK, DETAIL = chunk({"reasoning": "hm"}), {"type": "reasoning.text", "text": "hm"}


@pytest.mark.parametrize(
    ("events", "said", "end"),
    [
        ([ending(SAY_A), ending(SAY_B), ending(SAY_B, "length")], "abb", "max_tokens"),
        ([ending(SAY_A), ending(SAY_A), ending(SAY_A)], "aaa", "end_turn"),
        ([SAY_A, chunk(finish="length"), chunk(finish="stop")], "a", "max_tokens"),
        ([SAY_A, SAY_B, chunk(finish="stop"), ending(chunk({"content": "ab"}))], "ab", "end_turn"),
        ([*[SAY_A] * 250, chunk(finish="stop"), ending(chunk({"content": "a" * 250}))], "a" * 250, "end_turn"),
        ([ending(SAY_A), {"choices": [{"message": {"content": "a"}}]}], "a", "end_turn"),
        ([THINK, chunk(finish="stop"), THINK, ending(SAY_A)], "hm|a", "end_turn"),
        ([ending(chunk({"reasoning_details": [DETAIL]})), chunk({"reasoning_details": [DETAIL]})], "hm", "end_turn"),
        ([ending(SAY_A), {"error": {"message": "late"}}], "a", "end_turn"),
        ([ending(piece("[", "Read", "a")), {"error": {"message": "late"}}], "", "not a JSON object: '['"),
        ([ending(piece("{", "Read", "a")), ending(piece("}"))], "{}", "tool_use"),
        ([ending(piece(part, "Read")) for part in ('{"path":"', "{}", "null", '"}')], '{"path":"{}null"}', "tool_use"),
        ([ending(piece(*said, None)) for said in SAME_CALLS], f"{ONE}|{ONE}", "tool_use"),
        ([ending(piece(ONE, "Read", "a")), ending(piece(TWO, "Read", "b", 1))], f"{ONE}|{TWO}", "tool_use"),
        ([ending(piece(ONE, "Read", "a")), ending(piece(TWO, "Read", "b"))], f"{ONE}|{TWO}", "tool_use"),
        ([ending(piece(ONE, "Read", "a")), ending(piece(ONE, "Read", "a", None))], ONE, "tool_use"),
        ([ending(piece(ONE, "Read")), ending(piece(ONE, "Read")), chunk({"function_call": {}})], ONE, "tool_use"),
        ([ending(piece(ONE, "Read")), ending(piece(ONE, "Read", None, 1))], f"{ONE}|{ONE}", "tool_use"),
    ],
    ids=[
        "one with every chunk", "the same with every chunk", "the first of two counts", "an echo",
        "an echo of many chunks", "an echo as a whole", "an echo of reasoning",
        "an echo of details", "an error", "an error after half a call", "arguments",
        "arguments that look like none", "the same call, another id", "another call",
        "another call, same index", "a call again, no index", "a call again, no id", "the same call, another index",
    ],
)  # fmt: skip
def test_what_follows_a_finish_reason_is_heard_unless_it_was_said(events: list[Json], said: str, end: str) -> None:
    content, ended, _ = answer("openai", sse(*events, b"[DONE]"))
    shown = [block.get("text") or block.get("thinking") or json.dumps(block.get("input")) for block in content]
    assert ("|".join(shown).replace(" ", ""), ended[-len(end) :]) == (said, end)


HARMONY = [
    ("functions.Read", "Read"),
    ("Read<|channel|>commentary", "Read"),
    ("Read<|channel|", "Read"),
    ("functions.Read<|constrain|>json", "Read"),
    ("assistant<|channel|>commentary to=functions.ReadFile", "ReadFile"),
    ("<|start|>assistant to=Bash<|channel|>analysis", "Bash"),
    ("functions.Write", "functions.Write"),
    ("assistant<|channel|>analysis", "assistant<|channel|>analysis"),
    ("Read<|channel|>Bash", "Read<|channel|>Bash"),
    ("browser.Read", "browser.Read"),
    ("functions.v1.Read", "functions.v1.Read"),
]


@pytest.mark.parametrize(("told", "name"), HARMONY)
def test_a_name_with_pieces_of_gpt_oss_s_format_is_the_tool_that_it_means(told: str, name: str) -> None:
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": told, "arguments": ONE}
    done = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    call = {"id": "a", "function": {"name": told, "arguments": ONE}}
    assert called(piece(ONE, told, "a")) == [(name, P1)]
    assert called(piece("", told, "a"), piece(ONE, told)) == [(name, P1)]
    assert calls(answer("vllm", sse(whole("tool_calls", tool_calls=[call]))[6:])[0]) == [(name, P1)]
    assert calls(answer("openai-responses", sse(done))[0]) == [(name, P1)]
    assert calls(answer("openai-responses", msgspec.json.encode(done["response"]))[0]) == [(name, P1)]


@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_a_client_s_own_name_like_that_stays(provider: str) -> None:
    profile = PROFILES[provider]
    target = Target(provider, MODELS[provider], profile)
    tools = [{**READ, "name": name} for name in ("Read", "functions.Read", "functions.Bash")]
    request = parse(msgspec.json.encode({**REQUEST, "tools": tools}), "", ())
    sent = adapter(profile).build(request, target)
    for told in ("functions.Read", "functions.Bash", *dict(sent.names)):
        item = {"type": "function_call", "id": "f", "call_id": "c", "name": told, "arguments": ONE}
        done = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
        chat = ending(piece(ONE, told, "a"), "tool_calls")
        events = adapter(profile).decoder(request, target, sent, "").feed(sse(chat if provider == "openai" else done))
        started = next(event for event in events if isinstance(event, ToolStarted))
        assert started.name == dict(sent.names).get(told, told)


def whole(finish: str | None = "stop", **message: Any) -> Json:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


CALLED = piece(ONE, "Read", "a")
CALLS = CALLED["choices"][0]["delta"]["tool_calls"]
PARTED = chunk({"content": [{"type": "text", "text": "a"}]})


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([SAY_A, SAY_B, whole(content="ab")], "ab"),
        ([SAY_A, SAY_B, whole(content="ab "), chunk(finish="stop")], "ab"),
        ([PARTED, whole(content="a")], "a"),
        ([THINK, SAY_A, whole(content="a", reasoning="hm", reasoning_details=[DETAIL])], "hm|a"),
        ([THINK, whole(content="a", reasoning_content="hm")], "hm|a"),
        ([SAY_A, CALLED, whole("tool_calls", content="a", tool_calls=CALLS)], f"a|{ONE}"),
        ([SAY_A, whole("tool_calls", content="a", tool_calls=CALLS)], f"a|{ONE}"),
        ([chunk({"role": "assistant"}), whole(content="ab")], "ab"),
        ([whole(None, content="a"), whole(None, content="b"), whole(content="")], "ab"),
    ],
    ids=[
        "text", "text with other white space", "text in parts", "reasoning", "only the text is new", "a call",
        "only the call is new", "everything is new", "deltas of another name",
    ],
)  # fmt: skip
def test_a_whole_message_after_its_deltas_is_not_said_again(events: list[Json], said: str) -> None:
    content, end, _ = answer("openai", sse(*events, b"[DONE]"))
    shown = [block.get("text") or block.get("thinking") or json.dumps(block.get("input")) for block in content]
    assert "|".join(shown).replace(" ", "") == said
    assert end in ("end_turn", "tool_use")


@pytest.mark.parametrize(
    ("told", "end"),
    [
        ("end", "end_turn"),
        ("end_turn", "end_turn"),
        ("STOP", "end_turn"),
        ("tool_use", "end_turn"),
        ("MAX_TOKENS", "max_tokens"),
        ("SAFETY", "refusal"),
        ("refusal", "refusal"),
        ("max_len", "max_tokens"),
        ("max_output_tokens", "max_tokens"),
        ("TOKEN_LIMIT", "max_tokens"),
        ("RECITATION", "refusal"),
        ("PROHIBITED_CONTENT", "refusal"),
        ("tool_call", "end_turn"),  # without a call
        ("repetition", "the upstream gave up: finish_reason 'repetition'"),
        ("COMPLETE", "end_turn"),
        ("content-filter", "refusal"),
        ("content_filter: PROHIBITED_CONTENT", "refusal"),
        ("content_filter: OTHER", "refusal"),
        ("guardrail_intervened", "refusal"),
        (
            "function_call_filter: MALFORMED_FUNCTION_CALL",
            "the upstream gave up: finish_reason 'malformed_function_call'",
        ),
        ("function_call_filter: NEW", "the upstream gave up: finish_reason 'function_call_filter'"),
        ("Brand_New", "unknown finish_reason 'Brand_New'"),
    ],
)
def test_a_reason_in_another_apis_words_is_that_reason(told: str, end: str) -> None:
    assert answer("openai", sse(SAY_A, chunk(finish=told)))[1] == end


def test_a_reason_that_is_the_word_null_is_none() -> None:
    assert answer("openai", sse(ending(SAY_A, "null"), ending(SAY_B, "null"), chunk(finish="length")))[:2] == (
        [text("ab")],
        "max_tokens",
    )
    assert "before a finish_reason" in answer("openai", sse(ending(SAY_A, "null")))[1]


@pytest.mark.parametrize("between", [b"", b" ", b"data: ", b"\t"])
def test_objects_that_stand_on_one_line_are_several(between: bytes) -> None:
    line = between.join(map(msgspec.json.encode, (chunk({"content": "a}{"}), SAY_B, chunk(finish="stop"))))
    for events in ([line], [line + between + b"[DONE]"], [line + b"{" + line]):
        assert answer("openai", sse(*events))[:2] == ([text("a}{b")], "end_turn")
    for rest in (b"{", b"oops", b"\xff", b'{"a":' * 10_000):
        line = msgspec.json.encode(SAY_A) + between + rest
        assert "not a chat answer" in answer("openai", sse(line))[1]


@pytest.mark.parametrize("done", [b"[DONE]", b"[DONE] ", b" [DONE]"])
def test_done_ends_an_answer_whatever_is_around_it(done: bytes) -> None:
    assert answer("openai", sse(SAY_A, done)) == ([text("a")], "end_turn", None)


def test_counts_end_an_answer_only_where_they_come_alone() -> None:
    events = [ending(SAY_A) | {"usage": COUNTS}, ending(SAY_B) | {"usage": COUNTS}]
    assert answer("openai", sse(*events))[0] == [text("ab")]
    reading, _, _ = decoder("openai")
    assert isinstance(reading, Ending)
    assert not reading.feed(sse(chunk(finish="stop", usage=COUNTS))) and reading.ending
    assert isinstance(reading.feed(sse({"choices": [], "usage": COUNTS}))[-1], Finished)


@pytest.mark.parametrize("running", [COUNTS, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_counts_that_come_with_every_chunk_are_not_the_last_word(running: Json) -> None:
    """vLLM's `continuous_usage_stats`, and gateways that write zeros until the end."""
    events = [SAY_A | {"usage": running}, chunk(finish="stop", usage=running)]
    total = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}
    assert answer("openai", sse(*events, {"choices": [], "usage": total}))[1:] == ("end_turn", Usage(6, 5, 4))
    assert answer("openai", sse(*events, b"[DONE]"))[1] == "end_turn"


def test_a_reason_and_counts_with_every_chunk_are_no_end_before_anything_was_said() -> None:
    counts = [{"usage": {**COUNTS, "completion_tokens": number}} for number in range(3)]
    events = [ending(chunk({"role": "assistant", "content": ""})), ending(SAY_A), ending(SAY_B)]
    told = [event | count for event, count in zip(events, counts, strict=True)]
    assert answer("openai", sse(*told, b"[DONE]")) == ([text("ab")], "end_turn", Usage(10, 2))
    nothing = sse(chunk(finish="stop"), {"choices": [], "usage": COUNTS})
    assert answer("openai", nothing) == ([], "end_turn", Usage(10, 1))


@pytest.mark.parametrize(
    ("events", "lacking"),
    [
        ([SAY_A], False),
        ([SAY_A, chunk(finish="stop")], True),
        ([ending(SAY_A)], False),
        ([ending(SAY_A) | {"usage": COUNTS}], True),
        ([SAY_A | {"usage": COUNTS}], False),
    ],
)
def test_an_answer_that_lacks_only_its_figures_is_told_apart(events: list[Json], lacking: bool) -> None:
    for provider in ("openai", "minimax"):
        reading, _, _ = decoder(provider)
        reading.feed(sse(*events))
        assert isinstance(reading, Ending)
        assert reading.ending is lacking


@pytest.mark.parametrize(
    "arguments", ["[1]", "5", '"abc"', "{'path':'1'}", '{"path":NaN}', '{"path":"1', "```\n[1]\n```"]
)
def test_what_is_no_object_is_an_error(arguments: str) -> None:
    assert "not a JSON object" in str(called(piece(arguments, "Read", "a")))


@pytest.mark.parametrize("broken", [piece('{"pa', "Bash", "b", 1), piece(TWO, None, "b", 1)])
def test_nothing_is_seen_of_a_call_beside_a_broken_one(broken: Json) -> None:
    """So that both can be asked for again."""
    assert answer("openai", sse(piece(ONE, "Read", "a"), broken, chunk(finish="tool_calls")))[0] == []


def test_nothing_is_seen_of_a_call_that_the_token_limit_cut() -> None:
    assert called(piece('{"path":"1', "Read", "a"), finish="length") == []
    assert called(piece(ONE, "Read", "a"), piece('{"pa', "Read", "b", 1), finish="length") == [("Read", P1)]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"prompt_tokens": 10.0, "completion_tokens": "1"}, Usage(10, 1)),
        ({"prompt_tokens": -10, "completion_tokens": -1}, None),
        ({**COUNTS, "completion_tokens_details": {"reasoning_tokens": -1}}, Usage(10, 1)),
        ({**COUNTS, "prompt_tokens_details": {"cached_tokens": 80}}, Usage(0, 1, 10)),
        (
            {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}, "total_tokens": 15,
             "output_tokens_details": {"reasoning_tokens": 2}},
            Usage(6, 5, 4, 0, 2),
        ),
    ],
)  # fmt: skip
def test_odd_counts_do_not_end_an_answer(counts: Json, expected: Usage | None) -> None:
    content, end, usage = answer("openai", sse(chunk({"content": "a"}), chunk(finish="stop", usage=counts)))
    assert (content[0]["text"], end, usage) == ("a", "end_turn", expected)


def test_groq_counts_in_a_place_of_its_own() -> None:
    first = SAY_A | {"x_groq": {"id": "req_1"}}
    last = chunk(finish="stop") | {"x_groq": {"id": "req_1", "usage": COUNTS}}
    assert answer("openai", sse(first, last, b"[DONE]")) == ([text("a")], "end_turn", Usage(10, 1))


def test_a_chunk_that_is_no_chunk_is_an_error_and_one_that_is_an_error_is_that() -> None:
    assert "not a chat answer" in answer("openai", sse({"choices": 5}))[1]
    assert answer("openai", sse({"choices": 5, "error": {"message": "busy", "code": 529}}))[1] == "busy"
    assert answer("openai", sse(SAY_A, {"code": 500, "msg": "broken"}, b"[DONE]"))[1] == "broken"
    fine = {"code": 0, "msg": "ok", "error": None}
    assert answer("openai", sse(SAY_A | fine, chunk(finish="stop") | fine))[:2] == ([text("a")], "end_turn")


def test_a_choice_that_was_not_asked_for_is_not_heard() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": "stop"}]}
    assert answer("openai", sse(other, chunk({"content": "a"}), chunk(finish="stop")))[0] == [text("a")]


def test_the_choice_that_was_asked_for_is_heard_wherever_it_stands() -> None:
    other = {"index": 1, "delta": {"content": "B"}}
    events = [{"choices": [other, *chunk({"content": said})["choices"]]} for said in "ab"]
    assert answer("openai", sse(*events, chunk(finish="stop")))[:2] == ([text("ab")], "end_turn")
    whole = [{"index": n, "message": {"content": said}, "finish_reason": "stop"} for n, said in ((1, "B"), (0, "a"))]
    assert answer("openai", msgspec.json.encode({"choices": whole}))[:2] == ([text("a")], "end_turn")


def test_reasoning_that_comes_as_details_alone_is_shown() -> None:
    details = [{"type": "reasoning.text", "text": "hm"}, {"type": "reasoning.encrypted", "data": "x"}]
    content, _, _ = answer("openai", sse(chunk({"reasoning_details": details}), chunk({"content": "a"}, "stop")))
    assert [block.get("thinking", block.get("text")) for block in content] == ["hm", "a"]


def escaped(*parts: str) -> list[bytes]:
    """Chunks of text in which every character beyond ASCII is an escape, half ones too."""
    return [json.dumps(chunk({"content": part})).encode() for part in parts]


def test_a_character_that_comes_in_halves_is_one() -> None:
    events = escaped("\\ud83d x\ud83d", "\ude00y\ud83d", "\ude01")
    content, end, _ = answer("openai", sse(*events, chunk(finish="stop")))
    assert (content, end) == ([text("\\ud83d x\U0001f600y\U0001f601")], "end_turn")
    assert "not a chat answer" in answer("openai", sse(*escaped("\ude00"), chunk(finish="stop")))[1]
    assert answer("openai", sse(*escaped("a\ud83d"), chunk(finish="length")))[:2] == ([text("a")], "max_tokens")
    call = [json.dumps(piece(part, "Read", "a")).encode() for part in ('{"path":"\ud83d', '\ude00"}')]
    assert called(*call) == [("Read", {"path": "\U0001f600"})]
    half = json.dumps(piece('{"path":"1"}\ud83d', "Read", "a")).encode()
    assert "is not whole" in str(called(half))


HALF = "a\ud83d b"
SAID = {"type": "message", "content": [{"type": "output_text", "text": HALF}]}
CANDIDATE = {"candidates": [{"content": {"parts": [{"text": HALF}]}, "finishReason": "STOP"}]}


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai", json.dumps({"choices": [{"message": {"content": HALF}, "finish_reason": "stop"}]}).encode()),
        ("openai-responses", json.dumps({"status": "completed", "output": [SAID]}).encode()),
        ("gemini", json.dumps(CANDIDATE).encode()),
        ("gemini", sse(json.dumps(CANDIDATE).encode())),
    ],
)
def test_half_a_character_does_not_cost_a_whole_answer(provider: str, body: bytes) -> None:
    assert answer(provider, body)[:2] == ([text("a\N{REPLACEMENT CHARACTER} b")], "end_turn")


def test_a_whole_answer_without_a_message_is_no_answer() -> None:
    body = msgspec.json.encode({"choices": [{"finish_reason": "stop"}]})
    assert answer("openai", body) == ([], "the upstream's answer holds no message", None)


SIGNED = [{"type": "reasoning.encrypted", "data": f"sig{n}", "id": f"call_{n}", "index": 0} for n in (1, 2)]
THOUGHTS = [{"type": "reasoning.text", "text": f"t{n}", "signature": f"s{n}"} for n in (1, 2)]


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (sse(*(chunk({"reasoning_details": [detail]}) for detail in SIGNED), chunk(finish="stop")), SIGNED),
        (msgspec.json.encode({"choices": [{"message": {"reasoning_details": THOUGHTS}}]}), THOUGHTS),
    ],
    ids=["signatures of two calls", "two blocks, whole"],
)
def test_details_that_are_no_fragments_go_back_as_they_came(body: bytes, kept: list[Json]) -> None:
    reading, _, _ = decoder("openrouter")
    finished = [*reading.feed(body), *reading.close()][-1]
    assert isinstance(finished, Finished)
    assert msgspec.json.decode(finished.state)["reasoning_details"] == kept


RAW, END = json.dumps(chunk({"content": "a"})).encode(), msgspec.json.encode(chunk(finish="stop"))
WHOLE = msgspec.json.encode({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]})


@pytest.mark.parametrize(
    "body",
    [
        b"data: %b\ndata: %b\ndata: [DONE]\n" % (RAW, END),
        b"data: %b\ndata: %b\n\ndata: %b\n\n" % (*RAW.split(b" ", 1), END),
        b"\xef\xbb\xbfdata: %b\n\ndata: %b\n\n" % (RAW, END),
        b"\xef\xbb\xbf" + WHOLE,
        b"\n\n" + WHOLE,
    ],
    ids=["no blank lines", "one event in two lines", "BOM", "BOM before JSON", "JSON after blank lines"],
)
def test_odd_framing_is_read_at_any_cut(body: bytes) -> None:
    expected = ([text("a")], "end_turn", None)
    assert answer("openai", body) == expected
    assert answer("openai", *(bytes([byte]) for byte in body)) == expected


@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"worker 3 ran out of memory", "worker 3 ran out of memory"),
        (b'"ran out of memory"', '"ran out of memory"'),
        (b'{"message":"ran out of memory"}', "ran out of memory"),
        (b'{"error":{"message":"ran out of memory"}}', "ran out of memory"),
        (b"<html>", "the upstream ended its stream with an error"),
        (b'{"reason":1}', "the upstream ended its stream with an error"),
        (b"\xff", "the upstream ended its stream with an error"),
    ],
)
def test_an_error_event_keeps_its_words_in_every_dialect(provider: str, said: bytes, heard: str) -> None:
    assert answer(provider, b"event: error\ndata: %b\n\n" % said) == ([], heard, None)
    assert answer(provider, b"event: error\ndata: %b" % said, b"\n\ndata: [DONE]\n\n")[1] == heard


@pytest.mark.parametrize(
    ("provider", "events"),
    [
        ("openai", [{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}]),
        ("gemini", [{"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]}]),
        ("openai-responses", [{"type": "response.output_text.delta", "delta": "a"}, {"type": "response.completed"}]),
    ],
)
def test_events_of_nothing_keep_a_connection_alive(provider: str, events: list[Json]) -> None:
    assert answer(provider, b"data:\n\ndata: \n\n", sse(b"", b"  ", *events))[:2] == ([text("a")], "end_turn")


def test_events_without_blank_lines_are_read_in_every_dialect() -> None:
    google = [{"candidates": [{"content": {"parts": [text(said)]}}]} for said in "ab"]
    events = sse(*google, {"candidates": [{"finishReason": "STOP"}]}).replace(b"\n\n", b"\n")
    assert answer("gemini", events)[:2] == ([text("ab")], "end_turn")
    openai = [{"type": "response.output_text.delta", "delta": said} for said in "ab"]
    events = sse(*openai, {"type": "response.completed"}).replace(b"\n\n", b"\n")
    assert answer("openai-responses", events)[:2] == ([text("ab")], "end_turn")


# ---------------------------------------------------------------- reasoning in the text


@pytest.mark.parametrize(
    ("said", "thought", "rest"),
    [
        ("<think>\nhm</think>\n\nyes", "\nhm", "yes"),
        ("  <think>a < b </thin</think>yes", "a < b </thin", "yes"),
        ("<think>hm", "hm", ""),
        ("<think>hm</th", "hm</th", ""),
        ("<think></think>yes <think>no", "", "yes <think>no"),
        ("<thi", "", "<thi"),
        ("<b>yes</b>", "", "<b>yes</b>"),
        ("yes <think>hm</think>", "", "yes <think>hm</think>"),
    ],
)
def test_reasoning_at_the_beginning_of_a_text_is_thinking_at_any_cut(said: str, thought: str, rest: str) -> None:
    for size in range(1, len(said) + 1):
        reads = [chunk({"content": said[start : start + size]}) for start in range(0, len(said), size)]
        content, _, _ = answer("vllm", sse(*reads, chunk(finish="stop")))
        found = {block["type"]: block.get("thinking", block.get("text")) for block in content}
        assert (found.get("thinking", ""), found.get("text", "")) == (thought, rest), size


def test_a_text_in_parts_is_read_as_any_other() -> None:
    parts = [chunk({"content": [{"type": "text", "text": said}]}) for said in ("<think>", "hm</think>")]
    content, end, _ = answer("vllm", sse(*parts, chunk({"content": " "}), *parts[:1], chunk(finish="stop"), b"[DONE]"))
    assert [content[0]["thinking"], content[1:], end] == ["hm", [text("<think>")], "end_turn"]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "thinking", "thinking": "hm"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm", "signature": "S"}]},
    ],
    ids=["text", "mistral", "databricks"],
)
def test_a_part_of_a_text_that_is_reasoning_is_thinking(part: Json) -> None:
    said = {"type": "text", "text": "a"}
    whole = {"choices": [{"message": {"content": [part, said]}, "finish_reason": "stop"}]}
    for body in (sse(chunk({"content": [part]}), chunk({"content": [said]}, "stop")), msgspec.json.encode(whole)):
        content, end, _ = answer("openai", body)
        assert ([content[0]["thinking"], content[1:]], end) == (["hm", [text("a")]], "end_turn")


def test_reasoning_that_a_call_follows_is_thinking() -> None:
    events = sse(chunk({"content": "<think>hm</th"}), piece(ONE, "Read", "a"), chunk(finish="tool_calls"))
    content, end, _ = answer("vllm", events)
    assert ([block["type"] for block in content], end) == (["thinking", "tool_use"], "tool_use")
    assert answer("openai", sse(chunk({"content": "<think>hm</think>"}, "stop")))[0] == [text("<think>hm</think>")]
    assert ThinkText().close() == []


# ---------------------------------------------------------------- Gemini


def candidate(*parts: Json, finish: str | None = None, **more: Any) -> Json:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": finish}], **more}


TOLD = {"promptTokenCount": 10, "candidatesTokenCount": None, "cachedContentTokenCount": 4.0}


@pytest.mark.parametrize(
    "events",
    [
        [candidate(text("a"), finish="STOP"), {"candidates": None, "usageMetadata": TOLD}],
        [candidate({**text("a"), "thoughtSignature": None, "thought": None}, finish="STOP", usageMetadata=TOLD)],
        [candidate(text("a"), finish="STOP", usageMetadata={**TOLD, "cachedContentTokenCount": "4"})],
    ],
)
def test_null_is_what_google_leaves_out(events: list[Json]) -> None:
    expected = ([text("a")], "end_turn", Usage(6, 0, 4))
    assert answer("gemini", sse(*events)) == expected
    assert answer("gemini", msgspec.json.encode(events)) == expected, "a list under the wrong content type"


def test_nulls_in_arguments_stay() -> None:
    call = {"functionCall": {"id": None, "name": "Read", "args": {"path": None}}}
    assert calls(answer("gemini", sse(candidate(call, finish="STOP")))[0]) == [("Read", {"path": None})]


def test_more_cached_tokens_than_there_were_are_all_of_them() -> None:
    told = {"promptTokenCount": 10, "cachedContentTokenCount": 30}
    assert answer("gemini", sse(candidate(text("a"), finish="STOP", usageMetadata=told)))[2] == Usage(0, 0, 10)


READING = {"function_call": {"name": "Read", "args": {"function_call": {"path": 1.5}}}, "thought_signature": "c2ln"}
PYTHONS: Json = {
    "candidates": [{"content": {"parts": [text("a"), READING], "role": "model"}, "finish_reason": "STOP", "index": 0}],
    "usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 3, "cached_content_token_count": 4},
    "model_version": "gemini-3",
}


def test_geminis_fields_may_have_the_names_that_python_gives_them() -> None:
    said = json.dumps(PYTHONS).replace("1.5", "1.50").encode()
    nulls = said.replace(b'"index": 0', b'"index": null, "grounding_metadata": null')
    half = nulls.replace(b'"a"', b'"a\\ud83d"')
    for body in (sse(said), said, b"[%b]" % said, sse(nulls), nulls, sse(half), half):
        reading, _, _ = decoder("gemini")
        *events, finished = [*reading.feed(body), *reading.close()]
        assert isinstance(finished, Finished)
        assert (finished.usage, finished.model) == (Usage(6, 3, 4), "gemini-3")
        assert b"c2ln" in finished.state
        (called,) = [event for event in events if isinstance(event, ToolEnded)]
        assert called.arguments == '{"function_call":{"path":1.50}}', "those of a call are its tool's"
        assert b"c2ln" in called.state


def test_every_field_of_geminis_is_known_by_both_of_its_names() -> None:
    structs = [kind for kind in vars(gemini_wire).values() if isinstance(kind, type) and issubclass(kind, Struct)]
    fields = {field.name for kind in structs if kind is not Struct for field in msgspec.structs.fields(kind)}
    assert {name for name in fields if "_" in name} | {"retry_delay"} == set(NAMES)


def test_geminis_errors_may_have_those_names_too() -> None:
    said = {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": [{"retry_delay": "7s"}]}
    body = msgspec.json.encode({"error": said})
    target = Target("gemini", MODELS["gemini"], PROFILES["gemini"])
    failed = adapter(target.profile).failure(target, 429, {}, body)
    reading, _, _ = decoder("gemini")
    (within,) = reading.feed(sse(body))
    assert isinstance(within, Failed)
    assert (failed.retry_after, within.error.retry_after) == (7.0, 7.0)
    blocked = {"prompt_feedback": {"block_reason": "SAFETY", "block_reason_message": "no"}}
    assert answer("gemini", sse(blocked))[1] == "refusal"


def test_geminis_reasons_are_the_same_in_small_letters() -> None:
    reasons = {"stop": "end_turn", "max_tokens": "max_tokens", "Safety": "refusal", "FinishReason.STOP": "end_turn"}
    for told, end in reasons.items():
        assert answer("gemini", sse(candidate(text("a"), finish=told)))[:2] == ([text("a")], end)


def test_a_reason_of_geminis_that_is_not_told_is_none() -> None:
    untold, said = "FINISH_REASON_UNSPECIFIED", candidate(text("a"), finish="STOP")
    after = candidate(finish=untold, usageMetadata={"promptTokenCount": 3})
    assert answer("gemini", sse(candidate(text("b"), finish=untold), said, after)) == (
        [text("ba")],
        "end_turn",
        Usage(3),
    )
    assert answer("gemini", sse(candidate(text("b"), finish=untold), b"[DONE]"))[:2] == ([text("b")], "end_turn")
    assert "before a finishReason" in answer("gemini", sse(candidate(text("b"), finish=untold)))[1]


def test_of_candidates_without_an_index_the_first_is_heard() -> None:
    events = [candidate(text(said)) for said in "aAbB"] + [candidate(text("c"), finish="STOP")]
    pairs = [{"candidates": [*one["candidates"], *two["candidates"]]} for one, two in (events[:2], events[2:4])]
    assert answer("gemini", sse(*pairs, events[4]))[:2] == ([text("abc")], "end_turn")
    other = {"candidates": [{**events[1]["candidates"][0], "index": 1}, *events[4]["candidates"]]}
    assert answer("gemini", sse(other))[:2] == ([text("c")], "end_turn")


def test_a_character_of_geminis_that_comes_in_halves_is_one() -> None:
    events = [json.dumps(candidate(text(part))).encode() for part in ("a\ud83d", "\ude00b\ud83d", "\ude01 c")]
    content, end, _ = answer("gemini", sse(*events, candidate(text("d"), finish="STOP")))
    assert (content, end) == ([text("a\U0001f600b\U0001f601 cd")], "end_turn")
    call = {"functionCall": {"name": "Read", "args": {"path": "1\ud83d"}}}
    content, _, _ = answer("gemini", sse(json.dumps(candidate(call, finish="STOP")).encode()))
    assert calls(content) == [("Read", {"path": "1\N{REPLACEMENT CHARACTER}"})]


def test_what_is_not_geminis_is_an_error_still() -> None:
    assert "not Gemini's" in answer("gemini", sse({"candidates": "x"}))[1]
    assert answer("gemini")[1] == "the upstream closed before a finishReason"


@pytest.mark.parametrize("finish", ["STOP", None])
def test_done_ends_geminis_answer_too(finish: str | None) -> None:
    said = sse(candidate(text("a"), finish=finish))
    reading, _, _ = decoder("gemini")
    assert type(reading.feed(said + sse(b"[DONE]", candidate(text("late"))))[-1]) is Finished
    assert answer("gemini", said + b"data: [DONE]") == ([text("a")], "end_turn", None)
    assert answer("gemini", sse(b"[DONE]"))[1] == "the upstream closed before a finishReason"


@pytest.mark.parametrize(
    "error",
    [
        {"error": "busy"},
        [{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}],
        {"error": {"code": 503, "message": "busy", "details": [{"reason": 5}]}},
    ],
)
def test_an_error_in_geminis_place_is_read_in_any_shape(error: Any) -> None:
    assert answer("gemini", sse(msgspec.json.encode(error))) == ([], "busy", None)
    assert answer("gemini", msgspec.json.encode(error)) == ([], "busy", None)


@pytest.mark.parametrize("between", [b"", b" ", b"data: ", b"\t"])
def test_objects_of_geminis_that_stand_on_one_line_are_several(between: bytes) -> None:
    half = json.dumps(candidate({"text": "b\ud83d"}))
    events = (candidate(text("a}{")), half, json.dumps(candidate({"text": "\ude00"})), candidate(finish="STOP"))
    line = between.join(one.encode() if isinstance(one, str) else msgspec.json.encode(one) for one in events)
    for said in (line, line + between + b"[DONE]", line.replace(b"finishReason", b"finish_reason")):
        assert answer("gemini", sse(said))[:2] == ([text("a}{b\U0001f600")], "end_turn")
    for rest in (b"{", b"oops", b"\xff", b'{"a":' * 10_000):
        assert "not Gemini's" in answer("gemini", sse(line + between + rest))[1]


# ---------------------------------------------------------------- Responses

MESSAGE = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "a"}]}
CALL = {"type": "function_call", "id": "f", "call_id": "c", "name": "Read", "arguments": ONE}
SPENT = {"input_tokens": 10.0, "input_tokens_details": {"cached_tokens": 80}, "output_tokens": 1}
RESPONSE = {"id": "r", "object": "response", "status": "completed", "output": [MESSAGE, CALL], "usage": SPENT}


@pytest.mark.parametrize(
    "body",
    [sse({"type": "response.completed", "response": RESPONSE}), msgspec.json.encode(RESPONSE)],
    ids=["all of it at the end", "JSON under another content type"],
)
def test_a_response_that_comes_at_once_is_an_answer(body: bytes) -> None:
    content, end, usage = answer("openai-responses", body)
    assert (content[0], calls(content), end, usage) == (text("a"), [("Read", P1)], "tool_use", Usage(0, 1, 10))


@pytest.mark.parametrize(
    "body",
    [
        sse(b"[DONE]"),
        sse({"type": "response.created", "response": {"id": "r"}}, b"[DONE]"),
        msgspec.json.encode({"id": "r", "status": "completed"}),
    ],
)
def test_a_response_that_holds_nothing_is_no_answer(body: bytes) -> None:
    assert answer("openai-responses", body) == ([], "the upstream's answer holds no output", None)
    empty = msgspec.json.encode({**RESPONSE, "output": []})
    assert answer("openai-responses", empty)[:2] == ([], "end_turn"), "that it said nothing is an answer"


def test_the_kind_of_an_event_may_stand_outside_of_its_data() -> None:
    said = b'event: response.output_text.delta\ndata: {"delta":"a"}\n\n'
    end = b"event: response.completed\ndata: %b\n\n" % msgspec.json.encode({"response": {"status": "in_progress"}})
    assert answer("openai-responses", said + end)[:2] == ([text("a")], "end_turn"), "the event says that it is over"
    assert answer("openai-responses", b'event: odd\ndata: {"delta":"x"}\n\n' + said + end)[0] == [text("a")]


@pytest.mark.parametrize("between", [b"", b" ", b"data: ", b"\t"])
def test_events_of_a_response_that_stand_on_one_line_are_several(between: bytes) -> None:
    said = {"type": "response.output_text.delta", "delta": "a}{"}
    halves = [json.dumps({**said, "delta": half}).encode() for half in ("b\ud83d", "\ude00")]
    over = {"type": "response.completed", "response": {"status": "completed"}}
    line = between.join([msgspec.json.encode(said), *halves, msgspec.json.encode(over)])
    for events in (line, line + between + b"[DONE]", between.join([msgspec.json.encode(said), *halves, b"[DONE]"])):
        assert answer("openai-responses", sse(events))[:2] == ([text("a}{b\U0001f600")], "end_turn")
    for rest in (b"{", b"oops", b"\xff", b'{"a":' * 10_000):
        broken = msgspec.json.encode(said) + between + rest
        assert "not its protocol" in answer("openai-responses", sse(broken))[1]


ADDED, DONE, DELTA = "output_item.added", "output_item.done", "function_call_arguments.delta"
OTHER = {"type": "function_call", "id": "g", "call_id": "d", "name": "Bash", "arguments": TWO}
THOUGHT = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}
OVER: Json = {"type": "response.completed", "response": {**RESPONSE, "output": []}}
NO_INDEX: Json = {"output_index": None}


def told(kind: str, item: Json | None = None, **more: Any) -> Json:
    """An event of an item whose index is 0, as those of all items are at some servers."""
    return {"type": f"response.{kind}", "output_index": 0, **({"item": item} if item else {}), **more}


READ_ONE = told(DELTA, item_id="f", delta=ONE)


@pytest.mark.parametrize(
    "events",
    [
        [told(ADDED, CALL), told(DELTA, delta=ONE), told(DONE, CALL), told(ADDED, OTHER), told(DONE, OTHER)],
        [told(ADDED, CALL), told(ADDED, OTHER), READ_ONE, told(DONE, CALL), told(DONE, OTHER)],
        [told(ADDED, CALL), told(ADDED, CALL), told(DONE, CALL), told(DONE, OTHER)],
        [told("reasoning_text.delta", delta="hm"), told(ADDED, CALL), told(DONE, CALL), told(DONE, OTHER)],
        [told(DONE, {**CALL, "id": None}, **NO_INDEX), told(DONE, {**OTHER, "id": None}, **NO_INDEX)],
        [told(DONE, {**CALL, "arguments": P1}), told(ADDED, OTHER), told("function_call_arguments.done", arguments=P2)],
    ],
    ids=["one after the other", "at once", "begun twice", "after reasoning", "nothing but call ids", "objects"],
)  # fmt: skip
def test_items_that_share_an_index_are_told_apart(events: list[Json]) -> None:
    content, end, _ = answer("openai-responses", sse(*events, OVER))
    assert (calls(content), end) == ([("Read", P1), ("Bash", P2)], "tool_use")


def test_a_message_that_shares_its_index_with_reasoning_is_heard() -> None:
    thinking = told("reasoning_summary_text.delta", delta="hm")
    content, _, _ = answer("openai-responses", sse(thinking, told(DONE, THOUGHT), told(DONE, MESSAGE), OVER))
    assert content[1] == text("a")


def test_a_call_that_only_the_response_itself_tells_is_one() -> None:
    streamed = told("output_text.delta", delta="a")
    content, end, _ = answer("openai-responses", sse(streamed, {"type": "response.completed", "response": RESPONSE}))
    assert (content[0], calls(content), end) == (text("a"), [("Read", P1)], "tool_use")


SECOND = {"type": "message", "id": "m2", "content": [{"type": "output_text", "text": "b"}]}
SAID_A = told("output_text.delta", delta="a", item_id="m")


@pytest.mark.parametrize(
    ("events", "output", "shown"),
    [
        ([told(DONE, CALL)], [CALL, OTHER], [P1, P2]),
        ([told(ADDED, {**CALL, "arguments": ""}), READ_ONE], [CALL, OTHER], [P1, P2]),
        ([told(DONE, {**CALL, "id": "x", "call_id": "y"})], [CALL], [P1]),
        ([told(DONE, {**CALL, "id": "x", "call_id": "y"}), told(DONE, OTHER)], [CALL, OTHER], [P1, P2]),
        ([told(ADDED, {"type": "function_call", "id": "f"}), READ_ONE], [CALL], [P1]),
        ([SAID_A], [{**MESSAGE, "id": "m"}, SECOND], ["a", "b"]),
        ([SAID_A], [MESSAGE | {"id": None}, SECOND | {"id": None}], ["a", "b"]),
        ([told(DONE, {**MESSAGE, "id": "m"})], [{**MESSAGE, "id": "m"}, SECOND], ["a", "b"]),
        ([told(DONE, MESSAGE | {"id": None})], [MESSAGE | {"id": None}, SECOND | {"id": None}], ["a", "b"]),
        ([SAID_A, {**SAID_A, "delta": "b"}], [MESSAGE, SECOND], ["ab"]),
        ([told(ADDED, {"type": "message", "id": "m2"})], [SECOND], ["b"]),
        ([told(DONE, THOUGHT), SAID_A], [THOUGHT, THOUGHT, MESSAGE], ["hm", "a"]),
    ],
    ids=[
        "a call", "a call beside an open one", "a call under other names", "calls under other names", "a name",
        "a text", "a text without a name", "a text after a whole one", "without names", "texts that were run together",
        "a text that had only begun", "reasoning that repeats",
    ],
)  # fmt: skip
def test_what_only_the_response_itself_tells_is_told_once(events: list[Json], output: list[Json], shown: Any) -> None:
    over = {"type": "response.completed", "response": {**RESPONSE, "output": output}}
    content, end, _ = answer("openai-responses", sse(*events, over))
    assert [block.get("input") or block.get("thinking") or block.get("text") for block in content] == shown
    assert end in ("tool_use", "end_turn")


def test_arguments_of_a_call_that_nobody_names_are_an_error() -> None:
    for event in (
        READ_ONE,
        told("function_call_arguments.done", arguments=ONE),
        told(ADDED, {"type": "function_call"}),
    ):
        assert "without a name" in answer("openai-responses", sse(event, OVER))[1]
        limit = {"type": "response.incomplete", "response": {"status": "incomplete"}}
        assert answer("openai-responses", sse(event, limit))[:2] == ([], "max_tokens")


@pytest.mark.parametrize("details", [None, {}, {"reason": None}])
def test_a_response_that_is_incomplete_without_a_reason_was_too_long(details: Json | None) -> None:
    reply = {"status": "incomplete", "incomplete_details": details, "output": [MESSAGE]}
    assert answer("openai-responses", sse({"type": "response.incomplete", "response": reply}))[:2] == (
        [text("a")],
        "max_tokens",
    )
    assert answer("openai-responses", msgspec.json.encode(reply))[:2] == ([text("a")], "max_tokens")


def test_arguments_that_only_the_response_itself_tells_are_the_calls() -> None:
    begun = [told(ADDED, {**item, "arguments": ""}) for item in (CALL, OTHER)]
    whole = {"type": "response.completed", "response": {**RESPONSE, "output": [CALL, OTHER]}}
    assert calls(answer("openai-responses", sse(*begun, whole))[0]) == [("Read", P1), ("Bash", P2)]


@pytest.mark.parametrize(
    ("given", "more", "expected"),
    [
        (ONE, [], P1),
        (ONE, [READ_ONE], P1),
        ("{}", [READ_ONE], P1),
        ({"path": "1"}, [], P1),
        (TWO, [told("function_call_arguments.done", item_id="f", arguments=ONE)], P1),
    ],
    ids=["nowhere else", "in pieces, too", "none yet", "as an object", "and others at the end"],
)
def test_arguments_that_stand_in_the_start_of_a_call_are_its_own(given: Any, more: list[Json], expected: Json) -> None:
    events = [told(ADDED, {**CALL, "arguments": given}), *more, {"type": "response.completed", "response": {}}]
    assert calls(answer("openai-responses", sse(*events))[0]) == [("Read", expected)]
    late = [told("function_call_arguments.done", item_id="f", arguments=ONE), told(ADDED, CALL), events[-1]]
    assert calls(answer("openai-responses", sse(*late))[0]) == [("Read", P1)]


@pytest.mark.parametrize("status", [None, "completed"])
def test_a_call_that_the_token_limit_cut_is_not_run_whatever_its_status_says(status: str | None) -> None:
    cut = {**CALL, "arguments": '{"path":["1"', "status": status}
    reason = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    streamed = sse(told(DONE, cut), {"type": "response.incomplete", "response": reason})
    for body in (streamed, msgspec.json.encode({**RESPONSE, **reason, "output": [cut]})):
        reading, _, _ = decoder("openai-responses")
        events = reading.feed(body) + reading.close()
        assert [type(event).__name__ for event in events] == ["ToolStarted", "ToolDropped", "Finished"]


@pytest.mark.parametrize("added", [True, False])
def test_pieces_that_do_not_say_whose_they_are_belong_to_the_open_item(added: bool) -> None:
    thought = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}
    items: list[Json] = [thought, MESSAGE, CALL]
    kinds = ("reasoning_summary_text", "output_text", "function_call_arguments")
    events: list[Json] = []
    for item, kind, pieces in zip(items, kinds, (("h", "m"), ("a",), (ONE[:3], ONE[3:])), strict=True):
        events += [{"type": "response.output_item.added", "item": {**item, "arguments": ""}}] if added else []
        events += [{"type": f"response.{kind}.delta", "delta": piece} for piece in pieces]
        events.append({"type": "response.output_item.done", "item": item})
    content, end, _ = answer("openai-responses", sse(*events, {"type": "response.completed", "response": {}}))
    assert [block.get("thinking", block.get("text")) for block in content] == ["hm", "a", None]
    assert (calls(content), end) == ([("Read", msgspec.json.decode(ONE))], "tool_use")


def test_a_summary_whose_parts_come_without_pieces_is_told_at_their_end() -> None:
    summary = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    events = [{"type": "response.reasoning_summary_part.added", "item_id": "r", "summary_index": n} for n in (0, 1)]
    done = {"type": "response.output_item.done", "item": {"type": "reasoning", "id": "r", "summary": summary}}
    content = answer("openai-responses", sse(*events, done, {"type": "response.completed", "response": {}}))[0]
    assert [block["thinking"] for block in content] == ["one\n\ntwo"]
    parts = [told("reasoning_summary_text.done", item_id="r", text=part["text"]) for part in summary]
    content = answer("openai-responses", sse(*parts, done, {"type": "response.completed", "response": {}}))[0]
    assert [block["thinking"] for block in content] == ["one\n\ntwo"]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.reasoning.delta", "delta": {"text": "hm"}},
        {"type": "response.created", "response": {"id": None, "output": None}},
        {"type": "response.created"},
        {"type": "response.reasoning_summary_part.added", "summary_index": None},
        {},
    ],
)
@pytest.mark.parametrize("response", [None, {"status": None, "output": None}, {"usage": {"input_tokens": "10"}}])
def test_nulls_and_events_of_another_kind_do_not_end_a_response(event: Json, response: Json | None) -> None:
    over = {"type": "response.completed", **({"response": response} if response else {})}
    assert answer("openai-responses", sse(event, told("output_text.delta", delta="a"), over))[:2] == (
        [text("a")],
        "end_turn",
    )


@pytest.mark.parametrize(
    "error", [{"code": 429, "message": "slow"}, {"error": "slow", "code": 429}, {"type": "error", "message": "slow"}]
)
def test_an_error_in_a_responses_place_is_read_in_any_shape(error: Json) -> None:
    assert answer("openai-responses", sse(error))[1] == "slow"
    assert answer("openai-responses", msgspec.json.encode(error))[1] == "slow"
    failed = {"type": "response.failed", "response": {"error": error.get("error", error)}}
    assert answer("openai-responses", sse(failed))[1] == "slow"
    assert answer("openai-responses", sse({"type": "error", "delta": 5, "message": "slow"}))[1] == "slow"


def test_a_character_that_comes_in_halves_is_one_in_a_response() -> None:
    parts = [told("output_text.delta", delta=delta) for delta in ("a\ud83d", "\ude00")]
    content, _, _ = answer("openai-responses", sse(*(json.dumps(part).encode() for part in parts), OVER))
    assert content == [text("a\U0001f600")]
    half = json.dumps(told(DELTA, delta=ONE + "\ud83d")).encode()
    assert "is not whole" in answer("openai-responses", sse(told(ADDED, CALL), half, OVER))[1]


# ---------------------------------------------------------------- markup that ends too early

HALF_CALL = '<invoke name="Read"><parameter name="path">/tmp/x'
WHOLE_CALL = HALF_CALL + "</parameter></invoke>"


@pytest.mark.parametrize("end", [[chunk(finish="stop"), b"[DONE]"], [chunk(finish="tool_calls")], [b"[DONE]"]])
@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning": "hm"}, {"content": f"a{HALF_CALL}"}],
        [{"reasoning": f"hm{HALF_CALL}"}],
        [{"reasoning": "hm"}, {"content": WHOLE_CALL + HALF_CALL}],
        [{"reasoning": "hm"}, {"content": HALF_CALL}, {"reasoning": "so"}],
    ],
    ids=["in the content", "in the reasoning", "the second", "before reasoning"],
)
def test_a_call_in_markup_that_does_not_end_is_an_error(deltas: list[Json], end: list[Any]) -> None:
    content, ended, _ = answer("minimax", sse(*map(chunk, deltas), *end))
    assert ended == "the upstream's answer ended inside a tool call"
    assert len(calls(content)) == (WHOLE_CALL in str(deltas))


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_call_in_markup_that_was_cut_off_is_left_out(finish: str) -> None:
    content, end, _ = answer("minimax", sse(chunk({"reasoning": "hm"}), chunk({"content": f"a{HALF_CALL}"}, finish)))
    assert (content[1:], end) == ([text("a")], "max_tokens" if finish == "length" else "refusal")


def test_a_call_that_reasoning_only_talks_about_is_left_out() -> None:
    events = [chunk({"reasoning": f"hm {HALF_CALL}"}), chunk({"content": "a"}, "stop")]
    content, end, _ = answer("minimax", sse(*events))
    assert (content[1:], end) == ([text("a")], "end_turn")


# ---------------------------------------------------------------- calls in the text and beside it

IN_TEXT = (
    '<minimax:tool_call>\n<invoke name="Read"><parameter name="path">\n1\n</parameter></invoke></minimax:tool_call>'
)
SAID = chunk({"content": f"Look.\n{IN_TEXT}"})
BESIDE = (piece(None, "Read", "a"), piece('{"pa'), piece('th":"1"}'))
TALKS = chunk({"reasoning": "hm"})


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([SAID, *BESIDE], [P1]),
        ([*BESIDE, SAID], [P1]),
        ([BESIDE[0], BESIDE[1], SAID, BESIDE[2]], [P1]),
        ([chunk({"reasoning": f"hm {IN_TEXT}"}), *BESIDE], [P1]),
        ([*BESIDE, chunk({"content": IN_TEXT.removesuffix("</invoke></minimax:tool_call>")})], [P1]),
        ([SAID, piece(TWO, "Read", "a")], [P1, P2]),
        ([piece(TWO, "Read", "a"), SAID], [P2, P1]),
        ([SAID, SAID, *BESIDE, piece(ONE, "Read", "b", 1)], [P1, P1]),
        ([SAID, *BESIDE, piece(ONE, "Read", "b", 1)], [P1, P1]),
        ([SAID, *BESIDE, piece(TWO, "Read", "b", 1)], [P1, P2]),
    ],
    ids=[
        "text first", "text last", "text within", "in the reasoning", "text that does not end", "another call",
        "another call first", "two", "two beside, one in the text", "one and another",
    ],
)  # fmt: skip
def test_a_call_that_comes_in_the_text_and_beside_it_comes_once(events: list[Json], expected: list[Json]) -> None:
    content, end, _ = answer("minimax", sse(TALKS, *events, chunk(finish="tool_calls"), b"[DONE]"))
    given = [{name: value.strip() for name, value in arguments.items()} for _, arguments in calls(content)]
    assert (given, end) == (expected, "tool_use")
    reading, _, _ = decoder("minimax")
    finished = [*reading.feed(sse(TALKS, *events, chunk(finish="tool_calls"))), *reading.close()][-1]
    assert isinstance(finished, Finished)
    assert any("told once" in note for note in finished.notes) == (P2 not in expected or len(events) == 5)


def test_a_whole_answer_that_tells_its_calls_twice_has_them_once() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "Read", "arguments": ONE}}
    message = {"role": "assistant", "content": f"<think>hm</think>{IN_TEXT}", "tool_calls": [call]}
    body = msgspec.json.encode({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    content, end, _ = answer("minimax", body)
    assert ([name for name, _ in calls(content)], end) == (["Read"], "tool_use")


def test_of_a_call_that_was_cut_off_beside_the_text_the_one_in_it_is_run() -> None:
    content, end, _ = answer("minimax", sse(TALKS, SAID, *BESIDE[:2], chunk(finish="length")))
    assert ([name for name, _ in calls(content)], end) == (["Read"], "max_tokens")
    content, end, _ = answer("minimax", sse(TALKS, *BESIDE[:2], SAID, chunk(finish="length")))
    assert ([name for name, _ in calls(content)], end) == (["Read"], "max_tokens")


def test_what_two_readers_of_a_call_take_for_its_values_is_the_same() -> None:
    twins = Twins()
    assert not twins.has("written", "Read", '{"path":" 1\\n","limit":5,"deep":[true,{"a":null}]}')
    assert twins.expects("parsed", "Read")
    assert not twins.has("parsed", "Bash", "{}")
    assert twins.has("parsed", "Read", '{"deep":["true",{"a":"null"}],"path":"1","limit":"5"}')
    assert not twins.expects("parsed", "Read")


@pytest.mark.parametrize("detail", [[], 3, "x"])
def test_reasoning_details_that_are_none_do_not_cost_a_complete_answer(detail: object) -> None:
    late = {"reasoning": "Hm", "reasoning_details": [detail]}
    stream = sse(chunk({"content": "Hi"}), chunk(finish="stop"), chunk(late), b"[DONE]")
    content, end, _ = answer("openrouter", stream)
    assert ([block.get("text") for block in content if block["type"] == "text"], end) == (["Hi"], "end_turn")


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("status", ["requires_action", "in_progress", "success", None])
def test_the_event_tells_how_a_response_ended_where_its_status_does_not(status: str | None, bare: bool) -> None:
    whole = {**RESPONSE, "status": status}
    for kind in ("response.completed", "response.done"):
        last = whole if bare else {"type": kind, "response": whole}
        body = b"event: %b\n" % kind.encode() + sse(last)
        content, end, usage = answer("openai-responses", body)
        assert (content[0], calls(content), end, usage) == (text("a"), [("Read", P1)], "tool_use", Usage(0, 1, 10))


def test_a_whole_response_whose_calls_wait_for_their_results_is_complete() -> None:
    content, end, _ = answer("openai-responses", msgspec.json.encode({**RESPONSE, "status": "requires_action"}))
    assert (content[0], calls(content), end) == (text("a"), [("Read", P1)], "tool_use")


def whole_text(kind: str, said: str, **more: Any) -> Json:
    return {"type": f"response.{kind}.done", "refusal" if kind == "refusal" else "text": said, **more}


IDS: Json = {"item_id": "m", "output_index": 0}


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ([whole_text("output_text", "a", **IDS)], ["a"]),
        ([whole_text("output_text", "a")], ["a"]),
        ([whole_text("output_text", "a", **IDS), whole_text("output_text", "b", **IDS)], ["ab"]),
        ([whole_text("output_text", "a", **IDS), told(DONE, {**MESSAGE, "id": "m"})], ["a"]),
        ([told(DONE, {**MESSAGE, "id": "m"}), whole_text("output_text", "a", **IDS)], ["a"]),
        ([told(DONE, MESSAGE | {"id": None}, **NO_INDEX), whole_text("output_text", "a")], ["a"]),
        ([SAID_A, whole_text("output_text", "a", **IDS)], ["a"]),
        ([SAID_A, whole_text("output_text", "a", item_id="other", output_index=0)], ["a"]),
        ([whole_text("output_text", "", **IDS), told(DONE, {**MESSAGE, "id": "m"})], ["a"]),
        ([whole_text("reasoning_text", "hm", item_id="r"), whole_text("output_text", "a", **IDS)], ["hm", "a"]),
        ([whole_text("reasoning_summary_text", "hm", **IDS), {"type": "response.reasoning_summary_part.added", **IDS},
          whole_text("reasoning_summary_text", "so", **IDS), told(DONE, MESSAGE)], ["hm\n\nso", "a"]),
    ],
    ids=[
        "a text", "without a name", "two parts", "before its item", "after its item", "after its item, without names",
        "after its pieces", "after its pieces, under another name", "nothing", "reasoning", "two parts of reasoning",
    ],
)  # fmt: skip
def test_a_text_that_comes_in_no_pieces_is_told_once(events: list[Json], shown: list[str]) -> None:
    content, end, _ = answer("openai-responses", sse(*events, OVER))
    assert ([block.get("thinking") or block["text"] for block in content], end) == (shown, "end_turn")


WAYS: tuple[Json, ...] = ({}, {"item_id": "x"}, {"output_index": 0}, {"item_id": "m", "output_index": 0})


@pytest.mark.parametrize("kind", ["output_text", "reasoning_text", "reasoning_summary_text"])
@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("last", WAYS)
def test_what_came_in_pieces_is_not_told_again_whatever_names_it_has(kind: str, first: Json, last: Json) -> None:
    pieces = [{"type": f"response.{kind}.delta", "delta": piece, **first} for piece in "ab"]
    message = {"type": "response.output_text.delta", "delta": "c", "item_id": "n", "output_index": 1}
    events = [*pieces, whole_text(kind, "ab", **last), *([] if kind == "output_text" else [message])]
    content, end, _ = answer("openai-responses", sse(*events, OVER))
    assert (content[0].get("thinking") or content[0]["text"], end) == ("ab", "end_turn")


@pytest.mark.parametrize("pieces", [[], ["No", "pe"]])
def test_a_refusal_that_comes_in_no_pieces_is_one(pieces: list[str]) -> None:
    streamed = [told("refusal.delta", delta=piece, item_id="m") for piece in pieces]
    reading, _, _ = decoder("openai-responses")
    last = reading.feed(sse(*streamed, whole_text("refusal", "Nope", **IDS), OVER))[-1]
    assert isinstance(last, Finished) and (last.reason, last.explanation) == ("refusal", "Nope")


@pytest.mark.parametrize("idle", [b"data: : keepalive\n\n", b"event: ping\ndata: 1\n\n", b"data: null\n\n"])
def test_a_server_like_anthropic_keeps_a_connection_alive_in_any_way(idle: bytes) -> None:
    start = {"type": "message_start", "message": {"id": "m", "role": "assistant", "model": "c", "content": []}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    assert answer("anthropic", idle + sse(start) + idle + sse(end, {"type": "message_stop"}))[:2] == ([], "end_turn")


def test_what_follows_the_end_of_a_gateways_gemini_stream_is_not_heard() -> None:
    said = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]}
    assert answer("gemini", sse(said, b"[DONE]", said))[:2] == ([text("a")], "end_turn")


@pytest.mark.parametrize("none", [{"function_call": {"name": "", "arguments": ""}}, {"tool_calls": [{"index": 0}]}])
def test_a_text_beside_a_call_that_is_none_is_only_a_text(none: Json) -> None:
    said = {"choices": [{"index": 0, "delta": {"content": "a", **none}}]}
    assert answer("openai", sse(said, ending({"choices": [{"index": 0, "delta": none}]})))[:2] == (
        [text("a")],
        "end_turn",
    )


def test_arguments_that_are_an_empty_list_are_none_at_gemini() -> None:
    call = {"functionCall": {"name": "Read", "args": []}}
    said = {"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]}
    assert calls(answer("gemini", sse(said))[0]) == [("Read", {})]


def test_a_malformed_call_at_googles_compatibility_layer_is_asked_for_again() -> None:
    reading, _, _ = decoder("openai")
    (failed,) = reading.feed(sse(chunk(finish="function_call_filter: MALFORMED_FUNCTION_CALL")))
    assert isinstance(failed, Failed) and isinstance(failed.error, UpstreamGaveUp)


@pytest.mark.parametrize(("number", "end"), [(1, "end_turn"), (2, "max_tokens"), (3, "refusal"), ("4", "refusal")])
def test_gemini_finish_reasons_may_be_numbers(number: object, end: str) -> None:
    said = [{"content": {"parts": [{"text": "a"}]}, "finishReason": reason} for reason in (0, number)]
    assert answer("gemini", sse(*({"candidates": [each]} for each in said)))[:2] == ([text("aa")], end)


def test_a_gemini_finish_reason_with_another_number_is_giving_up() -> None:
    said = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": 10}]}
    assert answer("gemini", sse(said))[1] == "the upstream gave up on its answer with 10"


@pytest.mark.parametrize(
    "counts",
    [
        {"prompt_tokens_details": {"cached_tokens": 80, "cache_creation_tokens": 10}},
        {"prompt_tokens_details": {"cached_tokens": 80, "cached_creation_tokens": 10}},
        {"cache_read_input_tokens": 80, "cache_creation_input_tokens": 10},
    ],
)
def test_gateways_in_front_of_claude_count_its_cache(counts: Json) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, **counts}
    assert answer("openai", sse(SAY_A, chunk(finish="stop", usage=usage)))[2] == Usage(10, 5, 80, 10)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"error": ["boom"]}, "boom"),
        ({"error": [{"message": "boom"}]}, "boom"),
        ({"error": True, "message": "boom"}, "boom"),
        ({"error": True}, "the upstream gave no message"),
    ],
)
def test_an_error_in_any_shape_is_no_end_of_an_answer(error: Json, message: str) -> None:
    assert answer("openai", sse(SAY_A, error, b"[DONE]"))[1] == message
