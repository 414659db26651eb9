"""Requests to the Responses API: items, parameters, state at its place, errors, the retry without the blob."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.translation.captures import CAPTURES, load
from translation.adapter import Forgetful, Target, UpstreamRequest
from translation.errors import (
    BridgeError,
    InvalidRequest,
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
from translation.events import Event, Finished, TextDelta, ToolEnded, ToolStarted
from translation.providers.openai_responses import OpenAIResponses
from translation.providers.profiles import PROFILES
from translation.values import (
    Document,
    Image,
    Link,
    Message,
    Origin,
    Other,
    RedactedThinking,
    Request,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolChoice,
    ToolReference,
    ToolResult,
    ToolUse,
)

OPENAI = Target("openai-responses", "gpt-5.5", PROFILES["openai-responses"])
PLAIN = replace(OPENAI, model="gpt-4.1")
XAI = Target("xai-responses", "grok-4.3", PROFILES["xai-responses"])
HELLO = Message("user", (Text("hi"),))
WEATHER = Tool("get_weather", "Weather", b'{"type":"object","properties":{"city":{"type":"string"}}}')


def request(*messages: Message, **fields: Any) -> Request:
    return Request(model="m", messages=messages or (HELLO,), max_tokens=fields.pop("max_tokens", 1000), **fields)


def build(given: Request, target: Target = OPENAI) -> UpstreamRequest:
    return OpenAIResponses().build(given, target)


def body(given: Request, target: Target = OPENAI) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(build(given, target).body)
    return decoded


def rules(given: Request, target: Target = OPENAI) -> list[str]:
    return [note.rule for note in build(given, target).notes]


# ---------------------------------------------------------------- parameters


def test_the_smallest_request_keeps_nothing_upstream_and_asks_for_the_reasoning() -> None:
    sent = build(request(max_tokens=1, stream=True))
    assert sent.path == "/responses"
    assert sent.stream
    assert msgspec.json.decode(sent.body) == {
        "model": "gpt-5.5",
        "stream": True,
        "store": False,
        "max_output_tokens": 16,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": msgspec.json.decode(sent.body)["prompt_cache_key"],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    }


def test_a_model_that_does_not_reason_keeps_its_sampling_and_is_not_asked_for_reasoning() -> None:
    given = request(temperature=0.5, top_p=0.9, thinking=ThinkingConfig("adaptive"))
    sent = body(given, PLAIN)
    assert (sent["temperature"], sent["top_p"]) == (0.5, 0.9)
    assert "include" not in sent
    assert "reasoning" not in sent
    assert rules(given, PLAIN) == ["effort-limited"]
    assert "temperature" not in body(request(), PLAIN)


def test_what_a_reasoning_model_does_not_take_is_dropped_and_noted() -> None:
    given = request(temperature=0.5, top_k=3, stop_sequences=("X",), mcp_servers=b"[]")
    assert not {"temperature", "top_k", "stop", "stop_sequences", "mcp_servers"} & body(given).keys()
    notes = build(given).notes
    assert [note.what.split(":")[0] for note in notes] == ["stop_sequences", "top_k", "temperature", "mcp_servers"]


def test_a_learned_parameter_is_left_out_or_renamed() -> None:
    profile = replace(PLAIN.profile, drop_params=("temperature",), rename_params=(("top_p", "nucleus"),))
    target = replace(PLAIN, profile=profile)
    given = request(temperature=1.0, top_p=0.5)
    assert "temperature" not in body(given, target)
    assert body(given, target)["nucleus"] == 0.5
    assert rules(given, target) == ["parameter-dropped"]


def test_the_cache_key_is_the_conversations_own() -> None:
    longer = request(HELLO, Message("assistant", (Text("a"),)), HELLO)
    assert body(longer)["prompt_cache_key"] == body(request())["prompt_cache_key"]
    other = request(Message("user", (Text("something else"),)))
    assert body(other)["prompt_cache_key"] != body(request())["prompt_cache_key"]
    assert "prompt_cache_key" not in body(request(), XAI)


@pytest.mark.parametrize(
    ("thinking", "reasoning"),
    [
        (ThinkingConfig("adaptive"), {"effort": "medium", "summary": "auto"}),
        (ThinkingConfig("adaptive", display="omitted"), {"effort": "medium"}),
        (ThinkingConfig("enabled", 31999), {"effort": "high", "summary": "auto"}),
        (ThinkingConfig("disabled"), {"effort": "none"}),
    ],
)
def test_thinking_becomes_effort_and_a_summary_for_those_who_show_it(
    thinking: ThinkingConfig, reasoning: dict[str, str]
) -> None:
    assert body(request(thinking=thinking))["reasoning"] == reasoning


def test_system_texts_are_the_instructions_and_later_ones_stay_in_place() -> None:
    given = request(HELLO, Message("system", (Text("be brief"),)), system=(Text("a"), Text("b")))
    assert body(given)["instructions"] == "a\n\nb"
    assert [item["role"] for item in body(given)["input"]] == ["user", "developer"]
    assert [item["role"] for item in body(given, XAI)["input"]] == ["user", "system"]


@pytest.mark.parametrize(("user_id", "length"), [("me", 2), ("x" * 64, 64), ("x" * 65, 64)])
def test_the_user_is_at_most_64_characters_in_the_field_of_the_provider(user_id: str, length: int) -> None:
    given = request(user_id=user_id)
    assert len(body(given)["safety_identifier"]) == length
    assert len(body(given, XAI)["user"]) == length


# ---------------------------------------------------------------- tools


def test_tools_are_functions_with_strict_told_and_schemas_as_the_client_wrote_them() -> None:
    odd = Tool("mcp.odd", schema=b'{"type": "object","properties":{ "title":{}}}')
    sent = build(request(tools=(WEATHER, odd)))
    assert b'"parameters":{"type": "object","properties":{ "title":{}}},"strict":false' in sent.body
    (alias, name), *_ = sent.names
    assert name == "mcp.odd"
    assert [tool["name"] for tool in msgspec.json.decode(sent.body)["tools"]] == ["get_weather", alias]


@pytest.mark.parametrize("schema", [b"", b"{}", b'{"type":"object"}'])
def test_a_schema_without_properties_gets_them(schema: bytes) -> None:
    (tool,) = body(request(tools=(Tool("f", schema=schema),)))["tools"]
    assert tool["parameters"] == {"type": "object", "properties": {}}


def test_an_array_says_what_it_holds() -> None:
    schema = b'{"type":"object","properties":{"a":{"type":"array"}}}'
    (tool,) = body(request(tools=(Tool("f", schema=schema),)))["tools"]
    assert tool["parameters"]["properties"]["a"] == {"type": "array", "items": {}}


def test_typed_client_tools_get_a_schema_and_server_tools_without_a_counterpart_a_note() -> None:
    given = request(tools=(Tool("bash", type="bash_20250124"), Tool("web_fetch", type="web_fetch_20250910")))
    (tool,) = body(given)["tools"]
    assert "command" in tool["parameters"]["properties"]
    assert rules(given) == ["server-tool-dropped"]


STRICT = b"""{"type":"object","additionalProperties":false,"required":["a","b"],"properties":{
    "a":{"type":"array","items":{"type":"string"}},"b":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/c"}]}},
    "$defs":{"c":{"type":"string"}}}"""


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (STRICT, True),
        (STRICT.replace(b'"required":["a","b"]', b'"required":["a"]'), False),
        (STRICT.replace(b'"required":["a","b"],', b""), False),
        (STRICT.replace(b"false", b"true"), False),
        (STRICT.replace(b"anyOf", b"oneOf"), False),
        (STRICT.replace(b'{"type":"string"}}}', b'{"type":"object"}}}'), False),
        (STRICT.replace(b'{"type":"string"}}}', b'{"type":["object","null"]}}}'), False),
        (STRICT.replace(b'{"type":"string"}}}', b'{"type":"string","default":"x"}}}'), False),
        (STRICT.replace(b'{"type":"string"}}}', b'{"type":"string","minLength":1}}}'), False),
        (STRICT.replace(b'{"type":"string"}}}', b'{"description":"anything"}}}'), False),
        (STRICT.replace(b'"items":{"type":"string"}', b'"maxItems":3'), False),
        (STRICT.replace(b'"required":["a","b"]', b'"required":["a",{}]'), False),
        (STRICT.replace(b"$defs", b"definitions"), True),
        (STRICT.replace(b"$defs", b"definitions").replace(b'{"type":"string"}}}', b'{"type":"object"}}}'), False),
    ],
)
def test_strict_is_asked_for_only_in_the_form_that_openai_takes(schema: bytes, strict: bool) -> None:
    given = request(tools=(Tool("f", schema=schema, strict=True),), output_schema=schema)
    assert body(given)["tools"][0]["strict"] is strict
    assert body(given)["text"]["format"]["strict"] is strict
    assert rules(given) == ([] if strict else ["strict-dropped", "structured-loose"])


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        (ToolChoice(), None),
        (ToolChoice("any"), "required"),
        (ToolChoice("none"), "none"),
        (ToolChoice("tool", "get_weather"), {"type": "function", "name": "get_weather"}),
        (ToolChoice("tool", "web_search"), {"type": "web_search"}),
    ],
)
def test_tool_choice(choice: ToolChoice | None, sent: object) -> None:
    search = Tool("web_search", type="web_search_20250305")
    assert body(request(tools=(WEATHER, search), tool_choice=choice)).get("tool_choice") == sent


def test_grok_cannot_be_made_to_search_but_may() -> None:
    """Claude Code's WebSearch is a request with nothing but a search, which it chooses; xAI answered 422."""
    given = request(
        tools=(Tool("web_search", type="web_search_20250305"),), tool_choice=ToolChoice("tool", "web_search")
    )
    sent = build(given, XAI)
    value = msgspec.json.decode(sent.body)
    assert value["tools"] == [{"type": "web_search"}]
    assert "tool_choice" not in value
    assert [note.rule for note in sent.notes] == ["tool-choice"]


def test_a_tool_that_nobody_can_run_cannot_be_chosen() -> None:
    code = Tool("code_execution", type="code_execution_20250825")
    with pytest.raises(InvalidRequest, match="cannot run the tool"):
        build(request(tools=(WEATHER, code), tool_choice=ToolChoice("tool", "code_execution")))


def test_parallel_calls_can_be_forbidden() -> None:
    given = request(tools=(WEATHER,), tool_choice=ToolChoice("auto", parallel=False))
    assert body(given)["parallel_tool_calls"] is False


def test_a_choice_without_tools_is_left_out_and_one_that_cannot_be_met_is_refused() -> None:
    assert "tool_choice" not in body(request(tool_choice=ToolChoice("any")))
    fetch = Tool("web_fetch", type="web_fetch_20250910")
    assert "tools" not in body(request(tools=(fetch,)))
    with pytest.raises(InvalidRequest, match="tool_choice"):
        build(request(tools=(fetch,), tool_choice=ToolChoice("any")))


@pytest.mark.parametrize(
    ("target", "tool", "effort"),
    [
        (replace(OPENAI, model="gpt-5"), Tool("web_search", type="web_search_20250305"), "low"),
        (replace(OPENAI, model="gpt-5"), WEATHER, "minimal"),
        (OPENAI, Tool("web_search", type="web_search_20250305"), "none"),
    ],
)
def test_who_searches_thinks_at_least_a_little(target: Target, tool: Tool, effort: str) -> None:
    """`The following tools cannot be used with reasoning.effort 'minimal': web_search.`"""
    given = request(tools=(tool,), thinking=ThinkingConfig("disabled"))
    assert body(given, target)["reasoning"] == {"effort": effort}
    assert rules(given, target) == ["effort-limited"] * (effort != "none")


def test_web_search_is_the_providers_own() -> None:
    raw = b'{"allowed_domains":["a.example"],"user_location":{"type":"approximate","city":"Bonn"}}'
    search = Tool("web_search", type="web_search_20250305", raw=raw)
    sent = body(request(tools=(search,)))
    assert sent["include"] == ["reasoning.encrypted_content", "web_search_call.action.sources"]
    assert sent["tools"] == [
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["a.example"]},
            "user_location": {"type": "approximate", "city": "Bonn"},
        }
    ]
    assert body(request(tools=(replace(search, raw=b""),)))["tools"] == [{"type": "web_search"}]


