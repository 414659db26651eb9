"""Any canonical block, as hypothesis makes it."""

import msgspec
from hypothesis import strategies as st

from translation.values import (
    Block,
    Document,
    Image,
    Other,
    RedactedThinking,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
name = st.text("abcXYZ019_-:", min_size=1, max_size=12)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
json_object = st.dictionaries(text, json_value, max_size=3).map(msgspec.json.encode)
citations = st.just(b"") | st.lists(st.dictionaries(text, text, max_size=2), min_size=1, max_size=2).map(
    msgspec.json.encode
)

texts = st.builds(Text, text, citations)
images = st.one_of(
    st.builds(Image, st.just("base64"), text, text, st.sampled_from([b"", b'{"transformations":{}}'])),
    st.builds(Image, st.sampled_from(["url", "file"]), text),
)
leaves = st.lists(texts | images, max_size=2).map(tuple)
documents = st.one_of(
    st.builds(Document, st.sampled_from(["base64", "text"]), text, text, st.just(()), text, text),
    st.builds(Document, st.sampled_from(["url", "file"]), text, st.just(""), st.just(()), text, text),
    st.builds(Document, st.just("content"), st.just(""), st.just(""), leaves, text, text),
)
results = st.one_of(
    texts, images, documents, st.builds(SearchResult, text, text, leaves), st.builds(ToolReference, name)
)


@st.composite
def others(draw: st.DrawFn) -> Other:
    kind = "novel_" + draw(name)
    fields = draw(st.dictionaries(st.sampled_from(["a", "text", "content"]), json_value, max_size=3))
    return Other(kind, msgspec.json.encode({"type": kind} | fields))


@st.composite
def server_calls(draw: st.DrawFn) -> ServerToolUse:
    kind, id_, called = draw(st.sampled_from(["server_tool_use", "mcp_tool_use"])), draw(text), draw(text)
    arguments = draw(json_object)
    raw = msgspec.json.encode({"type": kind, "id": id_, "name": called, "input": msgspec.Raw(arguments)})
    return ServerToolUse(id_, called, arguments, kind, raw)


@st.composite
def server_results(draw: st.DrawFn) -> ServerToolResult:
    kind, id_ = draw(st.sampled_from(["web_search_tool_result", "mcp_tool_result"])), draw(text)
    return ServerToolResult(kind, id_, msgspec.json.encode({"type": kind, "tool_use_id": id_, "content": []}))


block: st.SearchStrategy[Block] = st.one_of(
    results,
    st.builds(Thinking, text, text),
    st.builds(RedactedThinking, text),
    st.builds(ToolUse, name, name, json_object, more=st.sampled_from([b"", b'{"caller":{},"toolset_name":"x"}'])),
    st.builds(
        ToolResult,
        name,
        st.lists(results | others(), max_size=3).map(tuple),
        st.booleans(),
        st.sampled_from([b"", b'{"toolset_name":"x"}']),
    ),
    others(),
    server_calls(),
    server_results(),
)
blocks = st.lists(block, max_size=4).map(tuple)
