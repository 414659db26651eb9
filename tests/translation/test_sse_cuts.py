"""Server-sent events, whatever the cuts and line ends."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translation import sse
from translation.errors import UpstreamProtocolError
from translation.sse import SSEDecoder, frame

Events = list[tuple[str, bytes]]

STREAM = (
    ": a comment\n\n"
    'event: one\ndata: {"text":"h\u00e9 \u2028 \u2029 \U0001f600"}\n\n'
    "data:no space\ndata:  two spaces\ndata\nid: 7\nretry: 5\n\n"
    "event: nothing\n\n"
    "event:bare\ndata: [DONE]\n\n"
    "data: last"
).encode()
EVENTS: Events = [
    ("one", '{"text":"h\u00e9 \u2028 \u2029 \U0001f600"}'.encode()),
    ("", b"no space\n two spaces\n"),
    ("bare", b"[DONE]"),
    ("", b"last"),
]


def decode(chunks: list[bytes]) -> Events:
    decoder = SSEDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.close()


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_stream_is_the_same_at_every_cut_with_every_line_end(end: bytes, mark: bytes) -> None:
    stream = mark + STREAM.replace(b"\n", end)
    assert decode([stream]) == EVENTS
    assert decode([stream[at : at + 1] for at in range(len(stream))]) == EVENTS
    for cut in range(len(stream) + 1):
        assert decode([stream[:cut], stream[cut:]]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_stream_is_the_same_at_random_cuts(cuts: list[int]) -> None:
    points = [0, *sorted(cuts), len(STREAM)]
    assert decode([STREAM[start:end] for start, end in itertools.pairwise(points)]) == EVENTS


def test_mixed_line_ends() -> None:
    assert decode([b"data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\r"]) == [("", b"a\nb\nc"), ("", b"d")]


def test_byte_order_mark_counts_only_at_the_start() -> None:
    assert decode([b"data: a\n\n\xef\xbb\xbfdata: b\n\n"]) == [("", b"a")]
    assert decode([b"\xef\xbb"]) == []


def test_trailing_return_waits_for_the_next_chunk() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: a\r") == []
    assert decoder.feed(b"\n\r") == []
    assert decoder.feed(b"\ndata: b") == [("", b"a")]
    assert decoder.close() == [("", b"b")]
    assert decoder.close() == []


@pytest.mark.parametrize(
    "chunk",
    [b"data: " + b"x" * 40, b"data: " + b"x" * 100 + b"\n", b"data: xxxxxxxxx\n" * 4, b"data:\n" * 40, b"data\n" * 40],
)
def test_event_without_bound_is_refused(monkeypatch: pytest.MonkeyPatch, chunk: bytes) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 32)
    with pytest.raises(UpstreamProtocolError, match="one event of more than 32 bytes"):
        decode([chunk])


def test_many_small_events_are_not_one_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 32)
    assert len(decode([b"data: xxxxxxxxx\n\n" * 50])) == 50


def test_frame_reads_back() -> None:
    assert frame("ping", b"{}") == b"event: ping\ndata: {}\n\n"
    assert decode([frame("ping", b"{}")]) == [("ping", b"{}")]