# ---------------------------------------------------------------- history


def items(*messages: Message, target: Target = OPENAI) -> list[Any]:
    found: list[Any] = body(request(*messages), target)["input"]
    return found


def test_a_tool_round_is_call_output_and_text() -> None:
    call = Message("assistant", (Thinking("hm", "sig"), Text("ok"), ToolUse("toolu_1", "get_weather", b'{"a": 1}')))
    answer = Message("user", (ToolResult("toolu_1", (Text("a"), Text("b"))), Text("and?")))
    assert items(HELLO, call, answer)[1:] == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
        {"type": "function_call", "call_id": "toolu_1", "name": "get_weather", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "toolu_1", "output": "a\nb"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and?"}]},
    ]


def test_the_upstream_gets_its_own_call_id_back_and_another_one_gets_ours() -> None:
    link = Link("toolu_1", "f", "f", "call_X", b"{}", Origin("openai-responses", "gpt-5.5"))
    messages = Message("assistant", (ToolUse("toolu_1", "f", b"{}", link),)), Message("user", (ToolResult("toolu_1"),))
    assert [item["call_id"] for item in items(*messages)] == ["call_X", "call_X"]
    assert [item["call_id"] for item in items(*messages, target=XAI)] == ["toolu_1", "toolu_1"]


