"""Every URL of the project, with every trick that opened something somewhere: nothing opens without a credential."""
# ruff: noqa: E501 - a table reads best in its own lines

import http.client
import itertools
import re
import urllib.parse
from collections.abc import Callable, Iterator
from hashlib import sha256
from random import Random

import pytest
from django.urls import URLResolver, get_resolver

from tests.api.conftest import BOTH, CHAT, Connect, Served
from tests.servers import chat
from tests.torture.ledger import Proof, Trials

CANARY = "canary-of-authentication"
SOCKET = "/ws/conversations/<pk>/"
# What anybody may see: that somebody is there, what the API is, and where to sign in.
PUBLIC = re.compile(
    r"/|/livez|/readyz|/docs|/openapi\.json|/api/event_logging/batch|/api/hello|/admin/login/|/static/.*"
)
SQL = ("' OR '1'='1", "' OR 1=1 --", "'; DROP TABLE conversations_apikey; --", "' UNION SELECT digest FROM conversations_apikey --", '" OR ""="', "%", "%%", "_", "\\", "1 OR 1=1")  # fmt: skip
HOSTS = (
    "",
    "localhost",
    "127.0.0.1",
    "evil.example",
    "localhost.evil.example",
    "localhost:1@evil.example",
    "[::1]",
    "",
)
ALWAYS = {"X-Forwarded-For": "203.0.113.9"}  # from beyond this machine
TRICKS: tuple[dict[str, str], ...] = (
    {}, {"X-Original-URL": "/livez"}, {"X-Rewrite-URL": "/livez"}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Real-IP": "127.0.0.1"},
    {"Forwarded": "for=127.0.0.1"}, {"X-HTTP-Method-Override": "OPTIONS"}, {"Remote-User": "admin"}, {"X-Forwarded-User": "admin"},
    {"REMOTE_USER": "admin"}, {"X_API_KEY": "x"}, {"X-Forwarded-Proto": "https"}, {"X-Forwarded-Host": "localhost"},
    {"Origin": "http://localhost"}, {"Cookie": "toolbridge_session=0; sessionid=1"}, {"Referer": "/admin/"}, {"Upgrade": "h2c"},
    {"Content-Type": "application/x-www-form-urlencoded"}, {"Access-Control-Request-Method": "POST", "Origin": "null"},
)  # fmt: skip
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "get", "PROPFIND")

Headers = list[tuple[str, str]]


def urls() -> list[str]:
    def walk(resolver: URLResolver, prefix: str) -> Iterator[str]:
        for entry in resolver.url_patterns:
            path = prefix + str(entry.pattern)
            if isinstance(entry, URLResolver):
                yield from walk(entry, path)
            else:
                yield re.sub(r"\(\?P<url>[^)]*\)\$?|\$$|\^", "", path)

    return [*dict.fromkeys(walk(get_resolver(), "/")), SOCKET, "/static/conversations/console.css"]


@BOTH
@pytest.mark.proves("authentication")
@pytest.mark.timeout(240)
def test_nothing_opens_without_a_credential(
    served: Served, connect: Connect, proof: Proof, trials: Trials, database: str
) -> None:
    served.upstream.always(CHAT, chat.text(CANARY))
    owner = connect(served)
    answer = owner.ask("Hi", headers={"x-conversation-id": "private"})
    assert answer.status_code == 200
    revoked = served.records.issue()
    served.records.revoke(revoked)
    secrets = list(credentials(owner.api_key, revoked))
    asked = len(served.upstream.requests)
    every = urls()
    # Each URL plainly and with each wrong credential, then what a seed makes of them.
    plain = [(url, secret) for url, secret in itertools.product(every, secrets[:1])]
    count = max(trials(2500, 0), len(plain) + 120)
    for number in range(count):
        rng = Random(f"{database}{number}")
        url, secret = plain[number] if number < len(plain) else (rng.choice(every), rng.choice(secrets))
        path = filled(rng, url) if number < len(plain) else crooked(rng, filled(rng, url))
        method = rng.choice(METHODS[:2]) if number < len(plain) else rng.choice(METHODS)
        tricks = {} if number < len(plain) else rng.choice(TRICKS)
        headers = [*ALWAYS.items(), *tricks.items(), *secret]
        with proof.trial(f"{method} {path} {headers}"):
            check(
                served, rng.choice(HOSTS) if number >= len(plain) else "", method, path, headers, socket=url == SOCKET
            )
    assert len(served.upstream.requests) == asked, "an upstream was called for nobody"
    assert owner.conversations(), "the tables are still there"


