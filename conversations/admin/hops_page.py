"""`.../turn/<pk>/hops/`: every hop of a turn, their differences, and what to take away from it."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.http import content_disposition_header

from conversations import answered
from conversations.admin import hops, stored, toolchain
from conversations.admin.bundle import bundle
from conversations.admin.content import pretty, reads_content
from conversations.admin.diffs import Diff, diff
from conversations.admin.replay_page import may_replay
from conversations.admin.replayed import replayed
from conversations.admin.toolchain_page import log_opening
from conversations.models import Message, Turn
from conversations.store.packing import unpacked

JSON = ("content-type", "application/json")
DIFFERENCES = {
    "received-sent": "Received with sent",
    "previous-sent": "Sent with the turn before",
    "answered-delivered": "Answered with delivered",
}
CLIENT = (("x-api-key", "$ANTHROPIC_API_KEY"), ("anthropic-version", "2023-06-01"), JSON)
UPSTREAM = (("authorization", "Bearer $UPSTREAM_API_KEY"), JSON)


def hops_page(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    turn = admin.get_object(request, object_id)
    if turn is None or not admin.has_view_permission(request, turn):
        raise Http404
    readable = reads_content(request)
    answer = answered.answer(turn)
    shown = _hops(turn, answer, readable=readable)
    if readable and (form := request.GET.get("as")):
        return _taken_away(request, turn, shown, form)
    if readable:
        log_opening(admin, request, turn.conversation)
    calls = list(turn.tool_mappings.defer("arguments").order_by("ordinal"))
    values = admin.admin_site.each_context(request) | {
        "title": turn.request_id,
        "opts": admin.model._meta,
        "is_fullwidth": "1",
        "turn": turn,
        "readable": readable,
        "may_replay": may_replay(request),
        "hops": shown,
        "rounds": [hop.name.removeprefix("sent-") for hop in shown if hop.name.startswith("sent-")],
        "notes": toolchain.notes(bytes(turn.notes)),
        "attempts": hops.attempts(turn, stored.entries(turn)),
        "waterfall": hops.waterfall(turn, calls),
        "calls": calls,
        "headers": hops.headers(bytes(turn.headers)),
        "answer": answer,
        "neighbours": _neighbours(turn),
        "difference": _difference(turn, shown, request.GET.get("diff", "")) if readable else None,
        "diff_name": request.GET.get("diff", ""),
        "diff_words": _diff_words(request.GET.get("diff", "")),
        "tokens_in": turn.input_tokens + turn.cache_read + turn.cache_write,
    }
    return TemplateResponse(request, "admin/conversations/turn/hops.html", values)


def _hops(turn: Turn, answer: Message | None, *, readable: bool) -> tuple[hops.Hop, ...]:
    conversation = turn.conversation
    stored_path = stored.path(conversation, turn.head_hash)
    context = hops.Context(
        [(item.role, item.content) for item in stored_path],
        stored.blob(conversation, turn.system_digest),
        stored.blob(conversation, turn.tools_digest),
    )
    meta, came = dict(hops.headers(bytes(turn.sent_meta))), dict(hops.headers(bytes(turn.answer_meta)))
    sent = stored.sent(turn)
    sides = (
        ("received", "Received", "What the client asked, as it is stored", hops.received(turn, context),
         (("messages", str(len(stored_path))), ("model", turn.requested_model))),
        ("sent", "Sent", "What went upstream, byte for byte", sent,
         (("upstream", turn.upstream), ("path", meta.get("path", "")), ("model", turn.resolved_model),
          ("thinking_replayed", replayed(sent)))),
        ("answered", "Answered", "What the upstream said, raw", _answered(turn),
         (("status", came.get("status", "")), ("type", came.get("content_type", "")))),
        ("delivered", "Delivered", "What the client got", hops.delivered(turn, answer),
         (("status", str(turn.http_status or "")), ("stop reason", turn.stop_reason))),
    )  # fmt: skip
    later = [side for number, *bodies in stored.rounds(turn) for side in _round(turn, number, *bodies)]
    return tuple(hops.hop(*side, readable=readable) for side in (*sides[:3], *later, sides[3]))


def _round(turn: Turn, number: int, sent: bytes, answered: bytes) -> list[tuple[str, str, str, bytes, hops.Facts]]:
    """After the results of tools that the bridge ran itself."""
    return [
        (f"sent-{number}", f"Sent, round {number}", "With the results of the bridge's own tools, byte for byte", sent,
         (("upstream", turn.upstream), ("model", turn.resolved_model))),
        (f"answered-{number}", f"Answered, round {number}", "What the upstream said then, raw", answered, ()),
    ]  # fmt: skip


def _answered(turn: Turn) -> bytes:
    return unpacked(bytes(turn.answer))


def _neighbours(turn: Turn) -> dict[str, Turn | None]:
    siblings = Turn.objects.filter(conversation=turn.conversation_id).only("request_id")
    return {
        "before": siblings.filter(pk__lt=turn.pk).order_by("-pk").first(),
        "after": siblings.filter(pk__gt=turn.pk).order_by("pk").first(),
    }


def _difference(turn: Turn, shown: tuple[hops.Hop, ...], name: str) -> Diff | None:
    sides = {hop.name: pretty(hop.raw) for hop in shown}
    if name == "received-sent":
        return diff(sides["received"], sides["sent"])
    if name == "answered-delivered":
        return diff(sides["answered"], sides["delivered"])
    if (number := name.removeprefix("round-")).isdecimal() and f"sent-{number}" in sides:
        earlier = sides.get(f"sent-{int(number) - 1}") or sides["sent"]
        return diff(earlier, sides[f"sent-{number}"])
    before = _neighbours(turn)["before"]
    if name == "previous-sent" and before is not None:
        return diff(pretty(stored.sent(before)), sides["sent"])
    return None


def _diff_words(name: str) -> str:
    """As the button that led to it says."""
    number = name.removeprefix("round-")
    return DIFFERENCES.get(name, f"Round {number} with the one before")


def _taken_away(request: HttpRequest, turn: Turn, shown: tuple[hops.Hop, ...], form: str) -> HttpResponse:
    sides = {hop.name: hop.raw for hop in shown}
    match form:
        case "bundle":
            answer = HttpResponse(
                bundle(turn, shown, hops.attempts(turn, stored.entries(turn))), content_type="application/zip"
            )
            answer["content-disposition"] = content_disposition_header(True, f"{turn.request_id}.zip")  # noqa: FBT003
            return answer
        case "curl-received":
            server = f"{request.scheme}://{request.get_host()}"
            return _text(hops.curl(f"{server}/v1/messages", CLIENT, sides["received"]))
        case "curl-sent":
            path = dict(hops.headers(bytes(turn.sent_meta))).get("path", "")
            return _text(hops.curl(f'"$UPSTREAM_BASE_URL"{path}', UPSTREAM, sides["sent"]))
        case _ if form in sides:
            return _text(sides[form].decode("utf-8", "replace"))
        case _:
            raise Http404


def _text(text: str) -> HttpResponse:
    """Text, and nothing that a browser would take for more."""
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers={"x-content-type-options": "nosniff"})
