"""Requests to Anthropic: the client's bytes, provenance of thinking, errors, the retry without thinking."""

import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from translation.adapter import Forgetful, Target, UpstreamRequest
from translation.adapters import adapter, relays
from translation.client.parse import parse
from translation.client.stored import parse_message
from translation.errors import (
    BridgeError,
    PromptTooLong,
    TooLarge,
    UpstreamFailed,
    UpstreamKeyRefused,
    UpstreamModelMissing,
    UpstreamOverloaded,
    UpstreamRateLimited,
    UpstreamRefused,
    UpstreamTimeout,
)
from translation.history import repair
from translation.providers.anthropic import Anthropic
from translation.providers.anthropic_errors import in_band
from translation.providers.profiles import PROFILES
from translation.values import (
    Link,
    Message,
    Origin,
    RedactedThinking,
    Request,
    Role,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
)

PROFILE = PROFILES["anthropic"]
TARGET = Target("anthropic", "claude-sonnet-4-5", PROFILE)

# Odd spacing, escapes, unknown fields, cache_control: all of it is the client's business.
BODY = rb"""{ "model" : "claude-sonnet-4-5", "max_tokens":32000,"stream": true, "future": {"a":[1,2.50]},
 "thinking":{"type":"enabled","budget_tokens":31999},
 "context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"},{"type":"clear_tool_uses_20250919"}]},
 "system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"Be \u00fcber.","cache_control":{"type":"ephemeral"}}],
 "tools":[ {"name":"Bash","input_schema":{"type":"object","properties":{}},"strict":true} ],
 "messages":[ {"role":"user","content":"hi"} , {"content":[{"type":"thinking","thinking":"hm","signature":"Eq=="},
   {"type":"tool_use","id":"toolu_1","name":"Bash","input":{"n": 1.0}}],"role":"assistant"},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok","cache_control":{"type":"ephemeral"}}]} ]}"""  # noqa: E501


def read(body: bytes = BODY, betas: tuple[str, ...] = ()) -> Request:
    request, notes = repair(parse(body, "2023-06-01", betas), PROFILE)
    assert notes == ()
    return request


def build(request: Request, target: Target = TARGET) -> UpstreamRequest:
    return Anthropic().build(request, target)


def fields(sent: UpstreamRequest) -> dict[str, bytes]:
    return {name: bytes(raw) for name, raw in msgspec.json.decode(sent.body, type=dict[str, msgspec.Raw]).items()}


def rules(sent: UpstreamRequest) -> list[str]:
    return [note.rule for note in sent.notes]


def test_a_history_from_the_store_has_what_only_anthropic_knows_of_a_block() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}, "caller": caller, "toolset_name": "browser"}
    told = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "ok"}]}
    said: list[tuple[Role, list[dict[str, Any]]]] = [
        ("user", [{"type": "text", "text": "hi"}]),
        ("assistant", [call]),
        ("user", [told | {"toolset_name": "b"}]),
    ]
    messages = tuple(parse_message(role, msgspec.json.encode(content)) for role, content in said)
    sent = build(Request(model="claude-sonnet-4-5", max_tokens=5, messages=messages))
    assert [message["content"] for message in msgspec.json.decode(fields(sent)["messages"])] == [
        content for _, content in said
    ]


def test_anthropic_alone_is_relayed() -> None:
    assert isinstance(adapter(PROFILE), Anthropic)
    assert [name for name, profile in PROFILES.items() if relays(profile)] == ["anthropic"]


# ---------------------------------------------------------------- byte for byte


def test_a_request_that_needs_nothing_is_the_clients_own_bytes() -> None:
    sent = build(read())
    assert sent.body is read().body or sent.body == BODY
    assert (sent.path, sent.stream, sent.notes) == ("/messages", True, ())


def test_another_model_changes_the_model_and_nothing_else() -> None:
    before, after = fields(build(read())), fields(build(read(), replace(TARGET, model="claude-opus-4-5")))
    assert after.pop("model") == b'"claude-opus-4-5"'
    assert before.pop("model") == b'"claude-sonnet-4-5"'
    assert after == before
    assert list(after) == list(before)