def test_errors_are_visible_to_the_model() -> None:
    (_, output) = items(
        Message("assistant", (ToolUse("t", "f", b"{}"),)),
        Message("user", (ToolResult("t", (Text("no"),), is_error=True),)),
    )
    assert output["output"] == "Error: no"


IMAGE = Image("base64", "AAAA", "image/png")


def test_images_in_results_stay_there_or_follow_all_results_under_a_label() -> None:
    messages = (
        Message("assistant", (ToolUse("t", "f", b"{}"), ToolUse("u", "f", b"{}"))),
        Message("user", (ToolResult("t", (Text("see"), IMAGE), is_error=True), ToolResult("u", (Text("b"),)))),
    )
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    told = [{"type": "input_text", "text": "Error:"}, {"type": "input_text", "text": "see"}, image]
    assert [item["output"] for item in items(*messages)[2:]] == [told, "b"]
    plain = replace(messages[1], blocks=(replace(messages[1].blocks[0], is_error=False),))
    assert items(messages[0], plain)[2]["output"] == told[1:]
    *results, lifted = items(*messages, target=XAI)[2:]
    assert [item["output"] for item in results] == ["Error: see", "b"]
    assert lifted["content"] == [{"type": "input_text", "text": "[attached to the result of t]"}, image]
    assert rules(request(*messages), XAI) == ["result-media-lifted"]
    beside = replace(messages[1], blocks=(*messages[1].blocks, Text("look")))
    assert items(messages[0], beside, target=XAI)[-1]["content"] == [
        {"type": "input_text", "text": "look"},
        *lifted["content"],
    ]


