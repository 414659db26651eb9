"""`/v1/conversations`: a key's own conversations and their tool mappings."""

from typing import Any
from urllib.parse import unquote

import msgspec
from django.db.models.functions import Now
from django.http import HttpRequest, JsonResponse
from ninja import Router

from conversations import retention
from conversations.api.cold import PAGE, caller, findable, limited, owner, page
from conversations.models import Conversation, ToolMapping
from conversations.process import current
from translation.errors import NotFound

router = Router(tags=["Conversations"], auth=caller)


@router.get("/conversations", summary="List conversations, newest first")
def conversations(request: HttpRequest, limit: int = PAGE, after_id: str = "") -> JsonResponse:
    rows = Conversation.objects.filter(api_key=owner(request), ended_at=None).order_by("-id")
    if after_id:
        rows = rows.filter(id__lt=_place(_own(request, after_id), "conversation", after_id))
    found = list(rows[: limited(limit) + 1])
    return page([_conversation(row) for row in found[:limit]], more=len(found) > limit)


@router.get("/conversations/{conversation_id}", summary="Retrieve a conversation")
def conversation(request: HttpRequest, conversation_id: str) -> JsonResponse:
    return JsonResponse(_conversation(_touched(_find(request, unquote(conversation_id)))))


@router.post("/conversations/{conversation_id}/terminate", summary="Delete all state of a conversation, now")
def terminate(request: HttpRequest, conversation_id: str) -> JsonResponse:
    name = unquote(conversation_id)
    found = _own(request, name)
    deleted = retention.Deleted()
    if found is not None:
        deleted = retention.terminate(found)
        # Other processes read it from the table of changes; this one need not wait for that.
        current().hear("conversation", str(found.pk))
    return JsonResponse({"id": name, "status": "terminated", "deleted": msgspec.to_builtins(deleted)})


@router.get("/conversations/{conversation_id}/tool-mappings", summary="List tool mappings, oldest first")
def tool_mappings(request: HttpRequest, conversation_id: str, limit: int = PAGE, after_id: str = "") -> JsonResponse:
    found = _touched(_find(request, unquote(conversation_id)))
    rows = found.tool_mappings.order_by("id")
    if after_id:
        rows = rows.filter(id__gt=_place(_call(found, after_id), "tool mapping", after_id))
    mappings = list(rows[: limited(limit) + 1])
    items = [_mapping(row) for row in mappings[:limit]]
    first, last = (items[0]["tool_use_id"], items[-1]["tool_use_id"]) if items else (None, None)
    return JsonResponse({"data": items, "has_more": len(mappings) > limit, "first_id": first, "last_id": last})


@router.get("/conversations/{conversation_id}/tool-mappings/{tool_use_id}", summary="Retrieve a tool mapping")
def tool_mapping(request: HttpRequest, conversation_id: str, tool_use_id: str) -> JsonResponse:
    found = _touched(_find(request, unquote(conversation_id)))
    return JsonResponse(_mapping(_mapping_of(found, unquote(tool_use_id))))


@router.delete("/conversations/{conversation_id}/tool-mappings/{tool_use_id}", summary="Forget a tool mapping")
def delete_tool_mapping(request: HttpRequest, conversation_id: str, tool_use_id: str) -> JsonResponse:
    found = _find(request, unquote(conversation_id))
    mapping = _mapping_of(found, unquote(tool_use_id))
    retention.forget(mapping)
    current().hear("forgotten", str(found.pk))
    return JsonResponse({"tool_use_id": mapping.tool_use_id, "type": "tool_mapping_deleted"})


def _own(request: HttpRequest, name: str) -> Conversation | None:
    rows = Conversation.objects.filter(api_key=owner(request), external_id=findable(name), ended_at=None)
    return rows.first()


def _find(request: HttpRequest, name: str) -> Conversation:
    found = _own(request, name)
    if found is None:
        raise NotFound(f"conversation {name} not found")
    return found


def _touched(conversation: Conversation) -> Conversation:
    """A retrieve is activity: who looks at a conversation still needs it."""
    Conversation.objects.filter(pk=conversation.pk).update(last_activity=Now())
    return conversation


def _mapping_of(conversation: Conversation, tool_use_id: str) -> ToolMapping:
    found = _call(conversation, tool_use_id)
    if found is None:
        raise NotFound(f"tool mapping {tool_use_id} not found")
    return found


def _call(conversation: Conversation, tool_use_id: str) -> ToolMapping | None:
    return conversation.tool_mappings.filter(tool_use_id=findable(tool_use_id)).first()


def _place(row: Conversation | ToolMapping | None, what: str, after_id: str) -> int:
    """Where a page begins. What was deleted has left nothing that would tell where it stood."""
    if row is None:
        raise NotFound(
            f"after_id: {what} {after_id} not found; if it was deleted meanwhile, list anew without after_id"
        )
    return row.pk


def _conversation(row: Conversation) -> dict[str, Any]:
    return {
        "id": row.external_id,
        "type": "conversation",
        "status": "held" if row.held else "active",
        "recognised": row.recognised,
        "model": row.last_model,
        "turns": row.turn_count,
        "tool_mappings": row.tool_count,
        "created_at": row.created_at,
        "last_activity": row.last_activity,
    }


def _mapping(row: ToolMapping) -> dict[str, Any]:
    arguments = row.call_arguments
    return {
        "tool_use_id": row.tool_use_id,
        "tool_name": row.tool_name,
        "status": row.status,
        "upstream": row.upstream,
        "upstream_call_id": row.upstream_call_id or None,
        "arguments": msgspec.json.decode(arguments) if arguments else None,
        "is_error": row.is_error,
        "created_at": row.created_at,
        "answered_at": row.answered_at,
    }