def test_a_thread_is_the_bridges_matter() -> None:
    body = BODY.replace(b'"max_tokens"', b'"thread":{"type":"create"},"max_tokens"')
    sent = build(read(body, ("message-threads-2026-08-12", "effort-2025-11-24")))
    assert "thread" not in fields(sent)
    assert fields(sent)["messages"] == fields(build(read()))["messages"]
    assert sent.headers == (("anthropic-version", "2023-06-01"), ("anthropic-beta", "effort-2025-11-24"))


def test_headers_go_through_and_an_empty_beta_does_not() -> None:
    assert build(read(betas=("message-threads-2026-08-12",))).headers == (("anthropic-version", "2023-06-01"),)


def test_stored_history_comes_before_the_raw_new_messages() -> None:
    new = b'{"role":"user", "content":"and?"}'
    request = parse(b'{"model":"m","max_tokens":1,"messages":[%b]}' % new, "", ())
    stored = (Message("user", (Text("hi"),)), Message("assistant", (Thinking("t", "Eq=="), Text("yes"))))
    sent = build(replace(request, messages=stored + request.messages, system=(Text("s"),), raw_system=b'"s"'))
    assert fields(sent)["messages"] == (
        b'[{"role":"user","content":[{"type":"text","text":"hi"}]},'
        b'{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"Eq=="},'
        b'{"type":"text","text":"yes"}]},' + new + b"]"
    )
    assert fields(sent)["system"] == b'"s"'


def test_only_the_message_that_had_to_be_repaired_is_written_anew() -> None:
    broken = BODY.replace(
        b'"content":[{"type":"tool_result"', b'"content":[{"type":"text","text":"x"},{"type":"tool_result"'
    )
    request, notes = repair(parse(broken, "", ()), PROFILE)
    assert [note.rule for note in notes] == ["results-first"]
    old, new = (
        msgspec.json.decode(fields(build(each))["messages"], type=list[msgspec.Raw]) for each in (read(), request)
    )
    assert [bytes(raw) for raw in new[:2]] == [bytes(raw) for raw in old[:2]]
    assert [block["type"] for block in msgspec.json.decode(new[2])["content"]] == ["tool_result", "text"]


MARKED: Any = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
CALLS: list[Any] = [{"type": "tool_use", "id": f"toolu_{name}", "name": "t", "input": {}} for name in "ab"]


def result(name: str, **more: Any) -> Any:
    return {"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": name, **more}


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([{"type": "text", "text": "hi"}, result("b"), result("a", **MARKED)], ["toolu_a"]),
        ([{"type": "text", "text": "hi", **MARKED}, result("b", **MARKED), result("a")], ["toolu_b", "hi"]),
        ([result("b", **MARKED)], ["toolu_b"]),
        ([result("b", cache_control=None)], []),
        ([{"type": "text", "text": " ", **MARKED}, result("a"), result("b")], []),
    ],
)
def test_a_repaired_message_keeps_its_cache_breakpoints(blocks: list[Any], expected: list[str]) -> None:
    first = {"role": "user", "content": [{"type": "text", "text": "go", **MARKED}]}
    turns = [first, {"role": "assistant", "content": CALLS}, {"role": "user", "content": blocks}]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": turns}
    request, notes = repair(parse(msgspec.json.encode(body), "2023-06-01", ()), PROFILE)
    sent = msgspec.json.decode(build(request).body)["messages"]
    assert notes
    assert sent[:2] == turns[:2]
    found = [block for block in sent[2]["content"] if block.get("cache_control") == MARKED["cache_control"]]
    assert [block.get("tool_use_id") or block["text"] for block in found] == expected


def test_a_call_that_the_store_knows_keeps_its_cache_breakpoint() -> None:
    calls = [CALLS[0] | MARKED, {"type": "text", "text": " "}]
    turns = ["go", calls, [result("a")], 'a "cache_control" of words']
    roles = ("user", "assistant", "user", "user")
    messages = [{"role": role, "content": content} for role, content in zip(roles, turns, strict=True)]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}
    request, _ = repair(parse(msgspec.json.encode(body), "2023-06-01", ()), PROFILE)
    sent = msgspec.json.decode(build(request).body)["messages"]
    assert sent[1]["content"] == [CALLS[0] | MARKED]


