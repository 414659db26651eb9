"""What a turn used, as lines of the ledger: one for each attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from conversations.storable import storable
from conversations.store.usage import UsageRow
from conversations.store.writes import CloseTurn
from translation.values import Usage

if TYPE_CHECKING:
    from conversations.stored_turn import StoredTurn

MOST_TOKENS = 1_000_000_000
TOKEN_FIGURES = ("input_tokens", "output_tokens", "cache_read", "cache_write", "thinking_tokens")


def used(row: CloseTurn) -> tuple[int, int]:
    """Tokens of all kinds and millionths of a dollar, of all attempts."""
    tokens = sum(entry.input_tokens + entry.output_tokens + entry.cache_read + entry.cache_write for entry in row.usage)
    return tokens, sum(entry.cost_micros for entry in row.usage)


def entries(turn: StoredTurn, status: str, returned: str) -> tuple[UsageRow, ...]:
    """Of all its attempts, once it has ended. If none brought an answer, every one has its entry already."""
    failed, calls, timings = turn.entries, len(turn.calls), turn.timings
    if failed:
        if len(failed) == len(turn.attempts):
            return tuple(failed)
        calls -= sum([entry.tool_count for entry in failed])
    last = _entry(turn, turn.usage, status, len(failed) + 1, timings.duration, timings.first_token, returned, calls)
    return (*failed, last)


def round_entry(turn: StoredTurn, returned: str) -> UsageRow:
    """Of a call that the answer went on after."""
    attempts = turn.attempts
    calls = len(turn.calls) - sum(entry.tool_count for entry in turn.entries)
    return _entry(turn, turn.usage, "complete", len(attempts), attempts[-1].ms, 0.0, returned, calls)


def failed_entry(turn: StoredTurn, elapsed: float) -> UsageRow:
    """Of an attempt that brought nothing to show."""
    return _entry(turn, turn.estimate(), "error", len(turn.attempts), elapsed)


def _entry(  # noqa: PLR0913, PLR0917 - a row has that many columns
    turn: StoredTurn,
    usage: Usage,
    status: str,
    attempt: int,
    duration: float,
    first_token: float = 0.0,
    returned: str = "",
    calls: int = 0,
) -> UsageRow:
    target = turn.errand.prepared.aimed.route.target
    return UsageRow(
        attempt=attempt,
        upstream=target.upstream,
        model=target.model[:200],
        status=status,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        thinking_tokens=usage.thinking_tokens,
        estimated=usage.estimated,
        cost_micros=turn.bridge.prices.cost(target.upstream, target.model, usage),
        returned_model=storable(returned, 200) if returned else "",
        tool_count=calls,
        duration_ms=duration,
        first_token_ms=first_token,
    )


def countable(usage: Usage) -> Usage:
    """An upstream's figures as a column takes them: some report less than nothing, some nonsense."""
    given = (usage.input_tokens, usage.output_tokens, usage.cache_read, usage.cache_write, usage.thinking_tokens)
    if min(given) >= 0 and max(given) <= MOST_TOKENS:
        return usage
    figures = dict(zip(TOKEN_FIGURES, given, strict=True))
    wrong = {name: figure for name, figure in figures.items() if not 0 <= figure <= MOST_TOKENS}
    return replace(usage, **{name: min(max(figure, 0), MOST_TOKENS) for name, figure in wrong.items()})
