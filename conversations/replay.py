"""A stored turn, run again: byte for byte, or made ready for another target.

Nothing of it enters the conversation, no tool is run, no limit of the client's key is touched. `plan` reads the store,
`run` calls the upstream, `keep` stores what came back.
"""

import asyncio
import time
from typing import Any

import msgspec
import zstandard
from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone
from msgspec import Struct
from msgspec.structs import replace

from conversations import conf, ids, parameters
from conversations.attempt import Attempt
from conversations.demo import DemoServer
from conversations.estimates import Estimates, weight
from conversations.ledger import Prices
from conversations.models import Conversation, Replay, Turn, UsageEntry
from conversations.preparing import aim
from conversations.routing import Route, Router
from conversations.storable import storable
from conversations.store import accounts, reads
from conversations.store.packing import unpacked
from conversations.store.page import PageDatabase
from conversations.store.routes import configuration
from conversations.upstream import Upstreams
from translation.adapter import UpstreamRequest
from translation.client.parse import parse_system
from translation.client.stored import parse_message
from translation.client.tools import tools as parse_tools
from translation.errors import BridgeError, InvalidRequest, UpstreamTimeout
from translation.events import Event, Failed, Finished, MessageStart, ToolStarted
from translation.state import Snapshot, hydrate, wanted
from translation.values import Note, Request, Tool, ToolChoice, Usage

SECONDS = 300.0  # a replay takes at most
REPLAY = "replay"  # the status of its entry in the ledger
NOWHERE = "http://demo.invalid/v1"


class SentMeta(Struct, frozen=True):
    path: str = ""
    headers: dict[str, str] = {}
    stream: bool = False


class Plan(Struct, frozen=True):
    """What will be sent, and where."""

    exact: bool
    route: Route
    request: Request
    sent: UpstreamRequest
    notes: tuple[Note, ...] = ()
    number: int = 0  # of a later round


class Expected(Struct, frozen=True):
    """What a replay will cost: with an answer as long as the turn's, and with the longest that it may get."""

    input_tokens: int
    output_tokens: int
    most_tokens: int
    micros: int
    most_micros: int


class Means(Struct, frozen=True):
    """What a replay runs with: the web process's own, or made for one command."""

    router: Router
    upstreams: Upstreams
    prices: Prices
    estimates: Estimates


class Outcome(Struct):
    """What became of it."""

    error: BridgeError | None = None
    raw: bytes = b""
    content: bytes = b"[]"
    stop_reason: str = ""
    usage: Usage = Usage()
    first_byte: float = 0.0
    first_token: float = 0.0
    duration: float = 0.0


# ------------------------------------------------------------ what to send


def plan(turn: Turn, router: Router, target: str = "", number: int = 0) -> Plan:
    """Raises an InvalidRequest that says why a turn cannot be run again. `number` is a later round, as it was sent."""
    if target and number:
        raise InvalidRequest("a later round can only be run as it was sent: it follows from the rounds before it")
    if target:
        aimed = aim(_hydrated(turn), router.resolve(target))
        return Plan(exact=False, route=aimed.route, request=aimed.request, sent=aimed.sent, notes=aimed.notes)
    body = _round(turn, number) if number else reads.sent(PageDatabase(), turn.pk)
    if not body:
        raise InvalidRequest("what was sent is not stored: the API key keeps less, or the text was purged")
    meta = msgspec.json.decode(bytes(turn.sent_meta), type=SentMeta)
    # The request only tells the decoder what was asked: which tools, renamed to what.
    aimed = aim(_hydrated(turn), router.exactly(turn.upstream, turn.resolved_model))
    sent = replace(aimed.sent, path=meta.path, body=body, stream=meta.stream, headers=tuple(meta.headers.items()))
    return Plan(exact=True, route=aimed.route, request=aimed.request, sent=sent, number=number)


def _round(turn: Turn, number: int) -> bytes:
    """Each is kept by what it adds to the one before."""
    body = reads.sent(PageDatabase(), turn.pk)
    rows = list(turn.rounds.filter(number__lte=number).order_by("number"))
    if not body or not rows or rows[-1].number != number:
        return b""
    for row in rows:
        body = body[: row.sent_prefix] + unpacked(bytes(row.sent_tail))
    return body


