"""The tool chain as a picture: a column for each turn, a lane for each tool, a bar for each call. Pure geometry."""

import math
from collections.abc import Sequence

from msgspec import Struct

from conversations import wording
from conversations.admin.toolchain import Index, states
from conversations.models import ToolMapping, Turn
from conversations.wording import TOOL_COLOURS, TURN_COLOURS

LANES = 14
COLUMN, LANE, TOP, LEFT = 16, 26, 8, 150
WIDTH, WIDEST = 840, 72  # few turns have wide columns, as far as a window goes
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
    column = max(COLUMN, min(WIDEST, WIDTH // max(len(index.numbers), 1)))
    status = states(mappings, index)
    bars = [_turn_bar(turn, index, column) for turn in turns]
    taken: dict[tuple[int, int], int] = {}
    for row in mappings:
        lane, number = order.get(row.tool_name, rest), index.numbers.get(row.turn_id, 0)
        nth = taken[number, lane] = taken.get((number, lane), -1) + 1
        bars.append(_call_bar(row, status[row.pk], number, lane, min(nth, 3), column))
    lanes = [Lane("model", _middle(0), len(turns))]
    lanes += [Lane(name, _middle(order[name]), sum(row.tool_name == name for row in mappings)) for name in shown]
    if len(names) > len(shown):
        lanes.append(Lane("other tools", _middle(rest), sum(row.tool_name not in order for row in mappings)))
    return Graph(LEFT + column * len(index.numbers) + 8, TOP * 2 + LANE * len(lanes), tuple(lanes), tuple(bars))


def _middle(lane: int) -> int:
    return TOP + LANE * lane + LANE // 2


def _height(milliseconds: float) -> int:
    if milliseconds <= 0:
        return LEAST
    return min(MOST, LEAST + int(4 * math.log10(1 + milliseconds)))


def _turn_bar(turn: Turn, index: Index, column: int) -> Bar:
    number, height = index.numbers.get(turn.pk, 0), _height(turn.duration_ms)
    title = f"Turn {number}: {turn.status}, {wording.milliseconds(turn.duration_ms)}"
    x = LEFT + column * (number - 1) + 3
    return Bar(x, _middle(0) - height // 2, column - 6, height, TURN_COLOURS.get(turn.status, ""), title, number)


def _call_bar(row: ToolMapping, status: str, number: int, lane: int, nth: int, column: int) -> Bar:
    """Parallel calls of one tool stand side by side in their turn's column."""
    latency = (row.answered_at - row.created_at).total_seconds() * 1_000 if row.answered_at else 0.0
    height, step = _height(latency), (column - 4) // 4
    title = f"Turn {number}: {row.tool_name} {status}, {wording.milliseconds(latency)}"
    x = LEFT + column * (number - 1) + 2 + nth * step
    return Bar(x, _middle(lane) - height // 2, max(step - 1, 2), height, TOOL_COLOURS.get(status, ""), title, number)