def test_each_kind_of_user_content_has_its_form() -> None:
    blocks = (
        Text(""),
        Image("url", "https://x.example/i.png"),
        Document("base64", "JVBE", "application/pdf", title="a.pdf", context="of last year"),
        Document("base64", "JVBE"),
        Document("url", "https://x.example/a.pdf"),
        Document("text", "plain words", title="T"),
        SearchResult("S", "https://s.example", (Text("found"),)),
        ToolReference("WebFetch"),
        Other("mystery", b'{"type":"mystery","x":1}'),
        Thinking("not the user's"),
    )
    (message,) = items(Message("user", blocks))
    image, context, named, unnamed, linked, *texts = message["content"]
    assert context == {"type": "input_text", "text": "[document: a.pdf]\nof last year"}
    assert image == {"type": "input_image", "image_url": "https://x.example/i.png"}
    assert named == {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}
    assert unnamed["filename"] == "document.pdf"
    assert linked == {"type": "input_file", "file_url": "https://x.example/a.pdf"}
    assert all(part["type"] == "input_text" for part in texts)
    assert len(texts) == 4


def test_what_a_server_ran_is_told_in_words() -> None:
    blocks = (
        ServerToolUse("s", "web_search", b'{"query":"x"}'),
        ServerToolResult("web_search_tool_result", "s", b'{"type":"web_search_tool_result","content":[]}'),
        RedactedThinking("zzz"),
        SearchResult("S", "src", (Text("found"),)),
    )
    assert len(items(HELLO, Message("assistant", blocks), HELLO)) == 5


