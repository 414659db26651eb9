"""Server-sent events from bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translation import sse
from translation.errors import UpstreamProtocolError
from translation.sse import SSEDecoder, frame, is_idle


def events(*chunks: bytes) -> list[tuple[str, bytes]]:
    decoder = SSEDecoder()
    found = [event for chunk in chunks for event in decoder.feed(chunk)]
    return found + decoder.close()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_any_of_the_three_ways(end: bytes) -> None:
    stream = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"data: 3", b"", b""])
    assert events(stream) == [("a", b"1"), ("", b"2\n3")]
    assert events(*(bytes([byte]) for byte in stream)) == [("a", b"1"), ("", b"2\n3")]


def test_comments_ids_and_unknown_fields_are_ignored() -> None:
    assert events(b": hello\n\nid: 7\nretry: 9\nfoo\ndata:x\n\n") == [("", b"x")]


def test_a_line_separator_of_unicode_is_data() -> None:
    assert events("data: a\u2028b\u0085c\n\n".encode()) == [("", "a\u2028b\u0085c".encode())]


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    assert events(b"\xef\xbb", b"\xbfdata: 1\n\n", b"\xef\xbb\xbfdata: 2\n\n") == [("", b"1")]


def test_an_event_without_its_blank_line_counts_at_the_end() -> None:
    assert events(b"data: 1") == [("", b"1")]
    assert events(b"data: 1\r") == [("", b"1")]


def test_objects_without_blank_lines_between_them_are_events_of_their_own() -> None:
    assert events(b'event: a\ndata: {"a":1}\ndata:\nevent: b\ndata: {"b":2} \ndata: [DONE]\n') == [
        ("b", b'{"a":1}'),
        ("b", b'{"b":2} '),
        ("b", b"[DONE]"),
    ]
    assert events(b'data: {"a":\ndata: {"b":2}}\n\n') == [("", b'{"a":\n{"b":2}}')]


def test_empty_data_is_an_event_and_no_data_is_none() -> None:
    assert events(b"data\n\nevent: x\n\ndata:\n\n") == [("", b""), ("", b"")]


def test_an_error_in_a_field_of_its_own_is_an_event_of_that_name() -> None:
    said = b'data: 1\n\nerror: {"message":"no"}\n\ndata: [DONE]\n\n'
    expected = [("", b"1"), ("error", b'{"message":"no"}'), ("", b"[DONE]")]
    assert events(said) == expected
    assert events(*(bytes([byte]) for byte in said)) == expected


def test_a_name_belongs_to_one_event() -> None:
    assert events(b"event: a\ndata: 1\n\ndata: 2\n\n") == [("a", b"1"), ("", b"2")]


def test_whole_events_are_read_the_same_as_cut_ones() -> None:
    first, rest = b"data: 0\n\n", b"event: a\ndata: 1\n\ndata: 2\n\n"
    assert events(first, rest) == [("", b"0"), ("a", b"1"), ("", b"2")]
    assert events(first, rest, b"event: a\n\n", b"data: x\ndata: y\n\n") == events(
        first + rest + b"event: a\n\ndata: x\ndata: y\n\n"
    )


def test_an_event_that_comes_alone_is_read_the_same() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: first\n\n") == [("", b"first")]
    assert decoder.feed(b"data: {}\n\n") == [("", b"{}")]
    assert decoder.feed(b"event: a\ndata: {}\n\n") == [("a", b"{}")]
    assert decoder.feed(b"event: a\r\ndata: {}\r\n\r\n") == [("a", b"{}")]
    assert decoder.feed(b"event: a\ndata: 1\n\n" * 2) == [("a", b"1")] * 2
    assert decoder.feed(b"data: a\ndata: b\n\n") == [("", b"a\nb")]


def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 10)
    with pytest.raises(UpstreamProtocolError):
        events(b"data: 12345678901")
    with pytest.raises(UpstreamProtocolError):
        events(b"data: 1234567\ndata: 1234567\n")
    with pytest.raises(UpstreamProtocolError):
        events(b"data: 1\n\n", b"data: 12345678901\n\n")


def test_a_frame_names_its_event() -> None:
    assert frame("ping", b'{"type": "ping"}') == b'event: ping\ndata: {"type": "ping"}\n\n'


PIECES = [b"data: x", b"data:y", b"data", b"event: e", b": c", b"\n", b"\n\n", b"\r\n", b"\r", b"id: 1", "é".encode()]


@given(st.lists(st.sampled_from(PIECES), max_size=14), st.lists(st.integers(0, 60), max_size=6))
def test_events_are_the_same_wherever_the_bytes_are_cut(pieces: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(pieces)
    edges = [0, *sorted({min(cut, len(stream)) for cut in cuts}), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    whole = events(*(bytes([byte]) for byte in stream))
    assert events(*chunks) == whole
    assert events(b":\n", stream) == whole


@pytest.mark.parametrize(
    ("name", "data", "idle"),
    [
        ("", b"", True),
        ("", b" ", True),
        ("", b": keepalive", True),
        ("", b": OPENROUTER PROCESSING", True),
        ("", b'""', True),
        ("", b"null", True),
        ("", b"[]", True),
        ("", b"Ping", True),
        ("heartbeat", b"12:00", True),
        ("Keep-Alive", b"1", True),
        ("ping", b'{"type":"ping"}', False),
        ("", b' {"a":1}', False),
        ("", b"[DONE]", False),
        ("", b"words", False),
        ("message", b"1", False),
    ],
)
def test_what_only_keeps_a_connection_alive(name: str, data: bytes, idle: bool) -> None:
    assert is_idle(name, data) is idle
