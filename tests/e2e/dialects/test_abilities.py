"""What clients ask for beyond messages, at every provider: thinking, effort, a form of the answer, tools, search."""

from typing import Any

import pytest
from anthropic import Anthropic

from tests.e2e.dialects.conftest import NewChain
from tests.e2e.dialects.conversation import Conversation
from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import BY_NAME, NAMES
from tests.e2e.dialects.script import STEPS, TOOLS, Json
from tests.servers.client import Client
from tests.servers.records import Records

OTHERS = tuple(name for name in NAMES if name != "anthropic")
CONTROLS = ("reasoning_effort", "reasoning", "thinking", "chat_template_kwargs")
FORMS: dict[str, Json] = {
    "nothing": {},
    "small budget": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "large budget": {"thinking": {"type": "enabled", "budget_tokens": 31999}},
    "adaptive": {"thinking": {"type": "adaptive"}},
    "disabled": {"thinking": {"type": "disabled"}},
    "low": {"output_config": {"effort": "low"}},
    "max": {"output_config": {"effort": "max"}, "thinking": {"type": "adaptive"}},
    "disabled, high": {"output_config": {"effort": "high"}, "thinking": {"type": "disabled"}},
}


def efforts(*levels: str) -> list[Json]:
    return [{"reasoning_effort": level} if level else {} for level in levels]


def reasoning(*levels: str, summary: bool = False) -> list[Json]:
    """A summary is asked for when thinking is to be shown."""
    shown = [summary and "thinking" in form and form["thinking"]["type"] != "disabled" for form in FORMS.values()]
    return [
        {"reasoning": {"effort": level} | ({"summary": "auto"} if seen else {})} if level else {}
        for level, seen in zip(levels, shown, strict=True)
    ]


def switched(*levels: str | None) -> list[Json]:
    """`None` is off, "" on without a level."""
    return [
        {"thinking": {"type": "disabled" if level is None else "enabled"}}
        | ({"reasoning_effort": level} if level else {})
        for level in levels
    ]


def template(*on: bool) -> list[Json]:
    return [{"chat_template_kwargs": {"enable_thinking": each, "thinking": each}} for each in on]


def gemini(*levels: str) -> list[Json]:
    """A level, and a plus when thoughts are to be shown."""
    return [
        {"thinkingConfig": ({"thinkingLevel": level.rstrip("+")} if level.rstrip("+") else {}) | shown}
        for level in levels
        for shown in ({"includeThoughts": True} if level.endswith("+") else {},)
    ]


NONE: list[Json] = [{}] * len(FORMS)
SWITCH = [{}, *switched("", "", "", None, "", "", None)]
# In the order of FORMS.
SENT: dict[str, list[Json]] = {
    "openai": efforts("", "low", "high", "medium", "none", "low", "high", "none"),
    "openai-responses": reasoning("", "low", "high", "medium", "none", "low", "xhigh", "none", summary=True),
    "gemini": [{}, *gemini("low+", "high+", "+", "low", "low", "high+", "low")],
    "minimax": NONE,
    "minimax-m3": NONE,
    "xai": NONE,
    "xai-responses": reasoning("", "low", "high", "medium", "none", "low", "high", "none"),
    "deepseek": [{}, *switched("low", "high", "high", None, "low", "max", None)],
    "moonshot": SWITCH,
    "zai": SWITCH,
    "mistral": NONE,
    "ollama": efforts("", "low", "high", "medium", "none", "low", "high", "none"),
    "openrouter": [
        {"reasoning": {"enabled": False}} if form == {"reasoning": {"effort": "none"}} else form
        for form in reasoning("", "low", "high", "medium", "none", "low", "max", "none")
    ],
    "azure": NONE,
    "vllm": [{}, *template(True, True, True, False, True, True, False)],
}


def controls(body: Json) -> Json:
    config = body.get("generationConfig", {}).get("thinkingConfig")
    return {name: body[name] for name in CONTROLS if name in body} | ({"thinkingConfig": config} if config else {})


def ask(client: Client, name: str, **fields: Any) -> Any:
    return client.ask("[chain abilities ids=own] Go.", model=BY_NAME[name].route, max_tokens=40000, **fields)


