"""What a turn does, in log lines with the tags that operators know. At DEBUG, but for what is refused; ask `on` once
per step.

Text is shown of keys that store it, cut short, and never with a secret in it (`redaction`).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from conversations.redaction import redact
from conversations.storable import storable
from translation.errors import BridgeError, InvalidRequest, UpstreamFault
from translation.values import ToolResult

if TYPE_CHECKING:
    from conversations.ask import Ask
    from conversations.preparing import Prepared
    from conversations.store.writes import CloseTurn
    from conversations.stored_turn import StoredTurn

log = logging.getLogger(__name__)

PREVIEW = 400
LOOKED_AT = 8_000  # a secret at the end of what is looked at would be cut, and not be known for one
LISTED = 50


on = partial(log.isEnabledFor, logging.DEBUG)


def opened(ask: Ask, prepared: Prepared) -> None:
    request, target = ask.request, prepared.route.target
    _tell("anthropic.raw", ask, model=request.model, stream=request.stream, preview=_preview(ask, request.body))
    rules = [f"{note.kind}:{note.rule}" for note in prepared.notes[:LISTED]]
    sizes = {"messages": len(prepared.request.messages), "tools": len(prepared.request.tools)}
    _tell("anthropic.normalize", ask, conversation=prepared.conversation.row.external_id, **sizes, rules=rules)
    shapes = [f"{message.role}({','.join(_kinds(message.blocks))})" for message in request.messages[-LISTED:]]
    _tell("anthropic.messages", ask, target=f"{target.upstream}/{target.model}", shapes=shapes)
    for message in request.messages[-1:]:
        for block in message.blocks:
            if isinstance(block, ToolResult):
                _tell("tool_result", ask, tool_use_id=block.tool_use_id, is_error=block.is_error)


def calling(turn: StoredTurn) -> None:
    sent, target = turn.prepared.sent, turn.prepared.route.target
    where = {"upstream": target.upstream, "model": target.model, "path": sent.path.partition("?")[0]}
    _tell(_bridge(turn), turn.ask, **where, bytes=len(sent.body), preview=_preview(turn.ask, sent.body))


def closed(turn: StoredTurn, row: CloseTurn) -> None:
    answer = {"status": row.status, "http": turn.attempt.status, "attempts": len(row.usage)}
    _tell(_bridge(turn), turn.ask, **answer, tool_calls=len(turn.calls), error=row.error_message[:PREVIEW])
    for call in turn.calls.values():
        _tell("tool_use", turn.ask, tool_use_id=call.tool_use_id, name=call.name, bytes=len(call.arguments))
    used = row.usage[-1]
    tokens = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens, "cost_micros": used.cost_micros}
    times = {"state_ms": turn.timings.state, "first_token_ms": row.first_token_ms, "duration_ms": row.duration_ms}
    _tell("state.turn", turn.ask, turn=turn.id, **tokens, **times)


def refused(request_id: str, error: BridgeError) -> None:
    """What never becomes a turn is stored nowhere. Of a wrong body only the place is told: the rest may quote it, as an
    upstream's words (of embeddings) may."""
    said = " ".join(storable(error.message, PREVIEW).split())
    what = said.partition(": ")[0] if isinstance(error, InvalidRequest) else said
    what = type(error).__name__ if isinstance(error, UpstreamFault) else what
    told = {"request_id": request_id, "status": error.status, "error": error.type, "what": what}
    log.info("refused", extra={"fields": told})


def _bridge(turn: StoredTurn) -> str:
    return "openai.bridge(stream)" if turn.prepared.sent.stream else "openai.bridge"


def _kinds(blocks: tuple[object, ...]) -> list[str]:
    return [type(block).__name__ for block in blocks[:LISTED]]


def _preview(ask: Ask, body: bytes) -> str:
    if ask.key.storage != "full":
        return f"{len(body)} bytes"
    return redact(body[:LOOKED_AT].decode("utf-8", "replace"))[:PREVIEW]


def _tell(tag: str, ask: Ask, **fields: object) -> None:
    log.debug(tag, extra={"fields": {"request_id": ask.request_id, **fields}})
