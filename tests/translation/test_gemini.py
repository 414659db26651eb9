"""Requests to Gemini: contents, tools, configuration, and what goes back where it came from."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.validators.gemini import validate
from translation.adapter import Target, UpstreamRequest
from translation.errors import InvalidRequest
from translation.providers.gemini import Gemini
from translation.providers.gemini_contents import CONTINUE, NO_CONTENT
from translation.providers.gemini_models import abilities
from translation.providers.gemini_state import Piece, State, write
from translation.providers.profiles import PROFILES
from translation.values import (
    Block,
    Document,
    Image,
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

ADAPTER = Gemini()
OLD = Target("gemini", "gemini-2.5-flash", PROFILES["gemini"])
NEW = replace(OLD, model="gemini-3-flash-preview")
HELLO = Message("user", (Text("hi"),))
WEATHER = Tool(
    "get_weather", "Weather", b'{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
)
SEARCH = Tool("web_search", type="web_search_20250305")


def request(*messages: Message, **fields: Any) -> Request:
    return Request(model="m", messages=messages or (HELLO,), max_tokens=fields.pop("max_tokens", 1000), **fields)


def sent(given: Request, target: Target = OLD) -> UpstreamRequest:
    built = ADAPTER.build(given, target)
    assert validate(built.body, signatures=abilities(target.model).signatures) == []
    return built


def body(given: Request, target: Target = OLD) -> Any:
    return msgspec.json.decode(sent(given, target).body)


def config(target: Target = OLD, **fields: Any) -> Any:
    return body(request(**fields), target)["generationConfig"]


def rules(given: Request, target: Target = OLD) -> list[str]:
    return [note.rule for note in sent(given, target).notes]


def chain(*blocks: Block) -> tuple[Message, ...]:
    """Two parallel calls and what the user answers."""
    calls = (
        Text("Looking."),
        ToolUse("toolu_a", "get_weather", b'{"city":"A"}'),
        ToolUse("toolu_b", "get_weather", b'{"city":"B"}'),
    )
    return (HELLO, Message("assistant", calls), Message("user", blocks))


RESULTS = (ToolResult("toolu_a", (Text("sunny"),)), ToolResult("toolu_b", (Text("no such city"),), is_error=True))


# ---------------------------------------------------------------- paths, order


def test_the_path_says_whether_it_streams() -> None:
    assert sent(request(stream=True)).path == "/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert sent(request()).path == "/models/gemini-2.5-flash:generateContent"
    assert sent(request(), replace(OLD, model="tunedModels/mine")).path == "/tunedModels/mine:generateContent"
    assert sent(request(), replace(OLD, model="a/b?c")).path == "/models/a%2Fb%3Fc:generateContent"


def test_a_longer_history_only_appends_to_the_body() -> None:
    first = sent(request(*chain(*RESULTS), tools=(WEATHER,), system=(Text("Be kind."),)), NEW).body
    longer = (*chain(*RESULTS), Message("assistant", (Text("Sunny."),)), Message("user", (Text("And C?"),)))
    second = sent(request(*longer, tools=(WEATHER,), system=(Text("Be kind."),)), NEW).body
    assert first.endswith(b"]}")
    assert second.startswith(first[:-2])


def test_system_texts_are_parts_of_the_instruction() -> None:
    assert body(request(system=(Text("a"), Text(""), Text("b"))))["systemInstruction"] == {
        "parts": [{"text": "a"}, {"text": "b"}]
    }
    assert "systemInstruction" not in body(request())


# ---------------------------------------------------------------- contents


def test_results_of_a_turn_are_one_content_in_call_order_and_errors_are_visible() -> None:
    assert body(request(*chain(*RESULTS, Text("go on"))))["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "Looking."},
                {"functionCall": {"name": "get_weather", "args": {"city": "A"}}},
                {"functionCall": {"name": "get_weather", "args": {"city": "B"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "get_weather", "response": {"output": "sunny"}}},
                {"functionResponse": {"name": "get_weather", "response": {"error": "no such city"}}},
                {"text": "go on"},
            ],
        },
    ]


def test_images_of_results_are_lifted_behind_all_results_and_text() -> None:
    shot = Image("base64", "QUJD", "image/png")
    results = (ToolResult("toolu_a", (shot,)), ToolResult("toolu_b", ()))
    assert body(request(*chain(*results, Text("look"))))["contents"][2]["parts"] == [
        {"functionResponse": {"name": "get_weather", "response": {"output": "(attached below)"}}},
        {"functionResponse": {"name": "get_weather", "response": {"output": "(no output)"}}},
        {"text": "look"},
        {"text": "[attached to the result of get_weather]"},
        {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
    ]


def test_an_orphan_result_is_told_as_text() -> None:
    orphan = ToolResult("toolu_z", (Text("late"), Image("base64", "QUJD", "image/png")))
    assert body(request(Message("user", (orphan,))))["contents"][0]["parts"] == [
        {"text": "[result of an earlier tool call toolu_z] late"},
        {"text": "[attached to the result of a tool call]"},
        {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
    ]


BLOCKS: tuple[tuple[Block, object], ...] = (
    (Image("base64", "QQ==", "image/webp"), {"inlineData": {"mimeType": "image/webp", "data": "QQ=="}}),
    (Image("url", "https://x/a.PNG?s=1"), {"fileData": {"mimeType": "image/png", "fileUri": "https://x/a.PNG?s=1"}}),
    (Image("url", "https://x/a"), {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://x/a"}}),
    (Document("base64", "QQ==", "application/pdf"), {"inlineData": {"mimeType": "application/pdf", "data": "QQ=="}}),
    (Document("base64", "QQ=="), {"inlineData": {"mimeType": "application/pdf", "data": "QQ=="}}),
    (Document("url", "https://x/a"), {"fileData": {"mimeType": "application/pdf", "fileUri": "https://x/a"}}),
    (Document("text", "words", title="T"), {"text": "[document: T]\nwords"}),
    (Document("content", "", blocks=(Text("inner"),)), {"text": "[document: untitled]\ninner"}),
    (SearchResult("T", "https://x", (Text("found"),)), {"text": "[search result: T (https://x)]\nfound"}),
    (ToolReference("WebFetch"), {"text": "[tool available: WebFetch]"}),
    (
        Other("container_upload", b'{"type":"container_upload","file_id":"f"}'),
        {"text": '[container_upload: {"file_id":"f"}]'},
    ),
)


@pytest.mark.parametrize(("block", "part"), BLOCKS, ids=lambda value: type(value).__name__)
def test_each_kind_of_block_has_its_part(block: Block, part: object) -> None:
    assert body(request(Message("user", (block,))))["contents"][0]["parts"] == [part]


REFUSED = (
    Image("base64", "QQ==", "image/gif"),
    Image("file", "file_1"),
    Image("url", "http://x/a.png"),
    Document("file", "file_1"),
    Document("url", "ftp://x/a.pdf"),
)


@pytest.mark.parametrize("block", REFUSED)
def test_what_gemini_cannot_read_is_refused_by_its_path(block: Block) -> None:
    with pytest.raises(InvalidRequest, match=r"^messages\.0\.content\.1\.source: "):
        ADAPTER.build(request(Message("user", (Text("see"), block))), OLD)


@pytest.mark.parametrize("block", REFUSED)
def test_a_result_goes_on_without_what_gemini_cannot_read(block: Block) -> None:
    given = request(*chain(ToolResult("toolu_a", (Text("shot"), block)), ToolResult("toolu_b")))
    shot, _, whose, what = body(given)["contents"][2]["parts"]
    assert shot["functionResponse"]["response"] == {"output": "shot"}
    assert whose["text"] == "[attached to the result of get_weather]"
    assert what["text"].endswith(": left out]")
    assert [(note.rule, note.message) for note in sent(given).notes] == [("media-left-out", 2)]


@pytest.mark.parametrize("block", REFUSED)
def test_in_the_history_of_another_provider_it_is_left_out_and_noted(block: Block) -> None:
    given = request(Message("user", (Text("see"), block)), Message("assistant", (Text("nice"),)), HELLO)
    assert body(given)["contents"][0]["parts"][1]["text"].endswith(": left out]")
    assert [(note.rule, note.message) for note in sent(given).notes] == [("media-left-out", 0)]


def test_a_trailing_answer_is_followed_by_a_request_to_continue() -> None:
    given = request(HELLO, Message("assistant", (Text('{"a":'),)))
    assert body(given)["contents"][1:] == [
        {"role": "model", "parts": [{"text": '{"a":'}]},
        {"role": "user", "parts": [{"text": CONTINUE}]},
    ]
    assert rules(given) == ["prefill-continued"]


def test_thinking_of_others_is_never_sent() -> None:
    thought = Message("assistant", (Thinking("secret", "sig"), RedactedThinking("xyz")))
    assert body(request(HELLO, thought, HELLO))["contents"][1]["parts"] == [{"text": NO_CONTENT}]
    assert body(request(Message("user", ())))["contents"][0]["parts"] == [{"text": NO_CONTENT}]


def test_what_another_provider_searched_is_told_as_text() -> None:
    use = ServerToolUse("srvtoolu_1", "web_search", b'{"query":"q"}')
    result = ServerToolResult("web_search_tool_result", "srvtoolu_1", b'{"type":"web_search_tool_result","content":[]}')
    parts = body(request(HELLO, Message("assistant", (use, result)), HELLO))["contents"][1]["parts"]
    assert parts == [
        {"text": '[server_tool_use web_search: {"query":"q"}]'},
        {"text": '[web_search_tool_result: {"content":[]}]'},
    ]


def test_what_gemini_searched_itself_is_no_part_of_its_answer() -> None:
    use = ServerToolUse("srvtoolu_1", "web_search", b'{"query":"q"}')
    result = ServerToolResult("web_search_tool_result", "srvtoolu_1", b'{"type":"web_search_tool_result","content":[]}')
    answer = Message("assistant", (Text("Sunny."), use, result), origin=Origin("gemini", "gemini-2.5-flash"))
    given = request(HELLO, answer, HELLO)
    assert body(given)["contents"][1]["parts"] == [{"text": "Sunny."}]
    assert rules(given) == []


def test_a_block_in_a_result_that_is_told_in_words_is_recorded() -> None:
    state = Other("browser_state", b'{"type":"browser_state","url":"https://x"}')
    use = ToolUse("toolu_a", "get_weather", b"{}")
    given = request(HELLO, Message("assistant", (use,)), Message("user", (ToolResult("toolu_a", (state,)),)))
    (said,) = body(given)["contents"][2]["parts"]
    assert said["functionResponse"]["response"] == {"output": '[browser_state: {"url":"https://x"}]'}
    assert rules(given) == ["block-summarised"]


# ---------------------------------------------------------------- generationConfig


def test_sampling_and_stops() -> None:
    assert config(temperature=0.5, top_p=0.9, top_k=3, stop_sequences=("a", "")) == {
        "maxOutputTokens": 1000,
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 3,
        "stopSequences": ["a"],
    }
    assert config(stop_sequences=tuple("abcdefg"))["stopSequences"] == list("abcde")
    assert rules(request(stop_sequences=tuple("abcdefg"))) == ["stop-sequences-limited"]
    without = replace(OLD, profile=replace(OLD.profile, drop_params=("stopSequences",)))
    assert "stopSequences" not in config(without, stop_sequences=("a",))
    assert rules(request(stop_sequences=("a",)), without) == ["stop-sequences-limited"]
    assert "topK" not in config(top_k=0)  # which is none at all, and refused


def test_the_answer_is_at_least_a_token_and_at_most_what_the_model_gives() -> None:
    assert config(max_tokens=0)["maxOutputTokens"] == 1
    assert config(max_tokens=128_000)["maxOutputTokens"] == 65_536
    assert rules(request(max_tokens=128_000)) == ["max-tokens-limited"]
    assert config(replace(OLD, model="gemma-3"), max_tokens=128_000)["maxOutputTokens"] == 128_000


ADAPTIVE, OFF = ThinkingConfig("adaptive"), ThinkingConfig("disabled")
SHOWN = {"includeThoughts": True}
PRO3 = "gemini-3-pro-preview"
THINKING: tuple[tuple[str, ThinkingConfig | None, str, object, bool], ...] = (
    ("gemini-2.5-flash", None, "", None, False),
    ("gemini-2.5-flash", None, "low", {"thinkingBudget": 1024}, False),
    ("gemini-2.5-flash", ADAPTIVE, "", {"thinkingBudget": -1, **SHOWN}, False),
    ("gemini-2.5-flash", ADAPTIVE, "high", {"thinkingBudget": -1, **SHOWN}, False),
    ("gemini-2.5-flash", ADAPTIVE, "max", {"thinkingBudget": 24_576, **SHOWN}, False),
    ("gemini-2.5-flash", ThinkingConfig("enabled", 2048), "", {"thinkingBudget": 2048, **SHOWN}, False),
    ("gemini-2.5-flash", ThinkingConfig("enabled", 31_999), "", {"thinkingBudget": 24_576, **SHOWN}, True),
    ("gemini-2.5-flash", OFF, "", {"thinkingBudget": 0}, False),
    ("gemini-2.5-pro", OFF, "", {"thinkingBudget": 128}, True),
    ("gemini-3-flash-preview", None, "", None, False),
    ("gemini-3-flash-preview", ADAPTIVE, "", SHOWN, False),
    ("gemini-3-flash-preview", ADAPTIVE, "high", {"thinkingLevel": "high", **SHOWN}, False),
    ("gemini-3-flash-preview", ADAPTIVE, "max", {"thinkingLevel": "high", **SHOWN}, True),
    ("gemini-3-flash-preview", ThinkingConfig("enabled", 2048), "", {"thinkingLevel": "low", **SHOWN}, False),
    ("gemini-3-flash-preview", OFF, "", {"thinkingLevel": "minimal"}, True),
    ("gemini-3.6-flash", OFF, "", {"thinkingLevel": "minimal"}, True),
    ("gemini-3.7-flash", OFF, "", {"thinkingLevel": "low"}, True),
    ("gemini-3.8-flash", OFF, "", {"thinkingLevel": "low"}, True),
    ("gemini-flash-latest", OFF, "", {"thinkingLevel": "low"}, True),
    ("gemini-3.1-flash-lite", OFF, "", {"thinkingLevel": "minimal"}, True),
    ("gemini-flash-lite-latest", OFF, "", {"thinkingLevel": "minimal"}, True),
    ("gemini-3.1-pro-preview", ADAPTIVE, "medium", {"thinkingLevel": "medium", **SHOWN}, False),
    ("gemini-3.1-pro-preview", OFF, "", {"thinkingLevel": "low"}, True),
    (PRO3, ADAPTIVE, "medium", {"thinkingLevel": "high", **SHOWN}, True),
    ("gemini-2.0-flash", ADAPTIVE, "high", None, True),
    ("gemini-2.0-flash", OFF, "", None, False),
    ("gemini-2.0-flash", ADAPTIVE, "", None, False),
)


@pytest.mark.parametrize(("model", "thinking", "effort", "expected", "noted"), THINKING)
def test_thinking(model: str, thinking: ThinkingConfig | None, effort: str, expected: object, noted: bool) -> None:
    target = replace(OLD, model=model)
    given = request(thinking=thinking, effort=effort)
    assert body(given, target)["generationConfig"].get("thinkingConfig") == expected
    assert rules(given, target) == (["effort-limited"] if noted else [])


def test_structured_output_is_a_lowered_response_schema() -> None:
    schema = b'{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0}}}}'
    found = config(output_schema=schema)
    assert found["responseMimeType"] == "application/json"
    assert found["responseSchema"]["items"]["properties"]["n"] == {
        "type": "INTEGER",
        "description": "(exclusiveMinimum: 0)",
    }
    assert rules(request(output_schema=schema)) == ["schema-lowered"]
    assert "responseSchema" in config(NEW, output_schema=schema, tools=(WEATHER,))


def test_structured_output_beside_functions_is_asked_for_in_words_where_it_has_to_be() -> None:
    given = request(output_schema=b'{"type":"object"}', tools=(WEATHER,))
    assert body(given)["systemInstruction"]["parts"][0]["text"].endswith('{"type":"object"}')
    assert "responseSchema" not in body(given)["generationConfig"]
    assert rules(given) == ["schema-in-words"]


# ---------------------------------------------------------------- tools


def test_functions_are_declared_with_lowered_schemas() -> None:
    bare = Tool("ping", schema=b'{"type":"object","$schema":"x"}')
    strict = Tool("age", "Age", b'{"properties":{"n":{"type":"integer","exclusiveMinimum":0}}}')
    given = request(tools=(WEATHER, bare, strict))
    declared = body(given)["tools"][0]["functionDeclarations"]
    assert declared[0]["parameters"] == {
        "type": "OBJECT",
        "properties": {"city": {"type": "STRING"}},
        "required": ["city"],
    }
    assert declared[1] == {"name": "ping"}
    assert [note.what for note in sent(given).notes] == [
        "tools.age.input_schema: n: exclusiveMinimum went into the description"
    ]


def test_typed_client_tools_have_real_schemas() -> None:
    declared = body(request(tools=(Tool("bash", type="bash_20250124"),)))["tools"][0]["functionDeclarations"]
    assert declared[0]["name"] == "bash"
    assert "command" in declared[0]["parameters"]["properties"]


def test_names_that_gemini_refuses_are_aliased_everywhere_and_told() -> None:
    tools = (Tool("mcp__" + "x" * 80), Tool("9 lives!"), WEATHER)
    call = Message("assistant", (ToolUse("t", "9 lives!", b"{}"),))
    given = request(
        HELLO, call, Message("user", (ToolResult("t"),)), tools=tools, tool_choice=ToolChoice("tool", "9 lives!")
    )
    built, found = sent(given), body(given)
    alias = {client: upstream for upstream, client in built.names}["9 lives!"]
    assert found["contents"][1]["parts"][0]["functionCall"]["name"] == alias
    assert found["contents"][2]["parts"][0]["functionResponse"]["name"] == alias
    assert found["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": [alias]}
    assert len(built.names) == 2


@pytest.mark.parametrize(("kind", "mode"), [("auto", "AUTO"), ("any", "ANY"), ("none", "NONE")])
def test_the_choice_of_tools(kind: Any, mode: str) -> None:
    found = body(request(tools=(WEATHER,), tool_choice=ToolChoice(kind)))
    assert found["toolConfig"] == {"functionCallingConfig": {"mode": mode}}


def test_a_choice_without_tools_is_left_out() -> None:
    assert "toolConfig" not in body(request(tool_choice=ToolChoice("any")))
    assert "toolConfig" not in body(request())


def test_a_choice_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"tool_choice: none of the tools"):
        ADAPTER.build(request(tools=(Tool("run", type="code_execution_20250825"),), tool_choice=ToolChoice("any")), OLD)
    with pytest.raises(InvalidRequest, match=r"tool_choice.name: there is no tool 'nope'"):
        ADAPTER.build(request(tools=(WEATHER,), tool_choice=ToolChoice("tool", "nope")), OLD)


def test_parallel_calls_cannot_be_switched_off_and_that_is_noted() -> None:
    assert rules(request(tools=(WEATHER,), tool_choice=ToolChoice(parallel=False))) == ["parallel-uncontrolled"]


def test_web_search_is_googles_own() -> None:
    given = request(tools=(SEARCH,), tool_choice=ToolChoice("tool", "web_search", parallel=False))
    assert body(given)["tools"] == [{"googleSearch": {}}]
    assert "toolConfig" not in body(given)
    assert rules(given) == ["search-not-forced"]
    assert rules(request(tools=(SEARCH,), tool_choice=ToolChoice("auto"))) == []


def test_search_beside_functions_needs_a_model_that_can() -> None:
    given = request(tools=(WEATHER, SEARCH))
    assert [list(tool) for tool in body(given)["tools"]] == [["functionDeclarations"]]
    assert rules(given) == ["search-left-out"]
    found = body(given, NEW)
    assert [list(tool) for tool in found["tools"]] == [["functionDeclarations"], ["googleSearch"]]
    assert found["toolConfig"] == {"includeServerSideToolInvocations": True}


def test_a_search_that_the_client_insists_on_comes_before_functions() -> None:
    """Where a model cannot do both it was refused, for a reason that only we know."""
    given = request(tools=(WEATHER, SEARCH), tool_choice=ToolChoice("tool", "web_search"))
    assert body(given)["tools"] == [{"googleSearch": {}}]
    assert rules(given) == ["search-alone", "search-not-forced"]
    assert rules(given, NEW) == ["search-not-forced"]


def test_a_free_choice_beside_a_search_is_not_told() -> None:
    """AUTO is refused there: where nothing is said, the model calls, searches or answers."""
    given = request(tools=(WEATHER, SEARCH), tool_choice=ToolChoice("auto"))
    assert body(given, NEW)["toolConfig"] == {"includeServerSideToolInvocations": True}
    forced = replace(given, tool_choice=ToolChoice("any"))
    assert body(forced, NEW)["toolConfig"]["functionCallingConfig"] == {"mode": "ANY"}


@pytest.mark.parametrize("kind", ["toolCall", "toolResponse", "executableCode"])
def test_searches_in_the_history_are_allowed_where_none_is_wanted_now(kind: str) -> None:
    carried = msgspec.json.encode({kind: {"id": "x"}})
    state = write(State((Piece("part", part=msgspec.Raw(carried)), Piece("text", length=6))))
    answer = Message("assistant", (Text("Sunny."),), origin=Origin("gemini", NEW.model, state))
    given = request(HELLO, answer, HELLO, tools=(WEATHER,))
    found = body(given, NEW)
    assert found["contents"][1]["parts"] == [{kind: {"id": "x"}}, {"text": "Sunny."}]
    assert ("toolConfig" in found) == (kind != "executableCode")


def test_a_choice_of_no_tool_is_one_of_no_search_either() -> None:
    assert "tools" not in body(request(tools=(SEARCH,), tool_choice=ToolChoice("none")))
    given = request(tools=(WEATHER, SEARCH), tool_choice=ToolChoice("none"))
    found = body(given, NEW)
    assert [list(tool) for tool in found["tools"]] == [["functionDeclarations"]]
    assert found["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert rules(given, NEW) == []


def test_other_server_tools_are_left_out_and_noted() -> None:
    given = request(tools=(Tool("run", type="code_execution_20250825"),))
    assert "tools" not in body(given)
    assert rules(given) == ["server-tool-unavailable"]


def test_chat_clients_get_their_seed_and_json_of_any_form() -> None:
    extras = b'{"response_format":{"type":"json_object"},"seed":7,"logit_bias":{}}'
    config = {"maxOutputTokens": 1000, "seed": 7, "responseMimeType": "application/json"}
    assert body(request(extras=extras))["generationConfig"] == config
    assert body(request(extras=extras, tools=(WEATHER,)), NEW)["generationConfig"] == config
    beside = sent(request(extras=extras, tools=(WEATHER,)))  # a model that takes no form beside functions
    assert b"responseMimeType" not in beside.body
    assert [note.rule for note in beside.notes] == ["structured-output"]
    assert body(request(extras=b'{"seed":7}'))["generationConfig"] == {"maxOutputTokens": 1000, "seed": 7}