@pytest.mark.parametrize(
    ("block", "target", "path"),
    [
        (Image("file", "file_1"), OPENAI, r"messages\.0\.content\.0\.source"),
        (Document("file", "file_1"), OPENAI, r"messages\.0\.content\.0\.source"),
        (Document("base64", "JVBE", "application/pdf"), XAI, r"messages\.0\.content\.0: "),
        (IMAGE, replace(OPENAI, profile=replace(OPENAI.profile, images=False)), r"messages\.0\.content\.0: "),
    ],
)
def test_what_cannot_be_sent_is_refused_by_its_path(block: Image | Document, target: Target, path: str) -> None:
    with pytest.raises(InvalidRequest, match=path):
        build(request(Message("user", (block,))), target)


def test_a_trailing_answer_is_sent_and_noted() -> None:
    assert rules(request(HELLO, Message("assistant", (Text("I th"),)))) == ["prefill-unsupported"]


def test_a_longer_history_only_appends_to_the_body() -> None:
    grown = [HELLO, Message("assistant", (ToolUse("t", "f", b"{}"),)), Message("user", (ToolResult("t"),)), HELLO]
    sent = [build(request(*grown[:count], tools=(WEATHER,))).body for count in (1, 3, 4)]
    for shorter, longer in pairwise(sent):
        assert longer.startswith(shorter[: -len(b"]}")])


# ---------------------------------------------------------------- opaque state


def answered(case: str, upstream: str = "openai-responses") -> tuple[Message, bytes]:
    """The message that a captured answer became, hydrated as the store would, and the captured bytes."""
    capture = load(CAPTURES / upstream / case)
    decoder = OpenAIResponses().decoder(capture.request, OPENAI, build(capture.request), capture.content_type)
    events: list[Event] = decoder.feed(capture.upstream) + decoder.close()
    blocks: list[Text | ToolUse] = []
    started: dict[int, ToolStarted] = {}
    origin = Origin(upstream, "model")
    for event in events:
        if isinstance(event, TextDelta):
            if blocks and isinstance(blocks[-1], Text):
                blocks[-1] = Text(blocks[-1].text + event.text)
            else:
                blocks.append(Text(event.text))
        elif isinstance(event, ToolStarted):
            started[event.call] = event
        elif isinstance(event, ToolEnded):
            call = started[event.call]
            arguments = event.arguments.encode()
            link = Link(
                f"toolu_{event.call}", call.name, call.upstream_name, call.upstream_id, arguments,
                replace(origin, state=event.state),
            )  # fmt: skip
            blocks.append(ToolUse(link.tool_use_id, link.name, arguments, link))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return Message("assistant", tuple(blocks), origin=replace(origin, state=finished.state)), capture.upstream


def kinds(message: Message, target: Target = OPENAI) -> list[str]:
    return [f"{item['type']} {item.get('id', '')}".strip() for item in items(HELLO, message, target=target)[1:]]


INTERLEAVED = [
    "reasoning rs_1",
    "message msg_c",
    "function_call fc_2",
    "reasoning rs_2",
    "function_call fc_3",
    "message msg_f",
]


def test_reasoning_goes_back_to_its_place_byte_for_byte() -> None:
    message, upstream = answered("interleaved_reasoning")
    assert kinds(message) == INTERLEAVED
    sent = build(request(HELLO, message)).body
    for blob in (b'{"id":"rs_1","type":"reasoning"', b'{"id":"rs_2","type":"reasoning"'):
        start = upstream.rindex(blob, 0, upstream.index(b"response.completed"))
        raw = upstream[start : upstream.index(b'"summary":[]}', start) + len(b'"summary":[]}')]
        assert raw in sent
    assert [item.get("phase") for item in items(HELLO, message) if item["type"] == "message"] == [
        None,
        "commentary",
        "final_answer",
    ]


def test_ids_of_items_that_a_server_repeats_are_sent_once() -> None:
    """OpenAI refuses a request that holds an id twice."""
    message, _ = answered("interleaved_reasoning")
    sent = items(HELLO, message, HELLO, message)
    again = [f"{item['type']} {item.get('id', '')}".strip() for item in sent[len(INTERLEAVED) + 2 :]]
    assert again == [kind.partition(" ")[0] for kind in INTERLEAVED]
    assert [item["encrypted_content"] for item in sent if item["type"] == "reasoning"][2:] == [
        item["encrypted_content"] for item in sent if item["type"] == "reasoning"
    ][:2]


