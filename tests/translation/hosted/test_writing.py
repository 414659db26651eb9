"""One message out of several rounds: one numbering, one end."""

import json

from translation.accumulator import Accumulator, unfolded
from translation.adapter import RoundsWriter, Writer
from translation.adapters import writer
from translation.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Finished,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    TextDelta,
    ToolArguments,
    ToolDropped,
    ToolEnded,
    ToolStarted,
    WireEvent,
)
from translation.hosted import OWN, Offer, result_block
from translation.hosted_relay import HostedRelay
from translation.providers.profiles import PROFILES
from translation.relay import RelayWriter
from translation.values import Message, Request, Text, Usage
from translation.writer import BlockWriter

HOSTED = {"weather": Offer("weather", OWN, "weather")}
ASK = Request(model="m", messages=(Message("user", (Text("hi"),)),), max_tokens=10, stream=True)


def called(number: int, name: str) -> list[Event]:
    return [ToolStarted(number, name, id=f"id_{number}"), ToolEnded(number, '{"a":1}')]


def folded(wire: list[WireEvent]) -> list[dict[str, object]]:
    accumulator = Accumulator()
    accumulator.feed(wire)
    blocks: list[dict[str, object]] = json.loads(accumulator.content)
    return blocks


def test_rounds_are_one_message_of_blocks() -> None:
    one = BlockWriter(signature="s", hosted=HOSTED)
    wire = one.feed([*called(0, "weather"), TextDelta("wait")])
    wire += one.next_round()
    wire += one.add(result_block("id_0", "sunny", is_error=False))
    wire += one.next_round()
    wire += one.feed([TextDelta("It is sunny.")])
    wire += one.finish(Finished("stop"), Usage())
    starts = [event.index for event in wire if isinstance(event, BlockStart)]
    assert starts == [0, 1, 2, 3]
    assert [event.index for event in wire if isinstance(event, BlockStop)] == starts
    blocks = folded(wire)
    assert [block["type"] for block in blocks] == ["mcp_tool_use", "text", "mcp_tool_result", "text"]
    assert blocks[0]["input"] == {"a": 1}
    assert wire[-2:] == [MessageDelta("end_turn", Usage()), MessageStop()]


def test_only_the_clients_own_calls_make_it_the_clients_turn() -> None:
    one = BlockWriter(signature="s", hosted=HOSTED)
    one.feed([*called(0, "weather"), *called(1, "own")])
    (delta, _) = one.finish(Finished("tool_use"), Usage())
    assert isinstance(delta, MessageDelta)
    assert delta.stop_reason == "tool_use"


def test_call_that_failed_unseen_leaves_nothing() -> None:
    one = BlockWriter(signature="s", hosted=HOSTED, live=False)
    assert one.feed([ToolStarted(0, "weather", id="id_0")]) == []
    assert one.next_round() == []
    assert folded(one.feed([TextDelta("again")])) == [{"type": "text", "text": "again"}]


def test_stored_calls_of_hosted_tools_are_streamed_again_with_their_input() -> None:
    block = b'{"type":"mcp_tool_use","id":"a","name":"n","server_name":"s","input":{"a":1}}'
    assert unfolded(b"[" + block + b"]") == [BlockStart(0, block), BlockStop(0)]


def test_hosted_call_is_shown_when_it_is_complete() -> None:
    """In one piece: Claude Code gives a stream up that has deltas for it."""
    one = BlockWriter(signature="s", hosted=HOSTED, eager=frozenset({"weather"}))
    assert one.feed([ToolStarted(0, "weather", id="id_0"), ToolArguments(0, '{"a"'), TextDelta("and")]) == []
    start, stop, *_ = one.feed([ToolArguments(0, ":1}"), ToolEnded(0, '{"a":1}')])
    assert isinstance(start, BlockStart)
    assert (json.loads(start.block)["input"], stop) == ({"a": 1}, BlockStop(0))
    one.feed([ToolStarted(1, "weather", id="id_1")])
    assert one.feed([ToolDropped(1)]) == []


def test_writer_fits_the_upstream_and_the_tools() -> None:
    plain: Writer = writer(PROFILES["anthropic"], ASK, "msg_1")
    assert isinstance(plain, RelayWriter)
    assert not isinstance(plain, RoundsWriter)
    assert isinstance(writer(PROFILES["anthropic"], ASK, "msg_1", HOSTED), HostedRelay)
    assert isinstance(writer(PROFILES["openai"], ASK, "msg_1", HOSTED), RoundsWriter)


def frame(event: BlockStart | BlockDelta | BlockStop | MessageStart) -> Frame:
    return Frame(b"raw", event)


def test_anthropics_answers_become_one_message() -> None:
    relay = HostedRelay(HOSTED)
    assert relay.start("msg_1", "m", Usage()) == MessageStart("msg_1", "m", Usage())
    tool = b'{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}'
    wire = relay.feed(
        [
            frame(MessageStart("msg_up", "m", Usage())),
            Frame(b"ping"),
            frame(BlockStart(0, b'{"type":"thinking","thinking":"","signature":""}')),
            frame(BlockDelta(0, "signature_delta", "sig")),
            frame(BlockStop(0)),
            ToolStarted(0, "weather", id="toolu_1"),
            frame(BlockStart(1, tool)),
            frame(BlockDelta(1, "input_json_delta", '{"a"')),
            frame(BlockDelta(1, "input_json_delta", ":1}")),
            frame(BlockStop(1)),
        ]
    )
    wire += relay.next_round()
    wire += relay.add(result_block("toolu_1", "sunny", is_error=False))
    wire += relay.feed(
        [frame(BlockStart(0, b'{"type":"tool_use","id":"t","name":"own","input":{}}')), frame(BlockStop(0))]
    )
    wire += relay.finish(Finished("tool_use"), Usage())
    assert [event.index for event in wire if isinstance(event, BlockStart)] == [0, 1, 2, 3]
    blocks = folded(wire)
    assert [block["type"] for block in blocks] == ["thinking", "mcp_tool_use", "mcp_tool_result", "tool_use"]
    assert (blocks[0]["signature"], blocks[1]["id"], blocks[1]["input"]) == ("sig", "toolu_1", {"a": 1})
    assert not [event for event in wire if isinstance(event, BlockDelta) and event.kind == "input_json_delta"]
    assert wire[-2] == MessageDelta("tool_use", Usage())


def test_a_call_whose_id_another_one_has_is_shown_under_its_own() -> None:
    relay = HostedRelay(HOSTED)
    tool = b'{"type":"tool_use","id":"toolu_1","name":"%b","input":{}}'
    wire = relay.feed(
        [
            ToolStarted(0, "weather", id="toolu_a", upstream_id="toolu_1"),
            frame(BlockStart(0, tool % b"weather")),
            frame(BlockStop(0)),
            ToolStarted(1, "theirs", id="toolu_b", upstream_id="toolu_1"),
            frame(BlockStart(1, tool % b"theirs")),
            frame(BlockStop(1)),
        ]
    )
    ids = [json.loads(event.block)["id"] for event in wire if isinstance(event, BlockStart)]
    assert ids == ["toolu_a", "toolu_b"]