def credentials(secret: str, revoked: str) -> Iterator[Headers]:
    """Wrong ones; the first is none."""
    yield []
    near = [secret[:-1], secret + "0", secret.upper(), secret.swapcase(), f'"{secret}"', secret[::-1], secret[:10]]
    digest = sha256(secret.encode()).hexdigest()
    for wrong in (*SQL, *near, digest, revoked, "undefined", "null", "0", "Bearer", "x" * 8000, "sk-ant-api03-x", "é"):
        yield [("x-api-key", wrong)]
        yield [("authorization", f"Bearer {wrong}")]
    for scheme in ("Basic", "Digest", "Token", "bearer:", "Bearer\t", ""):
        yield [("authorization", f"{scheme} {SQL[0]}")]
    yield [("x-api-key", ""), ("x-api-key", SQL[0])]
    yield [("authorization", "Bearer "), ("x-api-key", " ")]
    yield [("x-api-key", "a"), ("x-api-key", "b"), ("authorization", "Bearer c")]
    yield [("cookie", f"toolbridge_session={secret}; csrftoken={secret}")]
    yield [("cookie", f"toolbridge_session={SQL[1]}")]
    yield [("proxy-authorization", f"Bearer {secret}")]


def filled(rng: Random, url: str) -> str:
    return re.sub(r"<[^>]+>", lambda _: rng.choice(("1", "private", "2", "x")), url)


ENDS = ("/", "//", "/.", "/%20", "%00", ";x=1", ".json", "?", "#", "/..", "%2e")
SPELLINGS: tuple[Callable[[Random, str], str], ...] = (
    lambda rng, path: path,
    lambda rng, path: "/" + path,
    lambda rng, path: path.replace("/", "//"),
    lambda rng, path: "/livez/.." + path,
    lambda rng, path: "/livez/..;" + path,
    lambda rng, path: path.replace("/", "%2f", rng.randint(1, 3)),
    lambda rng, path: path.upper(),
    lambda rng, path: path.rstrip("/") + rng.choice(ENDS),
    lambda rng, path: "/anthropic" + path,
    lambda rng, path: "/static/.." + path,
    lambda rng, path: "/static/%2e%2e" + path,
    lambda rng, path: "http://127.0.0.1" + path,
    lambda rng, path: path + "?" + urllib.parse.urlencode({"x-api-key": rng.choice(SQL), "key": rng.choice(SQL)}),
    lambda rng, path: "/%61" + path[2:] if path.startswith("/a") else path.replace("v1", "%76%31"),
)


def crooked(rng: Random, path: str) -> str:
    """Another spelling of a path that some router or proxy somewhere took for the same, or for another."""
    return rng.choice(SPELLINGS)(rng, path)


def check(served: Served, host: str, method: str, path: str, headers: Headers, *, socket: bool) -> None:
    status, body, location = ask(served, host, method, path, headers, socket=socket)
    assert status not in (101, 500), (status, body[:300])
    assert CANARY.encode() not in body, body[:500]
    if 200 <= status < 300:
        spelled = re.sub(r"/+", "/", urllib.parse.unquote(path.partition("?")[0].partition("#")[0]))
        # Both are ways to say the same path, on purpose.
        meant = spelled.removeprefix("http:/127.0.0.1").removeprefix("/anthropic")
        preflight = method == "OPTIONS" and not body
        assert preflight or method == "HEAD" or PUBLIC.fullmatch(meant), (status, meant, body[:300])
    elif 300 <= status < 400:
        assert location.startswith(("/admin/login/", "/admin/")) or "/admin" in location, (status, location)


def ask(served: Served, host: str, method: str, path: str, headers: Headers, *, socket: bool) -> tuple[int, bytes, str]:
    connection = http.client.HTTPConnection("127.0.0.1", served.bridge.port, timeout=20)
    try:
        connection._validate_path = lambda url: None  # type: ignore[attr-defined]  # crooked ones, too
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("host", host or f"127.0.0.1:{served.bridge.port}")
        for name, value in headers:
            connection.putheader(name, value.encode("utf-8"))
        if socket:
            for name, value in (("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Origin", served.bridge.url)):  # fmt: skip
                connection.putheader(name, value)
        body = b'{"model":"claude-sonnet-4-5","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}'
        if method in ("POST", "PUT", "PATCH"):
            connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
        else:
            connection.endheaders()
        response = connection.getresponse()
        return response.status, response.read(), response.headers.get("location", "")
    finally:
        connection.close()
