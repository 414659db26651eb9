"""`.../conversation/<pk>/toolchain/`: asks the database, hands rows to the shaping functions, renders."""

import datetime as dt
import json
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import msgspec
from django.contrib.admin.models import LogEntry
from django.db.models import Sum
from django.db.models.functions import Length
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from conversations.admin import cells, context, flags, stored, toolchain
from conversations.admin.content import reads_content
from conversations.admin.graph import Graph, graph
from conversations.admin.stored import CONTENT
from conversations.answered import given_before
from conversations.models import Conversation, Message, ToolMapping, Turn
from conversations.secrets import opened
from conversations.store import packing
from conversations.wording import harmless
from conversations.words import texts
from translation.unreadable import UNREADABLE

PAGE = 25  # turns that are rendered at once
CALLS = 3_000  # of the newest, for figures, flags and the graph
FAMILY = 50
COMPARED = 10_000_000  # bytes of arguments that are read to find loops
ALIKE = 500  # messages that are read for results that look the same
HEAVY = tuple(field for field in CONTENT if field != "notes")


def toolchain_page(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    conversation = admin.get_object(request, object_id)
    if conversation is None or not admin.has_view_permission(request, conversation):
        raise Http404
    readable = reads_content(request)
    index = index_of(conversation)
    numbers, term = list(index.numbers), request.GET.get("q", "").strip() if readable else ""
    chosen = _matching(conversation, term) if term else numbers
    page = max(1, min(_number(request, "page", (_number(request, "at", 1) - 1) // PAGE + 1), _pages(chosen)))
    mappings = _mappings(conversation)
    stretch = chosen[(page - 1) * PAGE : page * PAGE]
    calls = _with_shown(conversation, stretch, mappings)
    values: dict[str, Any] = {
        "conversation": conversation,
        "readable": readable,
        "term": term,
        "turns": toolchain.shape(_rows(conversation, stretch, calls), index, readable=readable),
        # A sub-agent's turns stand inside another conversation's page.
        "here": cells.url(conversation, "toolchain_page"),
        "anchor": f"agent-{conversation.pk}-" if request.GET.get("nested") else "",
        "next_page": page + 1 if page < _pages(chosen) else 0,
        "previous_page": page - 1,
        "found": len(chosen),
        "total": len(numbers),
    }
    if request.headers.get("hx-request") == "true":
        return TemplateResponse(request, "admin/conversations/conversation/turns.html", values)
    if readable:
        log_opening(admin, request, conversation)
    values |= _whole(conversation, mappings, index) | admin.admin_site.each_context(request)
    values |= {"newest": numbers[-1] if numbers else 0}
    values |= {"title": harmless(conversation.external_id), "opts": admin.model._meta, "is_fullwidth": "1"}
    return TemplateResponse(request, "admin/conversations/conversation/toolchain.html", values)


def log_opening(admin: Any, request: HttpRequest, row: Conversation) -> None:
    """Who read what was said, once an hour for each conversation."""
    recent = timezone.now() - dt.timedelta(hours=1)
    seen = LogEntry.objects.filter(
        user=request.user.pk, object_id=str(row.pk), change_message="Read content", action_time__gt=recent
    )
    if not seen.exists():
        admin.log_change(request, row, "Read content")


def _whole(conversation: Conversation, mappings: list[ToolMapping], index: toolchain.Index) -> dict[str, Any]:
    turns = list(conversation.turns.defer(*CONTENT).order_by("pk"))
    drawn = graph(turns, mappings, index)
    return {
        "flags": flags.flags(turns, mappings, _digests(conversation, mappings), index, timezone.now()),
        "graph": drawn,
        "bars": _bars(drawn),
        "tools": context.figures(mappings, toolchain.states(mappings, index)),
        "newest_calls": CALLS if len(mappings) == CALLS else 0,
        "fills": _fills(conversation, turns[-1]) if turns else (),
        "family": _family(conversation),
        "estimated": any(turn.usage_estimated for turn in turns),
        "sums": conversation.turns.aggregate(
            read=Sum("input_tokens") + Sum("cache_read") + Sum("cache_write"),
            cached=Sum("cache_read"), written=Sum("output_tokens"), cost=Sum("cost_micros"), time=Sum("duration_ms"),
        ),
    }  # fmt: skip


def _bars(drawn: Graph) -> SafeString:
    """There may be thousands: a template would take ten times as long for them."""
    return format_html_join(
        "",
        '<a href="?at={0}#turn-{0}" tabindex="-1"><rect x="{1}" y="{2}" width="{3}" height="{4}" rx="2" '
        'class="tb-bar tb-{5}"><title>{6}</title></rect></a>',
        ((bar.turn, bar.x, bar.y, bar.width, bar.height, bar.colour, harmless(bar.title)) for bar in drawn.bars),
    )


def _fills(conversation: Conversation, last: Turn) -> tuple[context.Fill, ...]:
    system = len(stored.blob(conversation, last.system_digest))
    tools = len(stored.blob(conversation, last.tools_digest))
    history = stored.path(conversation, last.head_hash)
    return context.fills(system, tools, [(item.role, item.content) for item in history])


def index_of(conversation: Conversation) -> toolchain.Index:
    turns = conversation.turns.order_by("pk").values_list("pk", "head_hash")
    nodes = conversation.messages.values_list("chain_hash", "parent_hash", "turn", "message_id")
    return toolchain.index(turns, ((own, parent, turn, bool(answer)) for own, parent, turn, answer in nodes))


def _mappings(conversation: Conversation) -> list[ToolMapping]:
    """Without their arguments, which may be large, where nothing is to be compared with them."""
    newest = conversation.tool_mappings.order_by("-pk")
    sizes = dict(newest.values_list("pk", Length("arguments"))[:CALLS])
    rows = sorted(newest.defer("arguments", "state")[:CALLS], key=_place)
    compared = conversation.tool_mappings.filter(pk__in=_similar(rows, sizes))
    arguments = dict(compared.values_list("pk", "arguments"))
    for row in rows:
        row.arguments = arguments.get(row.pk, b"")
    return rows


def _similar(rows: list[ToolMapping], sizes: dict[int, int]) -> list[int]:
    """The calls whose arguments may be the same so often in a row that it is a loop; the newest, as far as they go."""
    found: list[ToolMapping] = []
    runs: dict[str, list[ToolMapping]] = {}
    for row in rows:
        run = runs.setdefault(row.tool_name, [])
        if run and (sizes.get(run[-1].pk), run[-1].result_size) != (sizes.get(row.pk), row.result_size):
            run.clear()
        run.append(row)
        if len(run) >= toolchain.LOOP:
            found += run if len(run) == toolchain.LOOP else [row]
    sums = accumulate(sizes.get(row.pk, 0) for row in reversed(found))
    return [row.pk for row, total in zip(reversed(found), sums, strict=True) if total <= COMPARED]


def _with_shown(conversation: Conversation, turns: list[int], newest: list[ToolMapping]) -> list[ToolMapping]:
    """The calls of these turns whole, also where the newest do not reach back to them."""
    shown = conversation.tool_mappings.filter(turn__in=turns)
    return sorted({row.pk: row for row in (*newest, *shown)}.values(), key=_place)


def _place(row: ToolMapping) -> tuple[int, int]:
    return row.turn_id, row.ordinal


def _rows(conversation: Conversation, turns: list[int], mappings: list[ToolMapping]) -> toolchain.Rows:
    answering = {row.answered_turn for row in mappings if row.turn_id in set(turns) and row.answered_turn}
    messages = Message.objects.filter(conversation=conversation, turn__in={*turns, *answering})
    said = list(messages.order_by("turn", "depth"))
    answered = {row.turn_id for row in said if row.message_id}
    shown = list(conversation.turns.filter(pk__in=turns).defer(*HEAVY).order_by("pk"))
    said += given_before([turn for turn in shown if turn.pk not in answered])
    return toolchain.Rows(
        shown,
        mappings,
        said,
        _digests(conversation, mappings),
        _agents(conversation, mappings),
    )


def _digests(conversation: Conversation, mappings: list[ToolMapping]) -> dict[str, bytes]:
    """Of the results that may be the same; few conversations have any."""
    calls = toolchain.alike(mappings)
    answering = {row.answered_turn for row in calls if row.answered_turn}
    if not answering:
        return {}
    rows = conversation.messages.filter(turn__in=answering, message_id="").values_list("role", "span", "content")
    messages = (content for row in rows[:ALIKE] for _, content in packing.messages(*row))
    return toolchain.digests(messages, (row.tool_use_id for row in calls))


def _agents(conversation: Conversation, mappings: list[ToolMapping]) -> dict[int, list[Conversation]]:
    """The sub-agents by the turn that started them: the last one with calls before they began."""
    calling = {row.turn_id: row.created_at for row in mappings}
    found: dict[int, list[Conversation]] = {}
    for agent in _family(conversation):
        if not agent.agent_id or agent.agent_id == conversation.agent_id:
            continue
        if agent.parent_agent_id != conversation.agent_id:
            continue
        before = [turn for turn, at in calling.items() if at <= agent.created_at]
        if before:
            found.setdefault(max(before), []).append(agent)
    return found


def _matching(conversation: Conversation, term: str) -> list[int]:
    """The turns that brought, said or called something with this text in it."""
    wanted = _spellings(term)
    found = set()
    rows = conversation.messages.values_list("turn", "role", "span", "content")
    for turn, role, span, content in rows.iterator(chunk_size=200):
        if turn not in found and any(_say(texts(said), wanted) for _, said in packing.messages(role, span, content)):
            found.add(turn)
    calls = conversation.tool_mappings.values_list("turn", "tool_name", "tool_use_id", "arguments")
    for turn, name, call, arguments in calls.iterator(chunk_size=200):
        if turn not in found and (call == term or _say((name, *_given(opened(bytes(arguments)))), wanted)):
            found.add(turn)
    return sorted(found)


def _spellings(term: str) -> set[str]:
    """As it is said, and as JSON inside of a text may have it: quotes and lines escaped, or all beyond ASCII."""
    return {term.casefold(), *(json.dumps(term, ensure_ascii=plain)[1:-1].casefold() for plain in (False, True))}


def _say(said: Iterable[str], wanted: set[str]) -> bool:
    return any(spelling in text.casefold() for text in said for spelling in wanted)


def _given(arguments: bytes) -> Iterator[str]:
    """The values of a call's arguments. Their names are those of every other call of the tool."""
    try:
        values = [msgspec.json.decode(arguments)]
    except UNREADABLE:
        values = [arguments.decode("utf-8", "replace")]
    while values:
        match value := values.pop():
            case dict():
                values += value.values()
            case list():
                values += value
            case str():
                yield value
            case _:
                yield json.dumps(value)


def _family(conversation: Conversation) -> list[Conversation]:
    """The agents of the same Claude Code session."""
    if not conversation.session_id:
        return []
    rows = Conversation.objects.filter(
        session_id=conversation.session_id, api_key=conversation.api_key_id, ended_at=None
    ).exclude(session_id="")
    return list(rows.order_by("created_at")[:FAMILY])


def _pages(turns: list[int]) -> int:
    return max(1, -(-len(turns) // PAGE))


def _number(request: HttpRequest, name: str, default: int) -> int:
    value = request.GET.get(name, "")
    return int(value) if value.isdecimal() and len(value) < 9 else default
