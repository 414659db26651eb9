"""Blocks in words."""

import msgspec
import pytest
from msgspec.structs import replace

from translation.plain import LIMIT, document, filename, join, reference, search_result, summary, unpacked
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


PDF = Document("base64", "JVBE", "application/pdf")


@pytest.mark.parametrize(
    ("given", "named", "told"),
    [
        (PDF, False, None),
        (replace(PDF, title="Plan"), True, None),
        (replace(PDF, title="Plan"), False, "[document: Plan]"),
        (replace(PDF, title="Plan", context="old"), True, "[document: Plan]\nold"),
        (replace(PDF, context="old"), True, "[document: untitled]\nold"),
        (replace(PDF, kind="url", title="Plan"), True, "[document: Plan]"),
        (replace(PDF, kind="file", title="Plan"), False, None),
    ],
)
def test_a_file_comes_after_what_the_client_says_about_it(given: Document, named: bool, told: str | None) -> None:
    found = unpacked(given, lambda _: True, names_files=named)
    assert found == ((given,) if told is None else (Text(told), given))


def test_a_file_is_called_a_pdf() -> None:
    names = [filename(replace(PDF, title=title)) for title in ("", "Plan", "a.PDF")]
    assert names == ["document.pdf", "Plan.pdf", "a.PDF"]
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    assert filename(replace(PDF, media_type=word, title="Plan.docx")) == "Plan.docx", "but only if it is one"


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


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            {"type": "text", "media_type": "text/plain", "data": "It rains."},
            b'{"media_type":"text/plain","data":"It rains."}',
        ),
        ({"type": "base64", "media_type": "application/pdf", "data": "JVBE"}, b'{"media_type":"application/pdf"}'),
    ],
)
def test_a_page_that_a_server_fetched_is_told_unless_it_is_a_file(source: dict[str, str], told: bytes) -> None:
    page = {"type": "web_fetch_result", "url": "https://x", "content": {"type": "document", "source": source}}
    raw = msgspec.json.encode({"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_1", "content": page})
    found = summary(ServerToolResult("web_fetch_tool_result", "srvtoolu_1", raw))
    content = b'{"content":{"url":"https://x","content":{"source":%b}}}' % told
    assert found == f"[web_fetch_tool_result: {content.decode()}]"


def test_a_summary_says_what_it_leaves_out_of_a_long_block() -> None:
    long = "a" * LIMIT
    found = summary(Other("new", msgspec.json.encode({"type": "new", "text": long})))
    assert found == f'[new: {{"text":"{long[9:]}... (11 more characters were left out)]'
    assert summary(ServerToolUse("s", "run", long.encode())) == f"[server_tool_use run: {long}]"
    assert "(1 more" in summary(ServerToolUse("s", "run", long.encode() + b"b"))


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