def test_a_route_that_does_not_stream_asks_for_the_whole() -> None:
    sent = build(replace(read(), stream=False))
    assert fields(sent)["stream"] == b"false"
    assert not sent.stream
    assert fields(build(replace(read(BODY.replace(b'"stream": true,', b"")), stream=True)))["stream"] == b"true"


def test_what_the_bridge_added_to_system_and_tools_is_written() -> None:
    tools = (
        Tool("a", raw=b'{"name": "a"}'),
        Tool("b", "B", b'{"type":"object"}'),
        Tool("c"),
        Tool("bash", type="bash_20250124"),
    )
    sent = fields(build(replace(read(), system=(Text("guidance"),), raw_system=b"", tools=tools, raw_tools=b"")))
    assert sent["system"] == b'[{"type":"text","text":"guidance"}]'
    assert sent["tools"] == (
        b'[{"name": "a"},{"name":"b","description":"B","input_schema":{"type":"object"}},'
        b'{"name":"c","description":"","input_schema":{"type":"object"}},{"type":"bash_20250124","name":"bash"}]'
    )


def test_a_tool_that_is_to_be_searched_for_says_so() -> None:
    request = Request(model="m", messages=(), max_tokens=1, tools=(Tool("late", defer_loading=True), Tool("now")))
    late, now = msgspec.json.decode(Anthropic().build(request, TARGET).body)["tools"]
    assert (late["defer_loading"], "defer_loading" in now) == (True, False)


def test_a_longer_history_only_appends() -> None:
    more = BODY[: -len(b" ]}")] + b',{"role":"assistant","content":"x"},{"role":"user","content":"y"} ]}'
    assert build(read(more)).body.startswith(BODY[: -len(b" ]}")])


def test_a_request_of_another_dialect_is_spelled_out() -> None:
    request = Request(
        model="m",
        messages=(Message("user", (Text("hi"),)),),
        max_tokens=5,
        temperature=0.5,
        stop_sequences=("x",),
        thinking=ThinkingConfig("enabled", 2048),
        effort="high",
        output_schema=b'{"type":"string"}',
        user_id="u",
        mcp_servers=b"[1]",
        tools=(Tool("f", raw=b'{"name":"f"}'),),
        tool_choice=ToolChoice("tool", "f", parallel=False),
        stream=True,
    )
    assert msgspec.json.decode(build(request, replace(TARGET, model="claude-opus-4-6")).body) == {
        "model": "claude-opus-4-6",
        "max_tokens": 5,
        "temperature": 0.5,
        "stop_sequences": ["x"],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "string"}}},
        "metadata": {"user_id": "u"},
        "mcp_servers": [1],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "tools": [{"name": "f"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": True,
    }


def test_a_short_request_of_another_dialect_stays_short() -> None:
    tools = (Tool("f", raw=b'{"name":"f"}'),)
    request = Request(model="m", messages=(), max_tokens=5, tools=tools, tool_choice=ToolChoice("none", parallel=False))
    assert msgspec.json.decode(build(request).body) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 5,
        "tool_choice": {"type": "none"},
        "tools": [{"name": "f"}],
        "messages": [],
    }


# ---------------------------------------------------------------- provenance of thinking


def made_by(upstream: str | None, *, link: str | None = None, request: Request | None = None) -> Request:
    """The request as hydration leaves it when the answer in it was made by `upstream`."""
    request = request or read()
    origin = Origin(upstream, "m") if upstream else None
    known = Link("toolu_1", "Bash", "Bash", "x", b"{}", Origin(link, "m")) if link else None
    answer = request.messages[1]
    blocks = tuple(replace(block, link=known) if isinstance(block, ToolUse) else block for block in answer.blocks)
    answer = replace(answer, blocks=blocks, origin=origin)
    return replace(request, messages=(request.messages[0], answer, *request.messages[2:]))


@pytest.mark.parametrize("upstream", ["anthropic", None])
def test_thinking_that_claude_made_or_nobody_knows_passes_as_it_is(upstream: str | None) -> None:
    sent = build(made_by(upstream, link=upstream))
    assert sent.body == BODY
    assert sent.notes == ()


