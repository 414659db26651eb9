"""docs/fields.md says what becomes of each field of a request at each provider; here each of its cells is tried."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from translation.adapter import Target, UpstreamRequest
from translation.adapters import adapter, left_out
from translation.client.parse import parse
from translation.client.stored import dump_blocks, parse_blocks
from translation.errors import InvalidRequest
from translation.history import repair
from translation.mcp_servers import without_connector
from translation.providers.profiles import PROFILES
from translation.strict import is_strict
from translation.values import Note

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fields.md"
MODELS = {
    "openai": "gpt-5.1",
    "openai-responses": "gpt-5.5",
    "gemini": "gemini-3-pro",
    "anthropic": "claude-opus-4-6",
    "minimax": "minimax-m2",
    "minimax-m3": "minimax-m3",
    "xai": "grok-4",
    "xai-responses": "grok-4.3",
    "deepseek": "deepseek-reasoner",
    "moonshot": "kimi-k2-thinking",
    "zai": "glm-4.6",
    "mistral": "magistral-medium",
    "ollama": "qwen3",
    "openrouter": "x-ai/grok-4-fast",
    "azure": "gpt-4.1",
    "vllm": "qwen3-vl",
}
Json = dict[str, Any]
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**OPEN, "required": ["a"], "additionalProperties": False}


def tool(**fields: Any) -> Json:
    return {"tools": [{"name": "t", "description": "d", "input_schema": OPEN, **fields}]}


def search(**fields: Any) -> Json:
    return {"tools": [{"type": "web_search_20250305", "name": "web_search", **fields}]}


def says(*blocks: Json, **fields: Any) -> Json:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, *blocks], **fields}]}


def document(**fields: Any) -> Json:
    return says({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, **fields})


def found(**fields: Any) -> Json:
    text = [{"type": "text", "text": "x"}]
    return says({"type": "search_result", "title": "T", "source": "S", "content": text, **fields})


def answered(call: Json, result: Json) -> Json:
    use = {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}, **call}
    given = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x", **result}
    turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [given]}]
    return {**tool(), "messages": [*says()["messages"], *turns]}


def told(**fields: Any) -> Json:
    turns = [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]
    system = {"role": "system", "content": "be brief", **fields}
    return {"messages": [*says()["messages"], *turns, system]}


class Row(NamedTuple):
    field: str
    given: Json
    without: Json | None = None  # what it is compared with
    own: str = ""  # what it means that nothing is sent: `bridge`, or `-` where it means nothing to an answer


CACHE = {"type": "ephemeral"}
LOCATION = {"type": "approximate", "city": "Bern"}
CITED = {"enabled": True}
ROWS = (
    Row("max_tokens", {"max_tokens": 2000}),
    Row("system", {"system": "s"}),
    Row("stream", {"stream": True}),
    Row("temperature", {"temperature": 0.5}),
    Row("top_p", {"top_p": 0.5}),
    Row("top_k", {"top_k": 5}),
    Row("stop_sequences", {"stop_sequences": ["a"]}),
    Row("stop_sequences, 20 of them", {"stop_sequences": [str(n) for n in range(20)]}),
    Row("metadata.user_id", {"metadata": {"user_id": "u"}}),
    Row("thinking: enabled", {"thinking": {"type": "enabled", "budget_tokens": 20000}, "max_tokens": 30000}),
    Row("thinking: adaptive", {"thinking": {"type": "adaptive"}}),
    Row("thinking: between_tools", {"thinking": {"type": "between_tools"}}),
    Row("thinking: disabled", {"thinking": {"type": "disabled"}}, own="-"),
    Row(
        "thinking.display: omitted",
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        {"thinking": {"type": "adaptive"}},
        "bridge",
    ),
    Row(
        "thinking.display: updates",
        {"thinking": {"type": "adaptive", "display": "updates"}},
        {"thinking": {"type": "adaptive"}},
    ),
    Row("output_config.effort: low", {"output_config": {"effort": "low"}}),
    Row("output_config.effort: max", {"output_config": {"effort": "max"}}),
    Row("output_config.format", {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}}),
    Row("output_config.format, open", {"output_config": {"format": {"type": "json_schema", "schema": OPEN}}}),
    Row("output_format", {"output_format": {"type": "json_schema", "schema": CLOSED}}),
    Row("output_config.task_budget", {"output_config": {"task_budget": {"type": "tokens", "total": 9}}}),
    Row("tools", tool()),
    Row("tool_choice: auto", {"tool_choice": {"type": "auto"}, **tool()}, tool(), "-"),
    Row("tool_choice: any", {"tool_choice": {"type": "any"}, **tool()}, tool()),
    Row("tool_choice: tool", {"tool_choice": {"type": "tool", "name": "t"}, **tool()}, tool()),
    Row("tool_choice: none", {"tool_choice": {"type": "none"}, **tool()}, tool()),
    Row(
        "tool_choice.disable_parallel_tool_use",
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, **tool()},
        {"tool_choice": {"type": "auto"}, **tool()},
    ),
    Row("tools.strict", tool(input_schema=CLOSED, strict=True), tool(input_schema=CLOSED)),
    Row("tools.strict, open schema", tool(strict=True), tool()),
    Row("tools.input_examples", tool(input_examples=[{"a": "b"}]), tool()),
    Row("tools.defer_loading", tool(defer_loading=True), tool()),
    Row("tools.allowed_callers: direct", tool(allowed_callers=["direct"]), tool(), "-"),
    Row("tools.allowed_callers: code only", tool(allowed_callers=["code_execution_20260120"]), tool()),
    Row("tools.eager_input_streaming", tool(eager_input_streaming=True), tool(), "bridge"),
    Row("tools.cache_control", tool(cache_control=CACHE), tool(), "-"),
    Row("web search", search()),
    Row("web search.max_uses", search(max_uses=2), search(), "-"),
    Row("web search.allowed_domains", search(allowed_domains=["a.org"]), search(), "-"),
    Row("web search.blocked_domains", search(blocked_domains=["a.org"]), search(), "-"),
    Row("web search.user_location", search(user_location=LOCATION), search(), "-"),
    Row("code execution", {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}),
    Row("cache_control", {"cache_control": CACHE}, own="-"),
    Row("container", {"container": "c"}),
    Row(
        "context_management: clear_thinking",
        {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}},
        own="-",
    ),
    Row("context_management: other edits", {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}),
    Row("context_management, malformed", {"context_management": {"edits": 5}}),
    Row("compaction", {"compaction": {"type": "summarize"}}),
    Row("diagnostics", {"diagnostics": {"previous_message_id": "m"}}),
    Row("fallbacks", {"fallbacks": [{"model": "m"}]}),
    Row("fallback_credit_token", {"fallback_credit_token": "t"}),
    Row("inference_geo: global", {"inference_geo": "global"}, own="-"),
    Row("inference_geo: us", {"inference_geo": "us"}),
    Row("service_tier: auto", {"service_tier": "auto"}, own="-"),
    Row("service_tier: standard_only", {"service_tier": "standard_only"}),
    Row("speed: standard", {"speed": "standard"}, own="-"),
    Row("speed: fast", {"speed": "fast"}),
    Row("safeguards", {"safeguards": [{"type": "dangerous_tool_use"}]}),
    Row("mcp_servers", {"mcp_servers": [{"type": "url", "name": "n", "url": "https://a.org"}]}, own="bridge"),
    Row("thread", {"thread": {"type": "create"}}, own="bridge"),
    Row("a field that nobody knows", {"novel": 1}),
    Row(
        "messages.cache_control",
        says({"type": "text", "text": "x", "cache_control": CACHE}),
        says({"type": "text", "text": "x"}),
        "-",
    ),
    Row("document.title", document(title="T"), document()),
    Row("document.context", document(context="C"), document()),
    Row("document.citations", document(citations=CITED), document()),
    Row("search_result.citations", found(citations=CITED), found()),
    Row("tool_result.is_error", answered({}, {"is_error": True}), answered({}, {})),
    Row("tool_use.caller", answered({"caller": {"type": "direct"}}, {}), answered({}, {}), "-"),
    Row("system message.clear_at", told(clear_at="next_user_message"), told()),
    Row("system message.output_config", told(output_config={"effort": "low"}), told()),
)


def built(provider: str, fields: Json) -> tuple[UpstreamRequest, tuple[Note, ...]]:
    profile = PROFILES[provider]
    body = {"model": "m", "max_tokens": 1000, **says(), **fields}
    request = parse(msgspec.json.encode(body), "", ())
    if profile.dialect != "anthropic":
        request = without_connector(request)
    repaired, notes = repair(request, profile)
    sent = adapter(profile).build(repaired, Target(provider, MODELS[provider], profile))
    return sent, (*notes, *sent.notes, *left_out(request, profile))


plain = cache(lambda provider, fields: built(provider, msgspec.json.decode(fields)))


def fate(provider: str, row: Row) -> str:
    usual, known = plain(provider, msgspec.json.encode(row.without or {}))
    try:
        sent, notes = built(provider, row.given)
    except InvalidRequest as refused:
        return "refused" if refused.message.startswith(row.field.partition(":")[0]) else refused.message
    noted = set(notes) - set(known)
    if (sent.body, sent.path) != (usual.body, usual.path):
        return "changed" if noted else "sent"
    return "noted" if noted else row.own or "dropped"


def table() -> str:
    lines = [f"| field | {' | '.join(f'`{name}`' for name in MODELS)} |", f"|---|{'---|' * len(MODELS)}"]
    lines += [f"| {row.field} | {' | '.join(fate(name, row) for name in MODELS)} |" for row in ROWS]
    return "\n".join(lines)


def test_the_table_has_every_provider() -> None:
    assert set(MODELS) == set(PROFILES) - {"demo"}


def test_every_field_meets_the_fate_that_the_table_says() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
    assert "dropped" not in table()


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}
GIF = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "aaaa"}}


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "gemini", "deepseek"])
def test_images_of_a_document_follow_its_text_also_out_of_a_tool_result(provider: str) -> None:
    source = {"type": "content", "content": [{"type": "text", "text": "See:"}, PICTURE, GIF]}
    bound = {"type": "document", "source": source, "citations": CITED}
    for given in (says(bound), answered({}, {"content": [bound]})):
        sent, notes = built(provider, given)
        rules = [note.rule for note in notes]
        shown = 0 if provider == "deepseek" else 1 if provider == "gemini" else 2
        assert sent.body.count(b"aaaa") == shown
        assert "citations-ignored" in rules
        assert ({"content-left-out", "media-left-out"} & set(rules) != set()) == (shown < 2)
        assert (b"left out: " in sent.body) == (shown < 2)


def test_an_image_by_url_in_a_document_and_blocks_of_one_kind_at_gemini() -> None:
    far = {"type": "image", "source": {"type": "url", "url": "https://a.org/b.png"}}
    bound = {"type": "document", "source": {"type": "content", "content": [far]}}
    upload = {"type": "container_upload", "file_id": "f"}
    sent, notes = built("gemini", says(bound, upload, upload))
    assert b'"fileUri":"https://a.org/b.png"' in sent.body
    assert [note.rule for note in notes] == ["block-summarised"]


def test_what_is_stored_is_still_to_be_cited() -> None:
    for given in (document(citations=CITED), found(citations=CITED)):
        content = msgspec.json.encode(given["messages"][0]["content"])
        assert msgspec.json.decode(dump_blocks(parse_blocks(content)))[1]["citations"] == CITED


def test_a_tool_that_takes_whatever_it_is_given_says_so_to_gemini() -> None:
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    sent, _ = built("gemini", tool(input_schema=free))
    (declared,) = msgspec.json.decode(sent.body)["tools"][0]["functionDeclarations"]
    assert declared == {"name": "t", "description": 'd (additionalProperties: {"type":"string"})'}


def test_stop_sequences_that_are_empty_stop_nothing() -> None:
    sent, _ = built("openai", {"stop_sequences": ["", "a"]})
    assert msgspec.json.decode(sent.body)["stop"] == ["a"]


@pytest.mark.parametrize(
    ("node", "strict"),
    [
        ({"type": "string", "format": "email"}, True),
        ({"type": "string", "format": "uri"}, False),
        ({"type": "string", "format": ["uri"]}, False),
        ({"$ref": "#/$defs/place"}, True),
        ({"$ref": "#/$defs/place", "description": "where"}, False),
    ],
)
def test_openais_strict_form_has_formats_and_references_of_its_own(node: Json, strict: bool) -> None:
    """`'uri' is not a valid format`, `$ref cannot have keywords {'description'}`: the whole request is refused."""
    schema = {**CLOSED, "properties": {"a": node}, "$defs": {"place": CLOSED}}
    assert is_strict(msgspec.json.encode(schema)) is strict


def enclosed(node: Json, levels: int) -> Json:
    for _ in range(levels):
        node = {**CLOSED, "properties": {"a": node}}
    return node


@pytest.mark.parametrize(
    ("node", "strict"),
    [
        # `schema must have a 'type' key`, `array schema items is not an object`
        (True, False),
        ({"type": "array", "items": True}, False),
        ({"anyOf": [{"type": "string"}, True]}, False),
        # `reference can only point to definitions defined at the top level of the schema`: .NET's libraries write those
        ({"$ref": "#"}, True),
        ({"$ref": "#/definitions/other"}, True),
        ({"$ref": "#/properties/a"}, False),
        ({"$ref": "#/$defs/none"}, False),
        ({"$ref": ["#"]}, False),
        # `11 levels of nesting exceeds limit of 10`
        (enclosed({"type": "string"}, 9), True),
        (enclosed({"type": "string"}, 10), False),
        ({"type": "string", "enum": [f"{number}" for number in range(1_000)]}, True),
        ({"type": "string", "enum": [f"{number}" for number in range(1_001)]}, False),
        ({"type": "string", "enum": [f"{number:061}" for number in range(250)]}, True),
        ({"type": "string", "enum": [f"{number:061}" for number in range(251)]}, False),
        ({"type": "string", "enum": ["x" * 130_000]}, False),
    ],
)
def test_openais_strict_form_has_limits(node: object, strict: bool) -> None:
    schema = {**CLOSED, "properties": {"a": node}, "definitions": {"other": {"type": "string"}}}
    assert is_strict(msgspec.json.encode(schema)) is strict


def test_openais_strict_form_has_so_many_properties() -> None:
    for most, strict in ((5_000, True), (5_001, False)):
        names = [f"{number}" for number in range(most)]
        schema = {**CLOSED, "properties": {name: {"type": "string"} for name in names}, "required": names}
        assert is_strict(msgspec.json.encode(schema)) is strict


def test_a_schema_that_cannot_be_read_is_not_strict() -> None:
    assert not is_strict(b"{")
    assert is_strict(b'{"type":"string","$defs":{"a":{"type":"string"}}}')
    assert not is_strict(b'{"anyOf":[{"type":"object"}]}')
