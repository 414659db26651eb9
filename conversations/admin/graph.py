"""The tool chain as a picture: a column for each turn, a lane for each tool, a bar for each call. Pure geometry."""

import math
from collections.abc import Sequence

from msgspec import Struct

from conversations import wording
from conversations.admin.status import TOOL_COLOURS, TURN_COLOURS
from conversations.admin.toolchain import Index
from conversations.models import ToolMapping, Turn

LANES = 14
COLUMN, LANE, TOP, LEFT = 16, 26, 8, 150
LEAST, MOST = 4, 20  # height of a bar, by the logarithm of its time


class Bar(Struct, frozen=True):
    x: int
    y: int
    width: int
    height: int
    colour: str
    title: str
    turn: int


class Lane(Struct, frozen=True):
    name: str
    y: int
    calls: int


class Graph(Struct, frozen=True):
    width: int
    height: int
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]


def graph(turns: Sequence[Turn], mappings: Sequence[ToolMapping], index: Index) -> Graph:
    names = list(dict.fromkeys(row.tool_name for row in mappings))
    shown = names[: LANES - 1] if len(names) > LANES else names
    order = {name: number for number, name in enumerate(shown, 1)}
    rest = len(shown) + 1
    bars = [_turn_bar(turn, index) for turn in turns]
    taken: dict[tuple[int, int], int] = {}
    for row in mappings:
        lane, number = order.get(row.tool_name, rest), index.numbers.get(row.turn_id, 0)
        nth = taken[number, lane] = taken.get((number, lane), -1) + 1
        bars.append(_call_bar(row, number, lane, min(nth, 3)))
    lanes = [Lane("model", _middle(0), len(turns))]
    lanes += [Lane(name, _middle(order[name]), sum(row.tool_name == name for row in mappings)) for name in shown]
    if len(names) > len(shown):
        lanes.append(Lane("other tools", _middle(rest), sum(row.tool_name not in order for row in mappings)))
    return Graph(LEFT + COLUMN * len(index.numbers) + 8, TOP * 2 + LANE * len(lanes), tuple(lanes), tuple(bars))


def _middle(lane: int) -> int:
    return TOP + LANE * lane + LANE // 2


def _height(milliseconds: float) -> int:
    if milliseconds <= 0:
        return LEAST
    return min(MOST, LEAST + int(4 * math.log10(1 + milliseconds)))


def _turn_bar(turn: Turn, index: Index) -> Bar:
    number, height = index.numbers.get(turn.pk, 0), _height(turn.duration_ms)
    title = f"Turn {number}: {turn.status}, {wording.milliseconds(turn.duration_ms)}"
    x = LEFT + COLUMN * (number - 1) + 3
    return Bar(x, _middle(0) - height // 2, COLUMN - 6, height, TURN_COLOURS.get(turn.status, ""), title, number)


def _call_bar(row: ToolMapping, number: int, lane: int, nth: int) -> Bar:
    """Parallel calls of one tool stand side by side in their turn's column."""
    latency = (row.answered_at - row.created_at).total_seconds() * 1_000 if row.answered_at else 0.0
    height = _height(latency)
    title = f"Turn {number}: {row.tool_name} {row.status}, {wording.milliseconds(latency)}"
    x = LEFT + COLUMN * (number - 1) + 2 + nth * 3
    return Bar(x, _middle(lane) - height // 2, 10 - 2 * nth, height, TOOL_COLOURS.get(row.status, ""), title, number)
