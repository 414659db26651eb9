"""`/ws/conversations/<pk>/`: a conversation as it happens, for operators who may read it.

It reads durable state, so it neither slows a stream nor depends on one: a browser that has gone, or is slow, costs only
its own task, and one that comes back is told everything since the turn that it knows.
"""

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import URLRouter
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError
from django.db.models.functions import Now
from django.http.request import split_domain_port, validate_host
from django.urls import path, re_path
from django.utils import timezone
from redis.exceptions import RedisError

from conversations import conf, live
from conversations.admin.content import PERMISSION
from conversations.admin.live import SLACK, Tail
from conversations.models import Change, Conversation
from conversations.process import current

PAUSE = live.SECONDS  # between two messages, at least
LOOK = 1.0  # without a hint
RENEW = 15.0
GONE, FORBIDDEN, LATER = 4404, 4403, 1013

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class LiveConversation(AsyncWebsocketConsumer):
    async def connect(self) -> None:
        self.pk = int(self.scope["url_route"]["kwargs"]["pk"])
        self._look = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None
        if not await database_sync_to_async(self._may_watch)():
            await self.close(FORBIDDEN)
            return
        after = parse_qs(self.scope["query_string"].decode("latin-1")).get("after", ["0"])[0]
        tail = Tail(self.pk, max(int(after) - SLACK, 0) if after.isdecimal() and len(after) < 20 else 0)
        await self.accept()
        await database_sync_to_async(self._log_opening)()
        with suppress(OSError, RedisError):  # hints only make it faster
            await self.channel_layer.group_add(live.group(self.pk), self.channel_name)
        self._telling = asyncio.get_running_loop().create_task(self._tell(tail))

    async def disconnect(self, code: int) -> None:
        if self._telling is not None:
            self._telling.cancel()
        with suppress(OSError, RedisError):
            await self.channel_layer.group_discard(live.group(self.pk), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """There is nothing that a watcher could say."""

    async def live_look(self, event: dict[str, Any]) -> None:
        self._look.set()

    async def _tell(self, tail: Tail) -> None:
        try:
            await self.close(await self._follow(tail))
        except DatabaseError:
            await self.close(LATER)  # the browser comes back

    async def _follow(self, tail: Tail) -> int:
        """Until there is a reason to close."""
        loop, renew = asyncio.get_running_loop(), 0.0
        while True:
            if loop.time() >= renew:
                renew = loop.time() + RENEW
                if not await database_sync_to_async(self._renewed)():
                    return FORBIDDEN
            self._look.clear()
            news = await database_sync_to_async(tail.news)()
            if news is not None:
                await self.send(text_data=news.decode())
            elif await database_sync_to_async(tail.is_over)():
                return GONE
            await asyncio.sleep(PAUSE)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), LOOK - PAUSE)

    def _may_watch(self) -> bool:
        user = self.scope["user"]
        allowed = user.is_active and user.is_staff and user.has_perms((PERMISSION, "conversations.view_conversation"))
        return allowed and Conversation.objects.filter(pk=self.pk, ended_at=None).exists()

    def _renewed(self) -> bool:
        """Somebody still watches, and still may: every process is told so by the table of changes."""
        session, user = self.scope["session"], self.scope["user"]
        self.scope["user"] = fresh = get_user_model()._default_manager.filter(pk=user.pk).first()
        if fresh is None or not session.exists(session.session_key) or not self._may_watch():
            return False
        Change.objects.create(kind="watch", ref=str(self.pk), created_at=Now())
        current().hear("watch", str(self.pk))
        return True

    def _log_opening(self) -> None:
        """Once an hour for each conversation, as its page does."""
        recent = timezone.now() - dt.timedelta(hours=1)
        entry = {"user_id": self.scope["user"].pk, "object_id": str(self.pk), "change_message": "Read content"}
        if not LogEntry.objects.filter(**entry, action_time__gt=recent).exists():
            kind = ContentType.objects.get_for_model(Conversation)
            name = Conversation.objects.filter(pk=self.pk).values_list("external_id", flat=True).first() or ""
            LogEntry.objects.create(**entry, content_type=kind, object_repr=name[:200], action_flag=CHANGE)


def same_origin(scope: dict[str, Any]) -> bool:
    """Whether the page that asks is this server's own: browsers send cookies along with any page's sockets."""
    headers = dict(scope["headers"])
    host = headers.get(b"host", b"").decode("latin-1").lower()
    origin = urlsplit(headers.get(b"origin", b"").decode("latin-1").lower())
    domain, port = split_domain_port(host)
    if not domain or not validate_host(domain, conf.allowed_hosts()):
        return False
    # A proxy may leave the port out of the host.
    return origin.netloc == host or (not port and origin.hostname == domain)


async def _refuse(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.close", "code": FORBIDDEN})


_routes: list[Any] = [path("ws/conversations/<int:pk>/", LiveConversation.as_asgi()), re_path(r"", _refuse)]  # type: ignore[arg-type]  # channels takes applications for views
_sockets: Application = AuthMiddlewareStack(URLRouter(_routes))


async def websocket(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """All that this server does with WebSockets."""
    await (_sockets if same_origin(scope) else _refuse)(scope, receive, send)