@pytest.mark.parametrize(("upstream", "link"), [("gemini", None), (None, "gemini"), ("anthropic", "gemini")])
def test_thinking_of_another_provider_is_left_out_and_a_tool_turn_goes_on_without(
    upstream: str | None, link: str | None
) -> None:
    sent = build(made_by(upstream, link=link))
    changed = fields(sent)
    assert b'"thinking":"hm"' not in changed["messages"]
    assert changed["thinking"] == b'{"type":"disabled"}'
    assert changed["context_management"] == b'{"edits":[{"type":"clear_tool_uses_20250919"}]}'
    assert changed["future"] == fields(build(read()))["future"]
    assert rules(sent) == ["thinking-dropped", "thinking-disabled"]
    assert "gemini made it" in sent.notes[0].what
    assert sent.notes[0].message == 1


def test_adaptive_thinking_stays_on() -> None:
    body = BODY.replace(b'{"type":"enabled","budget_tokens":31999}', b'{"type":"adaptive"}')
    sent = build(made_by("gemini", request=read(body)))
    assert rules(sent) == ["thinking-dropped"]
    assert fields(sent)["thinking"] == b'{"type":"adaptive"}'


def test_thinking_stays_on_when_the_turn_is_new_or_begins_with_claudes_own() -> None:
    asked = read()
    new = replace(asked, messages=(*asked.messages[:2], Message("user", (Text("go on"),))))
    assert rules(build(made_by("gemini", request=new))) == ["thinking-dropped"]
    assert rules(build(replace(asked, messages=asked.messages[2:]))) == []


def test_a_tool_turn_whose_thinking_the_client_lost_goes_on_without() -> None:
    request = read()
    bare = replace(request.messages[1], blocks=request.messages[1].blocks[1:], raw=b"")
    system = Message("system", (Text("note"),), b'{"role":"system","content":"note"}')
    sent = build(replace(request, messages=(request.messages[0], bare, request.messages[2], system)))
    assert rules(sent) == ["thinking-disabled"]


@pytest.mark.parametrize("odd", [b"null", b'"x"', b"[]", b"{}", b'{"edits":null}'])
def test_thinking_is_off_beside_edits_of_the_context_that_are_none(odd: bytes) -> None:
    """They pass, and the API says what is wrong with them."""
    start, end = BODY.index(b'{"edits"'), BODY.index(b',\n "system"')
    request = read(BODY[:start] + odd + BODY[end:])
    bare = replace(request.messages[1], blocks=request.messages[1].blocks[1:], raw=b"")
    sent = build(replace(request, messages=(request.messages[0], bare, request.messages[2])))
    assert rules(sent) == ["thinking-disabled"]
    assert b'"context_management":' + odd + b"," in sent.body


def test_unsigned_thinking_is_never_sent() -> None:
    sent = build(read(BODY.replace(b'"signature":"Eq=="', b'"signature":""')))
    assert rules(sent) == ["thinking-dropped", "thinking-disabled"]


def test_thinking_that_the_bridge_signed_for_another_is_never_sent() -> None:
    """Also when the store knows the answer no more, or not in this place: in a history that was cut or edited."""
    signed = read(BODY.replace(b'"signature":"Eq=="', b'"signature":"toolbridge_msg_1"'))
    assert rules(build(signed)) == ["thinking-dropped", "thinking-disabled"]
    assert rules(build(made_by("anthropic", request=signed))) == [], "from a bridge behind this one"


def test_an_answer_that_was_all_thinking_keeps_a_place() -> None:
    answer = Message("assistant", (Thinking("t", "s"), RedactedThinking("d")), origin=Origin("minimax", "m"))
    request = Request(model="m", messages=(Message("user", (Text("a"),)), answer), max_tokens=1)
    assert b'{"role":"assistant","content":[{"type":"text","text":"(no content)"}]}' in build(request).body


def test_an_answer_in_two_messages_is_one_where_the_first_would_end_in_thinking() -> None:
    asked, thought, said = Message("user", (Text("a"),)), Thinking("t", "s"), Text("b")
    split = (asked, Message("assistant", (thought,)), Message("assistant", (said,)), asked)
    sent = build(Request(model="m", messages=split, max_tokens=1))
    assert [len(message["content"]) for message in msgspec.json.decode(sent.body)["messages"]] == [1, 2, 1]
    assert rules(sent) == ["merged"]


