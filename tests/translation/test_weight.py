"""What of a body weighs, and how much: texts are read, ids and base64 are not."""

import base64
from struct import pack

import msgspec
import pytest

from translation.weight import PAGE, PICTURE, weight


def encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


def png(width: int, height: int) -> str:
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + pack(">II", width, height) + b"\0" * 20).decode()


def jpeg(width: int, height: int) -> bytes:
    application = b"\xff\xe0" + pack(">H", 16) + b"JFIF\0" + b"\0" * 9
    frame = b"\xff\xc0" + pack(">HBHH", 17, 8, height, width) + b"\0" * 10
    return b"\xff\xd8" + application + frame


def extra(content: object) -> int:
    """Beyond the message itself."""
    return weight(encoded({"messages": [{"role": "user", "content": content}]})).extra - 7


def test_texts_names_and_arguments_are_read_but_ids_are_not() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": ""},
    ]
    found = weight(encoded({"model": "m", "max_tokens": 5, "messages": messages}))
    assert found.texts == ("Be brief.", "read", '{"a":1}')
    assert found.extra == 3 + 3 * 4


def test_tools_and_schemas_are_read_with_their_keys() -> None:
    tool = {"name": "read", "input_schema": {"type": "object"}}
    body = {"tools": [tool], "text": {"format": {"type": "json_schema", "name": "output", "schema": {"const": 1}}}}
    assert weight(encoded(body)).texts == ('{"name":"read","input_schema":{"type":"object"}}', "output", '{"const":1}')


def test_tools_that_are_no_list_are_walked_like_anything_else() -> None:
    assert weight(encoded({"tools": "odd"})).texts == ("odd",)


def test_gemini_parts_are_read() -> None:
    parts = [{"text": "hi"}, {"functionCall": {"name": "f", "args": {"a": [1]}}, "thoughtSignature": "c2ln"}]
    found = weight(encoded({"contents": [{"role": "model", "parts": parts}]}))
    assert found.texts == ("hi", "f", '{"a":[1]}')


@pytest.mark.parametrize("body", [b"not json", b"[]", b"\xff"])
def test_what_is_no_json_object_is_one_text(body: bytes) -> None:
    assert weight(body).texts == (body.decode("utf-8", "replace"),)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png(300, 250)}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{png(300, 250)}"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png(300, 250)}},
        {"inlineData": {"mimeType": "image/png", "data": png(300, 250)}},
        {"type": "image_url", "image_url": {"url": f"data:;base64,{png(300, 250)}"}},
    ],
)
def test_a_picture_weighs_by_its_area_in_every_dialect(part: object) -> None:
    assert extra([part]) == 100


@pytest.mark.parametrize(
    ("data", "tokens"),
    [
        (base64.b64encode(jpeg(300, 250)).decode(), 100),
        (base64.b64encode(b"GIF89a" + pack("<HH", 300, 250)).decode(), 100),
        (png(15680, 15680), 1600),
        (png(1, 1), 1),
        (base64.b64encode(jpeg(300, 250)[:20]).decode(), PICTURE),
        (base64.b64encode(b"\xff\xd8\x00 not a marker").decode(), PICTURE),
        (base64.b64encode(b"\x89PNG").decode(), PICTURE),
        ("not base64 at all!?", PICTURE),
        ("A", PICTURE),
        ("=AAA", PICTURE),
    ],
)
def test_a_picture_that_cannot_be_looked_at_weighs_as_a_usual_one(data: str, tokens: int) -> None:
    assert extra([{"type": "image", "source": {"media_type": "image/x", "data": data}}]) == tokens


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"fileData": {"fileUri": "https://example.org/a.png", "mimeType": "image/png"}},
    ],
)
def test_a_picture_that_the_upstream_fetches_weighs_as_a_usual_one(part: object) -> None:
    assert extra([part]) == PICTURE


@pytest.mark.parametrize(
    ("pdf", "pages"),
    [(b"%PDF /Type /Pages /Type /Page /Type/Page ", 2), (b"%PDF", 1), (b"%PDF" + b"\0" * 200_000, 4)],
)
def test_a_pdf_weighs_by_its_pages(pdf: bytes, pages: int) -> None:
    data = f"data:application/pdf;base64,{base64.b64encode(pdf).decode()}"
    assert extra([{"type": "file", "file": {"file_data": data}}]) == pages * PAGE


def test_a_text_document_and_a_data_url_that_is_text_are_read() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "words"}
    content = [{"type": "document", "source": source}, {"type": "text", "text": "data:,words"}]
    assert weight(encoded({"messages": [{"role": "user", "content": content}]})).texts == ("words", "data:,words")