def test_a_whole_answer_and_xais_own_round_trip_alike() -> None:
    assert kinds(answered("whole")[0]) == [
        "reasoning rs_1",
        "message msg_w",
        "function_call fc_2",
        "function_call fc_3",
    ]
    assert kinds(answered("reasoning_text", "xai-responses")[0], XAI) == ["reasoning rs_x", "function_call fc_call_x"]


def test_another_upstream_gets_no_state_and_the_first_one_gets_it_back_after_the_switch() -> None:
    message, _ = answered("interleaved_reasoning")
    assert kinds(message, XAI) == ["message", "function_call", "function_call", "message"]
    assert b"gAAAA" not in build(request(HELLO, message), XAI).body
    assert kinds(message) == INTERLEAVED


def test_texts_that_are_not_the_ones_answered_lose_their_state_and_calls_keep_theirs() -> None:
    message, _ = answered("interleaved_reasoning")
    changed = replace(message, blocks=(Text("other"), *message.blocks[1:]))
    assert kinds(changed) == ["message", "function_call", "reasoning rs_2", "function_call fc_3", "message msg_f"]


def test_without_the_call_that_carried_it_reasoning_stays_away_and_ids_with_it() -> None:
    message, _ = answered("whole")
    assert kinds(replace(message, blocks=message.blocks[2:])) == ["function_call"]


def test_stored_reasoning_that_would_be_refused_is_mended_or_left_out_with_a_note() -> None:
    """Stored by a version that did not look."""
    good = b'{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"blob"}'
    odd = good[:-1] + b',"rating":5}'
    for stored, expected, noted in (
        (good, ["reasoning rs_1", "function_call fc_1"], []),
        (odd, ["reasoning rs_1", "function_call fc_1"], []),
        (b'{"type":"reasoning","id":"rs_1"}', ["function_call"], ["opaque-state-dropped"]),
        (good.replace(b"blob", b""), ["function_call"], ["opaque-state-dropped"]),
    ):
        origin = Origin("openai-responses", "gpt-5.5", b'{"id":"fc_1","reasoning":[%b]}' % stored)
        use = ToolUse("toolu_1", "Read", b"{}", Link("toolu_1", "Read", "Read", "call_1", b"{}", origin))
        message = Message("assistant", (use,), origin=origin)
        assert kinds(message) == expected
        assert rules(request(HELLO, message)) == [*noted, "prefill-unsupported"]
        assert b"rating" not in build(request(HELLO, message)).body
    said = b'{"texts":[{"length":2,"id":"msg_1","reasoning":[{"type":"reasoning"}]}]}'
    message = Message("assistant", (Text("Hi"),), origin=Origin("openai-responses", "gpt-5.5", said))
    assert kinds(message) == ["message"]


SEARCHED = (
    b'{"texts":[{"length":6,"id":"msg_1","reasoning":[{"type":"reasoning","id":"rs_1","summary":[],'
    b'"encrypted_content":"blob"},{"type":"web_search_call","status":"completed",'
    b'"action":{"type":"search","query":"q"},"id":"ws_1"}]}]}'
)


def test_its_own_search_goes_back_as_one_and_is_told_to_nobody_else_as_that() -> None:
    """OpenAI refuses reasoning without what it led to."""
    use = ServerToolUse("srvtoolu_1", "web_search", b'{"query":"q"}')
    result = ServerToolResult("web_search_tool_result", "srvtoolu_1", b'{"type":"web_search_tool_result","content":[]}')
    message = Message("assistant", (use, result, Text("Sunny.")), origin=Origin("openai-responses", "m", SEARCHED))
    given = request(HELLO, message, HELLO, message)
    again = ["reasoning", "web_search_call", "message"]
    assert kinds(message) == ["reasoning rs_1", "web_search_call ws_1", "message msg_1"]
    assert [item["type"] for item in items(HELLO, message, HELLO, message)] == ["message", *again, "message", *again]
    assert build(given).body.count(b'"ws_1"') == 1
    assert rules(given) == ["prefill-unsupported"]
    assert kinds(message, XAI) == ["message"] * 3
    bare = msgspec.json.decode(OpenAIResponses().without_state(build(given)).body)["input"]
    assert {item["type"] for item in bare} == {"message"}


