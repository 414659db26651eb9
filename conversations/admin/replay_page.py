"""`.../turn/<pk>/replay/` says what it costs to run a turn again; `.../replay/<pk>/compare/` shows both answers."""

import asyncio
from typing import Any

import msgspec
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from conversations import replay, wording
from conversations.admin import cells, toolchain
from conversations.admin.content import reads_content, shown
from conversations.admin.diffs import diff
from conversations.admin.toolchain_page import log_opening
from conversations.answered import answer
from conversations.comparison import compare
from conversations.models import Replay, Turn
from conversations.process import current
from translation.errors import BridgeError

EARLIER = 20


def may_replay(request: HttpRequest) -> bool:
    """It reads what was said, and spends money."""
    return reads_content(request) and request.user.has_perm("conversations.add_replay")


def replay_page(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    turn = admin.get_object(request, object_id)
    if turn is None:
        raise Http404
    if not may_replay(request):
        raise PermissionDenied
    target = (request.POST if request.method == "POST" else request.GET).get("target", "").strip()
    given = (request.POST if request.method == "POST" else request.GET).get("round", "")
    number = int(given) if given.isdecimal() and len(given) < 4 else 0
    means = _means()
    refused, planned, expected = "", None, None
    try:
        planned = replay.plan(turn, means.router, target, number)
        expected = replay.expected(planned, turn, means)
        if request.method == "POST":
            return HttpResponseRedirect(cells.url(_start(admin, request, turn, planned, target), "compare_page"))
    except (BridgeError, msgspec.ValidationError) as error:
        refused = str(error)
    values = admin.admin_site.each_context(request) | {
        "title": f"Replay {turn.request_id}",
        "opts": admin.model._meta,
        "turn": turn,
        "target": target,
        "round": number,
        "planned": planned,
        "refused": refused,
        "facts": _facts(planned, expected) if planned and expected else (),
        "offers": [offer.id for offer in means.router.offers()],
        "earlier": turn.replays.defer("sent", "notes", "answer", "content").order_by("-pk")[:EARLIER],
    }
    return TemplateResponse(request, "admin/conversations/turn/replay.html", values)


def _means() -> replay.Means:
    """The web process's own; in a process that serves nothing, one that reads the configuration anew."""
    bridge = current().bridge
    if bridge is None:
        return replay.means()
    return replay.Means(bridge.router, bridge.upstreams, bridge.prices, bridge.estimates)


def _start(admin: Any, request: HttpRequest, turn: Turn, planned: replay.Plan, target: str) -> Replay:
    """On the event loop of the process: a page need not wait for a model."""
    who, process = request.user.get_username(), current()
    if process.loop is None or process.bridge is None:
        row = replay.run_alone(turn, target, who, planned.number)
    else:
        row = replay.begin(turn, planned, who)
        asyncio.run_coroutine_threadsafe(replay.run_and_keep(row, planned, _means()), process.loop)
    admin.log_change(request, turn, f"Replayed {turn.request_id} through {row.target}")
    messages.success(request, f"{turn.request_id} is asked again. No tool will be run.")
    return row


def _facts(planned: replay.Plan, expected: replay.Expected) -> tuple[tuple[str, str], ...]:
    likely, most = wording.count(expected.output_tokens), wording.count(expected.most_tokens)
    return (
        ("Goes to", planned.route.name),
        ("Request", _which(planned)),
        ("Size", wording.size(len(planned.sent.body))),
        ("Tokens in", f"about {wording.count(expected.input_tokens)}"),
        ("Tokens out", f"{likely} as before, at most {most}"),
        ("Cost", _cost(expected)),
    )


def _which(planned: replay.Plan) -> str:
    if planned.number:
        return f"round {planned.number}, byte for byte as it was sent"
    return "byte for byte as it was sent" if planned.exact else "made anew from what was received"


def _cost(expected: replay.Expected) -> str:
    if not expected.most_micros:
        return "nothing: it is free, or has no price here"
    return f"about {wording.money(expected.micros)}, at most {wording.money(expected.most_micros)}"


def compare_page(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    row = admin.get_object(request, object_id)
    if row is None or not admin.has_view_permission(request, row):
        raise Http404
    turn, readable = row.turn, reads_content(request)
    if readable:
        log_opening(admin, request, row.conversation)
    compared = compare(turn, answer(turn), row)
    before, after = compared.before, compared.after
    values = admin.admin_site.each_context(request) | {
        "title": f"Replay of {turn.request_id}",
        "opts": admin.model._meta,
        "is_fullwidth": "1",
        "replay": row,
        "turn": turn,
        "readable": readable,
        "may_replay": may_replay(request),
        "compared": compared,
        "several_rounds": turn.rounds.exists(),
        "sides": [(side, shown(side.text), shown(side.thinking)) for side in (before, after)],
        "difference": diff(before.text.encode("utf-8", "replace"), after.text.encode("utf-8", "replace")),
        "notes": toolchain.notes(bytes(row.notes)),
    }
    return TemplateResponse(request, "admin/conversations/replay/compare.html", values)
