"""Citations: from a decoder's event to the client's delta and the kept message."""

import msgspec
import pytest

from translation.accumulator import Accumulator
from translation.client.render import sse
from translation.errors import UpstreamProtocolError
from translation.events import Citation, Event, Finished, Frame, TextDelta, ToolEnded, ToolStarted
from translation.values import Usage
from translation.writer import BlockWriter

CITED = Citation(b'{"type":"web_search_result_location","url":"https://a.example"}')


def test_a_citation_is_a_delta_of_the_text_before_it_and_is_kept_with_it() -> None:
    writer, accumulator = BlockWriter(signature="s"), Accumulator()
    wire = writer.feed([TextDelta("sunny"), CITED, CITED, TextDelta(" today")])
    wire += writer.finish(Finished("stop"), Usage())
    accumulator.feed(wire)
    (block,) = msgspec.json.decode(accumulator.content)
    assert block["text"] == "sunny today"
    assert [citation["url"] for citation in block["citations"]] == ["https://a.example"] * 2
    assert b'"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location"' in sse(wire)


def test_a_citation_without_its_text_is_dropped_and_one_behind_a_call_waits() -> None:
    assert BlockWriter(signature="s").feed([CITED]) == []
    writer = BlockWriter(signature="s")
    events: list[Event] = [ToolStarted(0, "f", id="toolu_1"), TextDelta("sunny"), CITED]
    assert b"citations_delta" not in sse(writer.feed(events))
    assert b"citations_delta" in sse(writer.feed([ToolEnded(0, "{}")]))


def test_the_block_writer_passes_no_frames() -> None:
    with pytest.raises(UpstreamProtocolError):
        BlockWriter(signature="s").feed([Frame(b"event: ping\n\n")])
