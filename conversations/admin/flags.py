"""What an operator should look at first, in plain words. Pure."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from conversations import wording
from conversations.admin.filters import STUCK
from conversations.admin.toolchain import LOOP, Index, repetitions, states
from conversations.models import ToolMapping, Turn

HEAVY = 50_000  # bytes of one result
FAILURES = 3


class Flag(Struct, frozen=True):
    colour: str
    title: str
    text: str
    turn: int = 0  # its number


def flags(
    turns: Sequence[Turn], mappings: Sequence[ToolMapping], digests: Mapping[str, bytes], index: Index, now: dt.datetime
) -> tuple[Flag, ...]:
    return (
        *_errors(turns, index),
        *_loops(mappings, digests, index),
        *_stuck(mappings, index, now),
        *_failing(mappings),
        *_heavy(mappings, index),
        *_repairs(turns, index),
        *_estimated(turns),
    )


def _errors(turns: Sequence[Turn], index: Index) -> list[Flag]:
    failed = [turn for turn in turns if turn.status == "error"]
    if not failed:
        return []
    last = failed[-1]
    text = f"The last one was answered with {last.error_type or 'an error'} by way of {last.upstream or 'the bridge'}."
    return [
        Flag("danger", f"{wording.many(len(failed), 'turn')} ended in an error", text, index.numbers.get(last.pk, 0))
    ]


def _loops(mappings: Sequence[ToolMapping], digests: Mapping[str, bytes], index: Index) -> list[Flag]:
    repeats = repetitions(mappings, digests)
    longest = max(mappings, key=lambda row: repeats[row.pk], default=None)
    if longest is None or repeats[longest.pk] < LOOP:
        return []
    text = (
        f"{longest.tool_name} was called {repeats[longest.pk]} times in a row with the same arguments and the same "
        "result. The model does not see, or does not believe, what it already has."
    )
    return [Flag("warning", "The chain goes in circles", text, index.numbers.get(longest.turn_id, 0))]


def _stuck(mappings: Sequence[ToolMapping], index: Index, now: dt.datetime) -> list[Flag]:
    status = states(mappings, index)
    waiting = [row for row in mappings if status[row.pk] == "pending" and now - row.created_at > STUCK]
    if not waiting:
        return []
    oldest = waiting[0]
    since = wording.ago(oldest.created_at, now)
    text = (
        f"The oldest is {oldest.tool_name}, called {since}. "
        "The client has not sent its result: it was closed, or is still at it."
    )
    title = f"{wording.many(len(waiting), 'call')} without a result"
    return [Flag("warning", title, text, index.numbers.get(oldest.turn_id, 0))]


def _failing(mappings: Sequence[ToolMapping]) -> list[Flag]:
    failures = Counter(row.tool_name for row in mappings if row.is_error)
    return [
        Flag("warning", f"{name} keeps failing", f"{count} of its calls were answered with an error.")
        for name, count in failures.most_common(2)
        if count >= FAILURES
    ]


def _heavy(mappings: Sequence[ToolMapping], index: Index) -> list[Flag]:
    largest = max(mappings, key=lambda row: row.result_size, default=None)
    if largest is None or largest.result_size < HEAVY:
        return []
    total = sum(row.result_size for row in mappings)
    sizes = f"{wording.size(largest.result_size)}, of {wording.size(total)} in all results"
    text = f"One result of {largest.tool_name} is {sizes}. It is sent again with every later turn."
    return [Flag("info", "A result fills the context", text, index.numbers.get(largest.turn_id, 0))]


def _repairs(turns: Sequence[Turn], index: Index) -> list[Flag]:
    noted = [turn for turn in turns if turn.note_count]
    if not noted:
        return []
    total = sum(turn.note_count for turn in noted)
    text = "What was repaired, substituted or changed by a policy is listed on each turn, with its rule."
    return [
        Flag(
            "info",
            f"{wording.many(total, 'note')} on {wording.many(len(noted), 'turn')}",
            text,
            index.numbers.get(noted[0].pk, 0),
        )
    ]


def _estimated(turns: Sequence[Turn]) -> list[Flag]:
    number = sum(turn.usage_estimated for turn in turns)
    if not number:
        return []
    text = "The upstream reported no usage, or the turn was cut off. Estimated figures are marked with ~."
    return [Flag("info", f"Tokens of {wording.many(number, 'turn')} are estimated", text)]
