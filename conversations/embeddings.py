"""Embeddings: passed on to the upstream that the model routes to. No conversation; the ledger counts them."""

import asyncio
import time

from msgspec.structs import replace

from conversations import records
from conversations.bridge import Bridge
from conversations.course import Course
from conversations.estimates import weight
from conversations.limits import Admission
from conversations.redaction import scrub
from conversations.routing import Route
from conversations.store.accounts import KeyRow
from conversations.store.usage import RecordUsage, UsageRow
from conversations.upstream import Answer, Upstream, misconfigured
from translation.adapter import UpstreamRequest
from translation.errors import BridgeError, InvalidRequest, UpstreamFault
from translation.openai_client import embeddings
from translation.refusals import refusal
from translation.values import Usage

ANSWER_LIMIT = 64 * 1024 * 1024


async def create(bridge: Bridge, key: KeyRow, body: bytes, request_id: str) -> bytes:
    asked = embeddings.parse(body)
    admission = await bridge.limits.admit(key, asked.model, request_id) if key.limits is not None else None
    entries: list[UsageRow] = []
    try:
        route = bridge.router.resolve(asked.model)
        return await _tried(bridge, route, asked, entries)
    finally:
        record = RecordUsage(key.id, request_id, records.now(), asked.model[:200], tuple(entries))
        bridge.track(_recorded(bridge, record, admission))


async def _tried(bridge: Bridge, route: Route, asked: embeddings.Asked, entries: list[UsageRow]) -> bytes:
    course = Course(bridge.settings.retries, bridge.upstreams.health)
    while True:
        upstream, sent = _addressed(route, asked)
        try:
            return await _attempt(bridge, route, upstream, sent, entries)
        except UpstreamFault as error:
            step = course.after(route, error)
            if step is None or not step.route.target.profile.embeddings:
                raise course.error or error from None
            route = step.route
            await asyncio.sleep(step.pause)


def _addressed(route: Route, asked: embeddings.Asked) -> tuple[Upstream, UpstreamRequest]:
    profile = route.target.profile
    if not profile.embeddings:
        raise InvalidRequest(f"model: {profile.title} has no embeddings")
    body = embeddings.outgoing(asked, route.target.model)
    # Gemini's own compatibility layer wants the key as OpenAI does.
    upstream = replace(route.upstream, profile=replace(profile, auth=profile.embeddings_auth or profile.auth))
    return upstream, UpstreamRequest(profile.embeddings, body, stream=False)


async def _attempt(
    bridge: Bridge, route: Route, upstream: Upstream, sent: UpstreamRequest, entries: list[UsageRow]
) -> bytes:
    started, status, answered = time.perf_counter(), "aborted", embeddings.Answered("", None)
    try:
        body = await _answer(bridge, upstream, sent)
        answered = embeddings.answered(body)
        status = "complete"
    except BridgeError:
        status = "error"
        raise
    finally:
        elapsed = round((time.perf_counter() - started) * 1000, 3)
        usage = answered.usage if status != "complete" or answered.usage else _estimated(bridge, route, sent)
        entry = _entry(route, status, answered.model, usage or Usage(), elapsed)
        micros = bridge.prices.cost(entry.upstream, entry.model, usage or Usage())
        entries.append(replace(entry, attempt=len(entries) + 1, cost_micros=micros))
    return body


async def _answer(bridge: Bridge, upstream: Upstream, sent: UpstreamRequest) -> bytes:
    answer = await bridge.upstreams.send(upstream, sent)
    if 200 <= answer.status < 300:
        bridge.upstreams.judge(upstream, answer, None)
        return await answer.body(ANSWER_LIMIT)
    error = _refusal(answer, scrub(await answer.body()))
    bridge.upstreams.judge(upstream, answer, error)
    raise error


def _refusal(answer: Answer, body: bytes) -> BridgeError:
    return misconfigured(answer.status) or refusal(answer.status, answer.headers, body)


def _estimated(bridge: Bridge, route: Route, sent: UpstreamRequest) -> Usage:
    return bridge.estimates.usage(route.target.upstream, route.target.model, weight(sent.body), 0)


def _entry(route: Route, status: str, returned: str, usage: Usage, elapsed: float) -> UsageRow:
    return UsageRow(
        attempt=1,
        upstream=route.target.upstream,
        model=route.target.model[:200],
        returned_model=returned[:200],
        status=status,
        input_tokens=usage.input_tokens,
        estimated=usage.estimated,
        duration_ms=elapsed,
    )


async def _recorded(bridge: Bridge, record: RecordUsage, admission: Admission | None) -> None:
    try:
        if record.usage:
            await bridge.store.write(record)
            bridge.meter.used(record.usage)
    finally:
        if admission is not None:
            tokens = sum(entry.input_tokens for entry in record.usage)
            await admission.settle(tokens, sum(entry.cost_micros for entry in record.usage))
