"""Registering tools: what a key brings itself, and telling every process that something changed."""

from typing import Literal
from urllib.parse import urlsplit

import msgspec
from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.functions import Left, Now
from msgspec import Struct

from conversations import conf, secrets
from conversations.hosted.addresses import Allowed
from conversations.hosted.values import ToolFailed
from conversations.models import ApiKey, Change, HostedTool, ToolSecret
from conversations.models.hosted import NAME
from translation.client.paths import carried, decode, split, wrong
from translation.errors import InvalidRequest

MOST = 100  # tools of one key
HEADER_MOST = 100  # characters of its name
ANY_OBJECT = {"type": "object", "properties": {}}


class Registration(Struct, kw_only=True):
    name: str
    url: str
    type: Literal["http", "mcp"] = "http"
    description: str = ""
    input_schema: dict[str, object] = {}
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: dict[str, str] = {}  # secret, all of them: no answer shows them again
    authorization_token: str = ""
    timeout: float | None = None
    long_running: bool = False


_REGISTRATION = msgspec.json.Decoder(Registration)


def parse(body: bytes) -> Registration:
    fields = split(body)
    for name in fields.keys() - set(Registration.__struct_fields__):
        raise wrong(name, "Extra inputs are not permitted")
    if "input_schema" in fields:
        carried(fields["input_schema"], "input_schema")
    return decode(_REGISTRATION, msgspec.json.encode(fields), "")


def register(key: ApiKey, asked: Registration) -> HostedTool:
    """The same name again replaces what it named."""
    _check(asked)
    headers = dict(asked.headers)
    if asked.authorization_token:
        headers["Authorization"] = f"Bearer {asked.authorization_token}"
    with transaction.atomic():
        others = HostedTool.objects.filter(owner=key).exclude(name=asked.name)
        if others.count() >= MOST:
            raise InvalidRequest(f"a key may register {MOST} tools")
        _forget(key, asked.name)
        lines = [_sealed(key, asked, header, value) for header, value in headers.items()]
        tool = HostedTool.objects.create(
            owner=key,
            name=asked.name,
            kind=asked.type,
            description=asked.description,
            url=asked.url,
            method=asked.method,
            schema=msgspec.json.encode(asked.input_schema or ANY_OBJECT).decode(),
            headers="\n".join(lines),
            timeout=asked.timeout,
            long_running=asked.long_running,
        )
        announce()
    return tool


def unregister(key: ApiKey, name: str) -> bool:
    with transaction.atomic():
        found = _forget(key, name)
        announce()
    return found


def announce() -> None:
    """Every process reads what is registered anew."""
    Change.objects.create(kind="hosted", ref="", created_at=Now())


def check_url(url: str) -> None:
    """Raises ToolFailed for an address that no tool may have; one that is only away just now may be registered."""
    try:
        async_to_sync(Allowed(conf.current().tool_hosts).pin)(url)
    except ToolFailed as failed:
        if failed.kind == "refused":
            raise


def _check(asked: Registration) -> None:
    try:
        NAME(asked.name)
    except ValidationError as error:
        raise InvalidRequest(f"name: {error.message}") from None
    if len(asked.url) > 2000:
        raise InvalidRequest("url: at most 2000 characters")
    if "\0" in asked.description:
        raise InvalidRequest("description: it holds a NUL")
    if asked.timeout is not None and not 0.1 <= asked.timeout <= 86_400:
        raise InvalidRequest("timeout: seconds, from 0.1 to 86400")
    for header, value in asked.headers.items():
        named = header.isascii() and header.replace("-", "").replace("_", "").isalnum() and len(header) <= HEADER_MOST
        if not named or not _is_sent(value):
            raise InvalidRequest(f"headers: {header[:100]!r} is not a header")
    if not _is_sent(asked.authorization_token):
        raise InvalidRequest("authorization_token: no header can hold it")
    try:
        check_url(asked.url)
    except ToolFailed as failed:
        raise InvalidRequest(f"url: {failed.text}") from None


def _is_sent(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _forget(key: ApiKey, name: str) -> bool:
    # Compared whole: to SQLite's LIKE, with which `startswith` asks, other cases of letters are the same.
    whose = ToolSecret.objects.alias(whose=Left("name", len(name) + 1))
    whose.filter(owner=key, whose=f"{name}:").delete()
    count, _ = HostedTool.objects.filter(owner=key, name=name).delete()
    return count > 0


def _sealed(key: ApiKey, asked: Registration, header: str, value: str) -> str:
    """The header's line in the tool: its value is a secret that belongs to the tool's host."""
    name = f"{asked.name}:{header}"
    host = urlsplit(asked.url).hostname or ""
    ToolSecret.objects.create(owner=key, name=name, host=host, value=secrets.encrypt(value))
    return f"{header}: {{{{{name}}}}}"
