"""Blocks in words."""

from translation.plain import document, join, reference, search_result, summary
from translation.values import (
    Document,
    Image,
    Other,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    ToolReference,
)


def test_a_text_document_has_its_title_context_and_text() -> None:
    assert document(Document("text", "body", title="Plan", context="old")) == "[document: Plan]\nold\nbody"
    assert document(Document("content", "", blocks=(Text("a"), Text("b")))) == "[document: untitled]\na\nb"


def test_a_document_says_which_images_it_lost() -> None:
    told = document(Document("content", "", blocks=(Text("a"), Image("base64", "iVBO", "image/png"))))
    assert told == "[document: untitled]\na\n[images of it that are left out: 1]"


def test_a_search_result_names_its_source() -> None:
    assert search_result(SearchResult("T", "https://x", (Text("a"),))) == "[search result: T (https://x)]\na"


def test_what_a_server_ran_is_summarised_without_what_only_its_maker_can_read() -> None:
    raw = (
        b'{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":'
        b'[{"type":"web_search_result","title":"T","url":"https://x","encrypted_content":"AAAA"}]}'
    )
    found = summary(ServerToolResult("web_search_tool_result", "srvtoolu_1", raw))
    assert found == '[web_search_tool_result: {"content":[{"title":"T","url":"https://x"}]}]'
    assert summary(ServerToolUse("s", "web_search", b'{"query":"q"}')) == '[server_tool_use web_search: {"query":"q"}]'


def test_an_unknown_block_that_is_not_json_is_named() -> None:
    assert summary(Other("brand_new", b"{")) == "[brand_new]"


def test_blocks_inside_a_block_are_joined_and_pictures_have_no_words() -> None:
    blocks = (
        Text("a"),
        Document("text", "d"),
        Document("base64", "JVBERi0="),
        SearchResult("T", "s", ()),
        ToolReference("Fetch"),
        Other("x", b'{"type":"x","n":1}'),
        Image("url", "https://i"),
    )
    assert join(blocks) == "\n".join(
        ["a", "[document: untitled]\nd", "[search result: T (s)]\n", reference(ToolReference("Fetch")), '[x: {"n":1}]']
    )
