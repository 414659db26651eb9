"""The rows that the tool calls of an answer have to leave before they may be shown."""

from collections.abc import Callable

from msgspec.structs import replace

from conversations import ids
from conversations.storable import storable, storable_id
from conversations.store.links import LinkRow
from translation.events import Event, ToolDropped, ToolEnded, ToolStarted
from translation.values import Link, Origin

CALLS: frozenset[type] = frozenset((ToolStarted, ToolEnded, ToolDropped))


def brought(events: list[Event], calls: dict[int, LinkRow], is_taken: Callable[[str], bool]) -> tuple[LinkRow, ...]:
    """What one upstream read brought or completed of `calls`; a call that starts gets its id here, unless its upstream
    has given it one that nobody has.
    """
    if CALLS.isdisjoint(map(type, events)):
        return ()
    rows = [
        _row(events, index, event, calls, is_taken)
        for index, event in enumerate(events)
        if isinstance(event, ToolStarted | ToolEnded | ToolDropped)
    ]
    # A call that starts and ends in one read is one row.
    fresh = {row.tool_use_id for row in rows if row.fresh}
    latest = {row.tool_use_id: row for row in rows}
    return tuple(replace(row, fresh=row.tool_use_id in fresh) for row in latest.values())


def renamed(
    tool_use_id: str, rows: tuple[LinkRow, ...], events: list[Event], calls: dict[int, LinkRow]
) -> tuple[LinkRow, ...]:
    """The same with an id of ours for the call that has this one."""
    new = ids.tool_use_id()
    for index, event in enumerate(events):
        if isinstance(event, ToolStarted) and event.id == tool_use_id:
            events[index] = replace(event, id=new)
    for ordinal, row in calls.items():
        if row.tool_use_id == tool_use_id:
            calls[ordinal] = replace(row, tool_use_id=new, given=False)
    return tuple(replace(row, tool_use_id=new, given=False) if row.tool_use_id == tool_use_id else row for row in rows)


def known(row: LinkRow, upstream: str, model: str, turn: int) -> Link:
    call = (row.tool_use_id, row.name, row.upstream_name, row.upstream_id, row.arguments)
    return Link(*call, Origin(upstream, model, row.state), turn_id=turn, ordinal=row.ordinal)


def _row(
    events: list[Event],
    index: int,
    event: ToolStarted | ToolEnded | ToolDropped,
    calls: dict[int, LinkRow],
    is_taken: Callable[[str], bool],
) -> LinkRow:
    match event:
        case ToolStarted():
            started = event
            if not event.id or is_taken(event.id) or any(row.tool_use_id == event.id for row in calls.values()):
                started = replace(event, id=ids.tool_use_id())
            events[index] = started
            names = (storable(started.name, 200), storable(started.upstream_name or started.name, 200))
            given = started is event
            row = LinkRow(started.id, *names, storable_id(started.upstream_id), started.call, given=given)
        case ToolEnded():
            done = {"arguments": event.arguments.encode(), "state": event.state, "status": "pending"}
            row = replace(calls[event.call], **done)
        case ToolDropped():
            row = replace(calls[event.call], status="truncated")
    calls[row.ordinal] = replace(row, fresh=False)
    return row