def test_texts_that_became_one_block_are_items_again() -> None:
    state = b'{"texts":[{"length":2,"phase":"commentary"},{"length":3,"phase":"final_answer"}]}'
    message = Message("assistant", (Text("abcde"),), origin=Origin("openai-responses", "m", state))
    assert [item["content"][0]["text"] for item in items(message)] == ["ab", "cde"]
    cut = replace(message, blocks=(Text("a"), Text("bcde")))
    assert [item["content"][0]["text"] for item in items(cut)] == ["a", "bc", "de"]


def test_the_retry_drops_reasoning_and_the_ids_that_need_it() -> None:
    message, _ = answered("interleaved_reasoning")
    sent = build(request(HELLO, message, tools=(WEATHER,)))
    again = OpenAIResponses().without_state(sent)
    plain = build(request(HELLO, replace(message, origin=None), tools=(WEATHER,)))
    decoded = msgspec.json.decode(again.body)
    assert [item["type"] for item in decoded["input"]] == [
        "message",
        "message",
        "function_call",
        "function_call",
        "message",
    ]
    assert not any("id" in item or "status" in item for item in decoded["input"])
    assert decoded["tools"] == msgspec.json.decode(plain.body)["tools"]
    assert again.notes[-1].rule == "opaque-state-dropped"
    assert OpenAIResponses().without_state(again) is again
    assert isinstance(OpenAIResponses(), Forgetful)


# ---------------------------------------------------------------- errors


def failure(status: int, body_: bytes, headers: dict[str, str] | None = None) -> BridgeError:
    return OpenAIResponses().failure(OPENAI, status, headers or {}, body_)


@pytest.mark.parametrize(
    "message",
    [
        "Could not decode the compaction blob. Ensure it is unmodified from the compact response.",
        "Could not decrypt the provided encrypted_content.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        "Duplicate item found with id rs_1. Remove duplicate items from your input and try again.",
        "Could not decode the provided encrypted_content.",
        "The encrypted content gAAA...DQ== could not be verified.",
        "The encrypted content for item rs_0 could not be verified. Reason: Encrypted content could not be decrypted.",
    ],
)
def test_a_rejected_blob_is_told_apart(message: str) -> None:
    for body_ in ({"error": {"message": message}}, {"code": "invalid-argument", "error": message}):
        error = failure(400, msgspec.json.encode(body_))
        assert isinstance(error, UpstreamRefused)
        assert error.code == "opaque_state_rejected"


def test_a_model_without_encrypted_content_is_no_rejected_blob() -> None:
    assert failure(400, b'{"error":{"message":"Encrypted content is not supported with this model."}}').code is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, UpstreamRefused),
        (401, UpstreamKeyRefused),
        (403, UpstreamKeyRefused),
        (404, UpstreamModelMissing),
        (408, UpstreamTimeout),
        (413, TooLarge),
        (422, UpstreamRefused),
        (429, UpstreamRateLimited),
        (500, UpstreamFailed),
        (502, UpstreamFailed),
        (503, UpstreamOverloaded),
        (504, UpstreamTimeout),
        (529, UpstreamOverloaded),
    ],
)
def test_a_status_has_its_error_whatever_the_body_is(status: int, kind: type[BridgeError]) -> None:
    for body_ in (b"<html>", b"", b'{"error":{"message":"No key sk-123"}}', b"\xff"):
        assert type(failure(status, body_)) is kind


def test_a_refusal_keeps_message_parameter_and_type() -> None:
    error = failure(400, b'{"error":{"message":"Bad","param":"input[0]","type":"invalid_request_error"}}')
    assert error.message == "Bad (Param: input[0]) (Type: invalid_request_error)"


def test_context_overflow_is_the_clients_own_sentence() -> None:
    words = "This model's maximum prompt length is 131072 but the request contains 140000 tokens."
    error = failure(400, msgspec.json.encode({"code": "x", "error": words}))
    assert isinstance(error, PromptTooLong)
    assert error.message == "prompt is too long: 140000 tokens > 131072 maximum"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_kept(headers: dict[str, str], seconds: float | None) -> None:
    assert failure(429, b"{}", headers).retry_after == seconds