def test_an_answer_that_ends_in_thinking_gets_an_end() -> None:
    asked, answer = Message("user", (Text("a"),)), Message("assistant", (Text("b"), Thinking("t", "s")))
    sent = build(Request(model="m", messages=(asked, answer, asked, answer), max_tokens=1))
    assert [len(message["content"]) for message in msgspec.json.decode(sent.body)["messages"]] == [1, 3, 1, 3]
    assert rules(sent) == ["placeholder", "placeholder"]


OFFERED = Tool("f", raw=b'{"name":"f"}')


def test_an_id_with_refused_characters_has_one_alias() -> None:
    messages = (
        Message("assistant", (ToolUse("functions.f:0", "f", b"{}"), ToolUse("toolu_2", "f", b"{}"))),
        Message("user", (ToolResult("functions.f:0"), ToolResult("toolu_2"))),
    )
    sent = build(Request(model="m", messages=messages, max_tokens=1, tools=(OFFERED,)))
    call, answer = msgspec.json.decode(sent.body)["messages"]
    assert call["content"][0]["id"] == answer["content"][0]["tool_use_id"]
    assert call["content"][0]["id"].startswith("toolu_")
    assert call["content"][1]["id"] == "toolu_2"
    assert rules(sent) == ["id-aliased", "id-aliased"]


@pytest.mark.parametrize("name", ["get_weather{", "{}", "x" * 300, "Wetter✓", "a b"])
def test_a_call_whose_name_is_refused_has_one_alias_and_the_rest_stays(name: str) -> None:
    messages = (
        Message("assistant", (ToolUse("toolu_1", name, b"{}"), ToolUse("toolu_2", "f", b"{}"))),
        Message("user", (ToolResult("toolu_1"), ToolResult("toolu_2")), raw=b'{"role":"user","content":"as it was"}'),
    )
    sent = build(Request(model="m", messages=messages, max_tokens=1, tools=(OFFERED,)))
    first, second = msgspec.json.decode(sent.body)["messages"][0]["content"]
    assert re.fullmatch("[a-zA-Z0-9_-]{1,128}", first["name"])
    assert (first["id"], second["id"], second["name"]) == ("toolu_1", "toolu_2", "f")
    assert b'{"role":"user","content":"as it was"}],' in sent.body
    assert sent.body == build(Request(model="m", messages=messages, max_tokens=1, tools=(OFFERED,))).body
    assert rules(sent) == ["name-aliased"]


def test_an_id_and_a_name_may_both_be_refused() -> None:
    messages = (Message("assistant", (ToolUse("a:0", "{", b"{}"), Text("so"))), Message("user", (ToolResult("a:0"),)))
    sent = build(Request(model="m", messages=messages, max_tokens=1, tools=(OFFERED,)))
    assert rules(sent) == ["name-aliased", "id-aliased", "id-aliased"]


# ---------------------------------------------------------------- the retry


def test_the_retry_leaves_all_thinking_out_and_everything_else_as_it_was() -> None:
    claude = Anthropic()
    sent = build(read())
    again = claude.without_state(sent)
    before, after = fields(sent), fields(again)
    assert b'"thinking"' not in after["messages"]
    assert after["thinking"] == b'{"type":"disabled"}'
    assert {name: after[name] for name in ("system", "tools", "future")} == {
        name: before[name] for name in ("system", "tools", "future")
    }
    assert rules(again) == ["opaque-state-dropped"]
    assert claude.without_state(again) is again
    assert isinstance(claude, Forgetful)


def test_the_retry_keeps_adaptive_thinking_and_fills_what_would_be_empty() -> None:
    body = (
        b'{"model":"m","max_tokens":1,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"a"},'
        b'{"role":"assistant","content":"b"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"x"}]}]}'
    )
    again = fields(Anthropic().without_state(UpstreamRequest("/messages", body, stream=False)))
    assert again["thinking"] == b'{"type":"adaptive"}'
    assert b'"text":"(no content)"' in again["messages"]


def test_thinking_without_context_management_can_be_switched_off() -> None:
    request = made_by("gemini", request=read(BODY.replace(b'"context_management"', b'"elsewhere"')))
    assert "context_management" not in fields(build(request))
    kept = made_by("gemini", request=read(BODY.replace(b'"edits"', b'"changes"')))
    assert fields(build(kept))["context_management"].startswith(b'{"changes":[{"type":"clear_thinking_')