def _hydrated(turn: Turn) -> Request:
    """The request as it was received, with what the store knows about it."""
    db, conversation = PageDatabase(), turn.conversation_id
    stored = reads.path(db, conversation, bytes(turn.head_hash)) if turn.head_hash else []
    if not stored or any(_is_outline(item.content) for item in stored):
        raise InvalidRequest("what was received is not stored: the API key keeps less, or the text was purged")
    hashes = tuple(item.chain_hash for item in stored)
    request = _request(turn, db, stored)
    asked = wanted(request, hashes)
    known = reads.known(db, conversation, asked.tool_use_ids, asked.hashes)
    return hydrate(request, hashes, Snapshot(known.links, known.turns, known.origins))


def _request(turn: Turn, db: PageDatabase, stored: list[reads.Stored]) -> Request:
    kept = parameters.load(bytes(turn.params))
    system, tools = (
        reads.blob(db, turn.conversation_id, bytes(digest)) if digest else b""
        for digest in (turn.system_digest, turn.tools_digest)
    )
    offered = parse_tools(msgspec.Raw(tools), kept.betas) if tools else ()
    return Request(
        model=turn.requested_model,
        messages=tuple(parse_message(item.role, item.content) for item in stored),
        max_tokens=kept.max_tokens,
        system=parse_system(msgspec.Raw(system)) if system else (),
        tools=offered,
        tool_choice=_choice(kept.tool_choice, offered),
        stream=turn.stream,
        temperature=kept.temperature,
        top_p=kept.top_p,
        top_k=kept.top_k,
        stop_sequences=kept.stop_sequences,
        thinking=kept.thinking,
        effort=kept.effort,
        output_schema=bytes(kept.output_schema),
        version=kept.version,
        betas=kept.betas,
        open_ended=kept.open_ended,
        extras=bytes(kept.extras),
        raw_system=system,
        raw_tools=tools,
    )


def _choice(choice: ToolChoice | None, offered: tuple[Tool, ...]) -> ToolChoice | None:
    """None for a tool that the bridge runs: a replay offers the client's own."""
    if choice is None or not choice.name or any(t.name == choice.name or "toolset" in t.type for t in offered):
        return choice
    return None


def _is_outline(content: bytes) -> bool:
    """Below full storage a block is its kind and its size."""
    return any(set(block) == {"type", "size"} for block in msgspec.json.decode(content))


def expected(planned: Plan, turn: Turn, means: Means) -> Expected:
    target = planned.route.target
    read, likely = _used(turn, planned.number)
    if not planned.exact or not read:
        read = means.estimates.prompt(target.upstream, target.model, weight(planned.sent.body))
    most = max(planned.request.max_tokens, likely)
    micros, most_micros = (
        means.prices.cost(target.upstream, target.model, Usage(input_tokens=read, output_tokens=tokens))
        for tokens in (likely, most)
    )
    return Expected(read, likely, most, micros, most_micros)


def _used(turn: Turn, number: int) -> tuple[int, int]:
    """What the call that is run again read and wrote: a turn with rounds adds all of them up."""
    call: Turn | UsageEntry | None = turn
    if turn.rounds.exists():
        calls = UsageEntry.objects.filter(request_id=turn.request_id, status="complete").order_by("attempt", "pk")
        call = calls[max(number - 1, 0) :].first()
    return (call.input_tokens + call.cache_read + call.cache_write, call.output_tokens) if call else (0, 0)


# ------------------------------------------------------------ the call


async def run(planned: Plan, means: Means) -> Outcome:
    target = planned.route.target
    start = MessageStart(ids.message_id(), planned.request.model, Usage())
    attempt = Attempt(planned.route, planned.request, planned.sent, start)
    outcome, started = Outcome(), time.perf_counter()
    try:
        async with asyncio.timeout(SECONDS):
            await _read(attempt, means, outcome, started)
    except BridgeError as error:
        outcome.error = error
    except TimeoutError:
        outcome.error = UpstreamTimeout(f"the answer was not complete after {SECONDS:.0f} seconds")
    finally:
        attempt.close()
    outcome.duration = _since(started)
    outcome.raw, outcome.content = b"".join(attempt.raw), attempt.accumulator.content
    outcome.stop_reason = attempt.accumulator.stop_reason or ""
    if outcome.usage == Usage() and 200 <= attempt.status < 300:
        answered = len(outcome.content)
        outcome.usage = means.estimates.usage(target.upstream, target.model, weight(planned.sent.body), answered)
    return outcome