def test_what_the_model_does_not_take_is_left_out_of_results_and_of_older_turns() -> None:
    pdf, image = Document("base64", "JVBERi0=", "application/pdf"), Image("file", "file_1")
    older = request(
        Message("user", (Text("q"), pdf)),
        Message("assistant", (ToolUse("t1", "Read", b"{}"),)),
        Message("user", (ToolResult("t1", (image,)),)),
    )
    items = body(older, XAI)["input"]
    assert items[0]["content"][1]["text"] == "[document left out: this model does not take it]"
    assert items[2]["output"] == "[image left out: this model does not take it]"
    assert rules(older, XAI).count("content-left-out") == 2


def test_what_the_model_does_not_take_is_refused_in_a_newest_turn_that_a_system_message_ends() -> None:
    asked = Message("user", (Text("q"), Image("file", "file_1")))
    system, answer = Message("system", (Text("be brief"),)), Message("assistant", (Text("{"),))
    for messages in ((asked, system), (asked, system, HELLO), (HELLO, answer, asked, system), (asked, answer)):
        with pytest.raises(InvalidRequest, match="a file id is known to Anthropic only"):
            body(request(*messages))
    assert "left out" in str(body(request(asked, answer, HELLO, system)))


def test_a_system_message_without_words_is_not_empty() -> None:
    given = request(HELLO, Message("system", (Image("base64", "iVBO", "image/png"),)))
    assert body(given)["input"][1]["content"] == [{"type": "input_text", "text": "(no content)"}]


def test_a_result_that_is_only_an_image_says_where_it_is() -> None:
    given = request(
        Message("user", (Text("q"),)),
        Message("assistant", (ToolUse("t1", "Read", b"{}"),)),
        Message("user", (ToolResult("t1", (Image("base64", "iVBO", "image/png"),)),)),
    )
    assert body(given, XAI)["input"][2]["output"] == "(attached below)"


@pytest.mark.parametrize(
    ("option", "path"),
    [
        (b'"max_uses":"5"', "max_uses: Input should be a valid integer"),
        (b'"allowed_domains":"a.org"', "allowed_domains: Input should be a valid list"),
        (b'"blocked_domains":[1]', "blocked_domains.0: Input should be a valid string"),
        (b'"user_location":[]', "user_location: Input should be a valid dictionary"),
    ],
)
def test_an_option_of_a_search_that_is_none_is_refused_by_its_path(option: bytes, path: str) -> None:
    raw = b'{"type":"web_search_20250305","name":"web_search",%b}' % option
    with pytest.raises(InvalidRequest) as refused:
        body(request(tools=(Tool("web_search", type="web_search_20250305", raw=raw),)))
    assert refused.value.message == f"tools.web_search.{path}"


def test_what_chat_and_the_responses_api_have_in_common_is_told_by_its_own_name() -> None:
    extras = {"verbosity": "low", "service_tier": "flex", "metadata": {"a": "b"}, "prompt_cache_key": "k", "seed": 1}
    value = body(request(extras=msgspec.json.encode(extras), user_id="u"))
    assert {name: value[name] for name in ("service_tier", "metadata", "prompt_cache_key")} == {
        "service_tier": "flex",
        "metadata": {"a": "b"},
        "prompt_cache_key": "k",
    }
    assert (value["text"], value["safety_identifier"]) == ({"verbosity": "low"}, "u")
    assert value.keys().isdisjoint(("verbosity", "seed"))
    told = body(request(extras=b'{"safety_identifier":"s"}', user_id="u"))
    assert (told["safety_identifier"], "text" in told) == ("s", False)
    assert "service_tier" not in body(request(extras=msgspec.json.encode(extras)), XAI)


def test_json_of_any_form_is_asked_for_beside_how_much_is_said() -> None:
    extras = b'{"response_format":{"type":"json_object"},"verbosity":"high"}'
    assert body(request(extras=extras))["text"] == {"verbosity": "high", "format": {"type": "json_object"}}
    first = {"type": "input_text", "text": "Answer with one JSON object, and nothing else."}
    sent = body(request(extras=extras, system=(Text("Answer in JSON."),)))["input"]
    assert sent[0] == {"type": "message", "role": "developer", "content": [first]}, "`instructions` are no input"
    assert sent[1]["role"] == "user"
    schema = b'{"type":"object","properties":{},"required":[],"additionalProperties":false}'
    text = body(request(extras=b'{"verbosity":"low"}', output_schema=schema))["text"]
    assert (text["verbosity"], text["format"]["type"]) == ("low", "json_schema")