@pytest.mark.parametrize("name", OTHERS)
def test_thinking_and_effort_in_every_form(name: str, client: Client, models: Models) -> None:
    found = []
    for fields in FORMS.values():
        response = ask(client, name, tools=TOOLS, **fields)
        assert response.status_code == 200, response.text
        found.append(controls(models.requests[-1].json()))
    assert models.refusals == []
    assert found == SENT[name]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_thinking_that_is_not_to_be_shown_is_kept_all_the_same(
    name: str, stream: bool, sdk: Anthropic, models: Models, new_chain: NewChain
) -> None:
    """The models demand it back."""
    conversation = Conversation(sdk, new_chain(), stream=stream)
    conversation.thinking = {"type": "adaptive", "display": "omitted"}
    for _ in STEPS:
        message = conversation.turn(BY_NAME[name].route)
        thoughts = [block for block in message.content if block.type == "thinking"]
        assert all(block.thinking == "" and block.signature for block in thoughts)
        assert bool(thoughts) == (name not in ("openai", "azure"))
    assert models.refusals == []


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_form_of_the_answer_reaches_the_model(name: str, client: Client, models: Models) -> None:
    response = ask(client, name, output_config={"format": {"type": "json_schema", "schema": SCHEMA}})
    assert response.status_code == 200, response.text
    (sent,) = models.requests
    body = sent.json()
    if name == "gemini":
        assert body["generationConfig"]["responseMimeType"] == "application/json"
        assert body["generationConfig"]["responseSchema"]["properties"] == {"city": {"type": "STRING"}}
    elif name.endswith("responses"):
        assert body["text"]["format"]["schema"] == SCHEMA
    elif name == "anthropic":
        assert body["output_config"]["format"]["schema"] == SCHEMA
    elif "json_schema" in body.get("response_format", {}):
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    else:
        assert name in ("deepseek", "moonshot", "zai", "minimax", "minimax-m3")
        assert '"city"' in body["messages"][0]["content"], "asked for in words"
    assert models.refusals == []


TYPED: list[Any] = [
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    {"type": "memory_20250818", "name": "memory"},
    {"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600},
]


def declared(body: Json) -> dict[str, Json]:
    tools = [each for tool in body["tools"] for each in tool.get("functionDeclarations", [tool])]
    functions = [tool.get("function", tool) for tool in tools]
    return {function["name"]: function["parameters"] for function in functions}


@pytest.mark.parametrize("name", OTHERS)
def test_typed_client_tools_have_a_schema_for_other_models(name: str, client: Client, models: Models) -> None:
    response = ask(client, name, tools=TYPED, headers={"anthropic-beta": "computer-use-2025-01-24"})
    assert response.status_code == 200, response.text
    schemas = declared(models.requests[0].json())
    assert list(schemas) == [tool["name"] for tool in TYPED]
    assert all(schema["properties"] for schema in schemas.values())
    assert "command" in schemas["bash"]["properties"]
    assert models.refusals == []


SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
SEARCHERS = {"openai-responses": "web_search", "xai-responses": "web_search", "gemini": "googleSearch"}


@pytest.mark.parametrize("name", OTHERS)
def test_web_search_is_the_providers_own_or_recorded_as_missing(
    name: str, client: Client, models: Models, records: Records
) -> None:
    response = ask(client, name, tools=[SEARCH, *TOOLS])
    assert response.status_code == 200, response.text
    tools = models.requests[0].json()["tools"]
    own = [tool for tool in tools if tool.get("type") == "web_search" or "googleSearch" in tool]
    assert bool(own) == (name in SEARCHERS)
    if not own:
        (turn,) = records.ended(client.api_key, 1)
        assert b"server-tool" in turn.notes
    assert models.refusals == []


def test_the_name_of_the_model_tells_which_minimax_it_is(client: Client, models: Models) -> None:
    """Both are served at one address; only M3 sees pictures."""
    models.lenient = True
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
    turn: Any = {"role": "user", "content": [image, {"type": "text", "text": "[chain abilities ids=own] Go."}]}
    seen = client.ask(turn, model="minimax/minimax-m3")
    unseen = client.ask(turn, model="minimax-m3/minimax-m2")
    assert (seen.status_code, unseen.status_code) == (200, 400), (seen.text, unseen.text)
    assert "takes no image" in unseen.json()["error"]["message"]