async def _read(attempt: Attempt, means: Means, outcome: Outcome, started: float) -> None:
    await attempt.send(means.upstreams)
    outcome.first_byte = _since(started)
    while True:
        events = [_named(event) for event in await attempt.events()]
        if events:
            outcome.first_token = outcome.first_token or _since(started)
            attempt.write(events)
        match events[-1:]:
            case [Finished() as finished]:
                outcome.usage = finished.usage or Usage()
                attempt.finish(finished, outcome.usage)
                return
            case [Failed(error=error)]:
                raise error


def _named(event: Event) -> Event:
    """A call gets an id, as everywhere; nobody will ever answer it."""
    return replace(event, id=ids.tool_use_id()) if isinstance(event, ToolStarted) and not event.id else event


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


# ------------------------------------------------------------ what is kept of it


def begin(turn: Turn, planned: Plan, who: str) -> Replay:
    return Replay.objects.create(
        conversation_id=turn.conversation_id,
        turn=turn,
        target=planned.route.name[:265],
        exact=planned.exact,
        who=who[:150],
        sent=b"" if planned.exact and not planned.number else zstandard.compress(planned.sent.body),
        round_number=planned.number,
        notes=msgspec.json.encode(planned.notes),
    )


def keep(row: Replay, outcome: Outcome, prices: Prices) -> None:
    """If it still has its conversation."""
    upstream, _, model = row.target.partition("/")
    error, usage = outcome.error, outcome.usage
    columns: dict[str, Any] = {
        "status": "error" if error else "complete",
        "answer": zstandard.compress(outcome.raw),
        "content": outcome.content,
        "stop_reason": outcome.stop_reason[:32],
        "error_type": error.type if error else "",
        "error_message": storable(error.message, 2000) if error else "",
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "thinking_tokens": usage.thinking_tokens,
        "usage_estimated": usage.estimated,
        "cost_micros": prices.cost(upstream, model, usage),
        "first_byte_ms": outcome.first_byte,
        "first_token_ms": outcome.first_token,
        "duration_ms": outcome.duration,
    }
    Replay.objects.filter(pk=row.pk).update(**columns)
    _charge(row, columns)


def _charge(row: Replay, columns: dict[str, Any]) -> None:
    """The ledger has what was paid for; as a replay, so that it counts for no budget of the key."""
    turn = Turn.objects.filter(pk=row.turn_id).only("api_key", "request_id", "requested_model").first()
    owner = Conversation.objects.filter(pk=row.conversation_id).values_list("external_id", flat=True).first()
    if turn is None or owner is None:
        return
    upstream, _, model = row.target.partition("/")
    used = ("input_tokens", "output_tokens", "cache_read", "cache_write", "thinking_tokens", "cost_micros",
            "duration_ms", "first_token_ms")  # fmt: skip
    UsageEntry.objects.create(
        api_key_id=turn.api_key_id, conversation_id=owner, request_id=turn.request_id, created_at=timezone.now(),
        requested_model=turn.requested_model, upstream=upstream[:64], model=model[:200], status=REPLAY,
        attempt=0, estimated=columns["usage_estimated"], **{name: columns[name] for name in used},
    )  # fmt: skip


async def run_and_keep(row: Replay, planned: Plan, means: Means) -> None:
    outcome = await run(planned, means)
    await sync_to_async(keep)(row, outcome, means.prices)


# ------------------------------------------------------------ without a web process


def means(demo_url: str = NOWHERE) -> Means:
    """Of the same configuration as every web process's."""
    settings, db = conf.current(), PageDatabase()
    router = Router(settings, demo_url)
    router.load(configuration(db))
    return Means(router, Upstreams(settings.upstream_idle_seconds), Prices(accounts.prices(db)), Estimates())


def run_alone(turn: Turn, target: str, who: str, number: int = 0) -> Replay:
    """From a command: the whole of it, with an event loop and a demo upstream of its own."""
    return async_to_sync(_alone)(turn, target, who, number)


async def _alone(turn: Turn, target: str, who: str, number: int) -> Replay:
    demo = DemoServer()
    await demo.start()
    own = await sync_to_async(means)(demo.url)
    try:
        planned = await sync_to_async(plan)(turn, own.router, target, number)
        row = await sync_to_async(begin)(turn, planned, who)
        await run_and_keep(row, planned, own)
        await row.arefresh_from_db()
        return row
    finally:
        await own.upstreams.close()
        own.estimates.tokenizer.stop()
        await demo.stop()