# ---------------------------------------------------------------- errors


def failure(status: int, kind: str, message: str, **headers: str) -> BridgeError:
    body: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return Anthropic().failure(TARGET, status, headers, msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("status", "kind", "error", "type_"),
    [
        (400, "invalid_request_error", UpstreamRefused, "invalid_request_error"),
        (401, "authentication_error", UpstreamKeyRefused, "api_error"),
        (402, "billing_error", UpstreamKeyRefused, "api_error"),
        (403, "permission_error", UpstreamKeyRefused, "api_error"),
        (404, "not_found_error", UpstreamModelMissing, "not_found_error"),
        (408, "timeout_error", UpstreamTimeout, "timeout_error"),
        (413, "request_too_large", TooLarge, "request_too_large"),
        (422, "invalid_request_error", UpstreamRefused, "invalid_request_error"),
        (429, "rate_limit_error", UpstreamRateLimited, "rate_limit_error"),
        (499, "api_error", UpstreamFailed, "api_error"),
        (500, "api_error", UpstreamFailed, "api_error"),
        (503, "api_error", UpstreamOverloaded, "overloaded_error"),
        (504, "timeout_error", UpstreamTimeout, "timeout_error"),
        (529, "overloaded_error", UpstreamOverloaded, "overloaded_error"),
    ],
)
def test_an_error_keeps_its_type_and_message(status: int, kind: str, error: type[BridgeError], type_: str) -> None:
    found = failure(status, kind, "what was found")
    assert type(found) is error
    assert found.type == type_
    assert ("upstream key" if error is UpstreamKeyRefused else "what was found") in found.message


@pytest.mark.parametrize(
    ("details", "code"),
    [
        ({"error_code": "tool_reference_unresolved"}, "tool_reference_unresolved"),
        ({"error_code": "odd\0"}, None),
        ({}, None),
        (None, None),
        ("what", None),
    ],
)
def test_an_error_keeps_the_code_by_which_the_sdk_chooses_its_class(details: object, code: str | None) -> None:
    error = {"type": "invalid_request_error", "message": "tools: no", "details": details}
    body = msgspec.json.encode({"type": "error", "error": error})
    assert Anthropic().failure(TARGET, 400, {}, body).code == code
    assert in_band(body).code == code


def test_retry_after_is_kept() -> None:
    assert failure(529, "overloaded_error", "Overloaded", **{"retry-after": "7"}).retry_after == 7


def test_a_page_is_not_shown() -> None:
    found = Anthropic().failure(TARGET, 502, {}, b"<html>secret</html>")
    assert type(found) is UpstreamFailed
    assert "secret" not in found.message


def test_an_empty_account_is_the_bridges_and_not_the_clients() -> None:
    message = "Your credit balance is too low to access the Anthropic API."
    assert type(failure(400, "invalid_request_error", message)) is UpstreamKeyRefused


def test_overflow_keeps_the_sentence_that_clients_know() -> None:
    found = failure(400, "invalid_request_error", "prompt is too long: 215692 tokens > 200000 maximum")
    assert type(found) is PromptTooLong
    assert found.message == "prompt is too long: 215692 tokens > 200000 maximum"


def test_an_answer_that_does_not_fit_is_told_in_the_words_at_which_clients_ask_for_less() -> None:
    message = "input length and `max_tokens` exceed context limit: 186433 + 20000 > 200000, decrease input length or "
    message += "`max_tokens` and try again"
    found = failure(400, "invalid_request_error", message)
    assert (type(found), found.message) == (UpstreamRefused, message)


@pytest.mark.parametrize(
    "message",
    [
        "messages.3.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.0.thinking.signature: Field required",
        "messages.1.content.0.thinking: each thinking block must contain thinking",
        (
            "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
            "modified. These blocks must remain as they were in the original response."
        ),
        (
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block."
        ),
    ],
)
def test_a_signature_that_is_not_taken_is_told_apart(message: str) -> None:
    assert failure(400, "invalid_request_error", message).code == "opaque_state_rejected"
