"""Finding rows by what an operator has in hand: an id from a log, a tool's name, an error, or words that were said.

Every lookup but a part of a conversation's id is exact and goes through an index. The tables are large: a lookup yields
keys of at most `MOST` rows, the newest. `said` are the turns in which the words occur, for those who may read them.
"""

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Max, Q, QuerySet

from conversations.models import ApiKey, Conversation, ToolMapping, Turn, TurnStatus, UsageEntry

MOST = 500
ERROR = re.compile(r"[a-z_]+_error")  # the API's types of errors
LEDGER = 100_000  # entries that are looked through for a conversation that is gone


Said = Sequence[int]


def turns(term: str, said: Said = ()) -> Q:
    """For rows of Turn."""
    return _any(pk__in=[*_turns(term), *_mapped(term, "turn_id"), *said], conversation__in=conversation_ids(term))


def tool_mappings(term: str, said: Said = ()) -> Q:
    """For rows of ToolMapping."""
    return _any(pk__in=_mapped(term, "pk"), turn__in=[*_turns(term), *said], conversation__in=conversation_ids(term))


def conversations(term: str, said: Said = ()) -> Q:
    """For rows of Conversation."""
    by_turn = list(Turn.objects.filter(pk__in=[*_turns(term), *said]).values_list("conversation", flat=True))
    pks = [*by_turn, *_mapped(term, "conversation_id"), *_sessions(term)]
    return Q(external_id__icontains=term) | _any(pk__in=pks)


def usage(term: str, said: Said = ()) -> Q:
    """For rows of UsageEntry, which outlive what they were used for."""
    if turn_ids := [*_turns(term), *_mapped(term, "turn_id"), *said]:
        return Q(request_id__in=list(Turn.objects.filter(pk__in=turn_ids).values_list("request_id", flat=True)))
    if found := conversation_ids(term):
        newest = Turn.objects.filter(conversation__in=found).order_by("-pk").values_list("request_id", flat=True)
        return Q(request_id__in=list(newest[:MOST]))
    # What is gone has left its ids in the ledger only, which has no index of conversations.
    last = UsageEntry.objects.aggregate(last=Max("pk"))["last"] or 0
    return Q(request_id=term) | Q(conversation_id=term, pk__gt=last - LEDGER)


def _any(**lookups: list[Any]) -> Q:
    """One of these; a lookup among no values finds nothing, and is left out."""
    parts = [Q(**{lookup: list(dict.fromkeys(values))}) for lookup, values in lookups.items() if values]
    return reduce(or_, parts) if parts else Q(pk__in=[])


def conversation_ids(term: str) -> list[int]:
    found = Conversation.objects.filter(external_id__icontains=term, ended_at=None).order_by("-last_activity")
    return list(found.values_list("pk", flat=True)[:MOST])


def _sessions(term: str) -> list[int]:
    # The index leaves out conversations without a session; saying so again lets the planner use it.
    found = Conversation.objects.filter(session_id=term).exclude(session_id="")
    return list(found.values_list("pk", flat=True)[:MOST])


def _turns(term: str) -> list[int]:
    if term.startswith("msg_"):
        found = Turn.objects.filter(api_key__in=_keys(), message_id=term)
        return list(found.values_list("pk", flat=True)[:MOST])
    if ERROR.fullmatch(term):
        failed = Turn.objects.filter(status=TurnStatus.ERROR, error_type=term).order_by("-pk")
        return list(failed.values_list("pk", flat=True)[:MOST])
    return list(Turn.objects.filter(request_id=term).values_list("pk", flat=True))


def _mapped(term: str, field: str) -> list[int]:
    """A column of the tool calls that a term names: by our id, by the upstream's, by the tool's name."""
    ours = ToolMapping.objects.filter(api_key__in=_keys(), tool_use_id=term)
    theirs = ToolMapping.objects.filter(upstream_call_id=term).exclude(upstream_call_id="")
    named = ToolMapping.objects.filter(tool_name=term)
    for found in (ours, theirs, named):
        if values := list(found.order_by("-pk").values_list(field, flat=True)[:MOST]):
            return values
    return []


def _keys() -> QuerySet[ApiKey, int]:
    """Every key: the indexes of ids begin with it."""
    return ApiKey.objects.values_list("pk", flat=True)
