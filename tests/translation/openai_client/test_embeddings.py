"""Embeddings are passed on; only the model's name changes."""

import msgspec
import pytest

from translation.errors import InvalidRequest, UpstreamProtocolError
from translation.openai_client.embeddings import answered, outgoing, parse
from translation.values import Usage


def test_everything_but_the_model_is_passed_on_as_it_is() -> None:
    asked = parse(b'{"input": ["a", "b"], "model": "mine", "encoding_format":"base64", "dimensions": null}')
    assert asked.model == "mine"
    assert outgoing(asked, "theirs") == b'{"model":"theirs","input":["a", "b"],"encoding_format":"base64"}'


def test_a_byte_order_mark_is_no_part_of_a_body() -> None:
    assert outgoing(parse(b'\xef\xbb\xbf{"model":"m","input":"x"}'), "m") == b'{"model":"m","input":"x"}'


@pytest.mark.parametrize(
    ("body", "complaint"),
    [(b'{"model":"m"}', "input: Field"), (b'{"input":"x"}', "model: Field"), (b'{"input":"x","model":5}', "model: In")],
)
def test_a_wrong_request_is_named(body: bytes, complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        parse(body)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [({"prompt_tokens": 5, "total_tokens": 5}, Usage(input_tokens=5)), ({}, None), (None, None)],
)
def test_usage_is_read_where_it_is_told(usage: object, counted: Usage | None) -> None:
    body = msgspec.json.encode({"object": "list", "data": [{"embedding": [1]}], "model": "m", "usage": usage})
    assert answered(body).usage == counted
    assert answered(b'{"data":[]}').model == ""


def test_what_is_no_list_of_embeddings_is_an_error() -> None:
    with pytest.raises(UpstreamProtocolError):
        answered(b"<html>")
