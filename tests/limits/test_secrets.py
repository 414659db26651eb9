"""Fourteen canaries, wherever a secret can appear, at DEBUG: in no log, no row, no metric, no page."""

import http.cookiejar
import io
import re
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from tests.limits.cluster import CHAT, QUESTION, Cluster, chat_answer
from tests.servers.script import json_answer, sse_answer
from tests.servers.upstream import ScriptedUpstream
from tests.torture.ledger import Proof

NAMES = (
    "CLIENT", "BEARER", "OPENAI1", "OPENAI2", "ANTHROPIC", "MCP", "COOKIE", "HEADER", "QUERY", "METRICS", "PASSWORD",
    "DJANGO", "ENCRYPTION", "BASEURL",
)  # fmt: skip
CANARY = {name: f"{name.lower()}-{'canary' * 3}-{number:04d}" for number, name in enumerate(NAMES)}
DELTA = b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "words"}}]}\n\n'
ZSTD = b"\x28\xb5\x2f\xfd"


@pytest.fixture(scope="module")
def spied() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as server:
        yield server


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, postgres: object, spied: ScriptedUpstream) -> Iterator[Cluster]:
    environment = {
        "WEB_WORKERS": "2",
        "DATABASE_URL": postgres.create_database(),  # type: ignore[attr-defined]
        "BRIDGE_LOG_LEVEL": "DEBUG",
        "BRIDGE_API_KEYS": CANARY["BEARER"],
        "OPENAI_API_KEYS": f"{CANARY['OPENAI1']},{CANARY['OPENAI2']}",
        "OPENAI_BASE_URL": f"{spied.url}/v1",
        "ANTHROPIC_API_KEY": CANARY["ANTHROPIC"],
        "ANTHROPIC_UPSTREAM_URL": f"{spied.url}/anthropic/v1",
        "VLLM_BASE_URL": f"{spied.url}/vllm/v1?key={CANARY['BASEURL']}",
        "BRIDGE_METRICS_TOKEN": CANARY["METRICS"],
        "BRIDGE_ADMIN_PASSWORD": CANARY["PASSWORD"],
        "BRIDGE_SECRET_KEY": CANARY["DJANGO"] * 3,
        "BRIDGE_ENCRYPTION_KEYS": CANARY["ENCRYPTION"],
    }
    cluster = Cluster(tmp_path_factory.mktemp("watched") / "home", environment)
    cluster.start()
    yield cluster
    cluster.stop()


def traffic(cluster: Cluster, spied: ScriptedUpstream) -> None:
    echo = f"Incorrect API key: {CANARY['OPENAI1']} or {CANARY['OPENAI2']}"
    refused = {"error": {"message": echo, "code": "invalid_api_key"}}
    headers = {"Cookie": f"session={CANARY['COOKIE']}", "X-Corporate-Token": CANARY["HEADER"]}
    bearer = {"Authorization": f"Bearer {CANARY['BEARER']}"}
    key = cluster.issue("canary")
    spied.queue(CHAT, chat_answer())
    assert cluster.ask(key, path=f"/v1/messages?key={CANARY['QUERY']}", **headers).status == 200
    for status in (400, 401, 500):
        spied.always(CHAT, json_answer(refused, status))
        reply = cluster.ask("", **headers, **bearer)
        assert reply.status >= 400
        assert "canary" not in str(reply.body)
    spied.queue(CHAT, sse_answer(DELTA, b'data: {"error": {"message": "%s"}}\n\n' % echo.encode()))
    streamed = cluster.ask("", QUESTION | {"stream": True}, **headers, **bearer)
    assert b"event: error" in streamed.body
    assert b"canary" not in streamed.body
    spied.always(CHAT, chat_answer())
    assert cluster.ask(CANARY["CLIENT"]).status == 401
    spied.queue("/vllm/v1/chat/completions", json_answer(refused, 400))
    assert cluster.ask("", QUESTION | {"model": "vllm/any"}, **bearer).status == 502
    spied.always("/anthropic/v1/messages", json_answer({"error": {"type": "x", "message": CANARY["ANTHROPIC"]}}, 400))
    servers = [{"type": "url", "url": "https://mcp.test", "name": "m", "authorization_token": CANARY["MCP"]}]
    asked = QUESTION | {"model": "anthropic/claude-x", "mcp_servers": servers}
    assert cluster.ask("", asked, **bearer, **{"anthropic-beta": "mcp-client-2025-11-20"}).status == 400
    assert CANARY["MCP"].encode() in spied.requests[-1].body, "the upstream needs it"


@pytest.mark.proves("secrets")
def test_no_secret_is_to_be_found_anywhere(watched: Cluster, spied: ScriptedUpstream, proof: Proof) -> None:
    traffic(watched, spied)
    bearer = {"Authorization": f"Bearer {CANARY['METRICS']}", "X-Forwarded-For": "203.0.113.9"}
    status, metrics = watched.get("/metrics", **bearer)
    assert status == 200
    places = {
        "log": watched.tree.errors(),
        "metrics": metrics,
        "rows": "\n".join(everything_stored(watched)),
        "pages": "\n".join(pages(watched)),
        "conversations": watched.get("/v1/conversations", Authorization=f"Bearer {CANARY['BEARER']}")[1],
        "process list": "\n".join(" ".join(process.cmdline()) for process in watched.tree.processes()),
    }
    assert "anthropic.raw" in places["log"], "the log is at DEBUG"
    assert "Incorrect API key" in places["rows"], "the upstream's words are kept"
    for place, text in places.items():
        for name, canary in CANARY.items():
            with proof.trial(f"{name} in the {place}"):
                assert canary not in text
    for process in watched.tree.processes()[1:]:
        limits = Path(f"/proc/{process.pid}/limits").read_text(encoding="utf-8")
        if "bridge_project.up.web" in " ".join(process.cmdline()):
            assert re.search(r"Max core file size +0 +0", limits), "a crash leaves no memory on the disk"


def test_every_tag_of_the_log_is_there(watched: Cluster, spied: ScriptedUpstream) -> None:
    key = watched.issue("tags")
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": None, "tool_calls": [call]},
        "finish_reason": "tool_calls",
    }
    spied.queue(CHAT, json_answer({"id": "x", "model": "gpt-x", "choices": [choice]}))
    asked = QUESTION | {"tools": [{"name": "look", "input_schema": {"type": "object"}}]}
    used = watched.ask(key, asked).body["content"]
    result = {"type": "tool_result", "tool_use_id": used[0]["id"], "content": "seen"}
    history = [*QUESTION["messages"], {"role": "assistant", "content": used}, {"role": "user", "content": [result]}]  # type: ignore[misc]
    spied.queue(CHAT, sse_answer(DELTA, b"data: [DONE]\n\n"))
    watched.ask(key, asked | {"messages": history, "stream": True})
    log = watched.tree.errors()
    tags = ("anthropic.raw", "anthropic.normalize", "anthropic.messages", "openai.bridge ", "openai.bridge(stream) ")
    for tag in (*tags, "tool_use", "tool_result", "state.turn"):
        assert f" {tag.strip()} " in log, tag


def test_a_minimal_key_keeps_its_calls_encrypted_and_they_still_work(watched: Cluster, spied: ScriptedUpstream) -> None:
    key = watched.issue("least", storage="minimal")
    arguments = '{"path": "/a/private/place"}'
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": arguments}}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": None, "tool_calls": [call]},
        "finish_reason": "tool_calls",
    }
    spied.queue(CHAT, json_answer({"id": "x", "model": "gpt-x", "choices": [choice]}))
    asked = QUESTION | {"tools": [{"name": "look", "input_schema": {"type": "object"}}]}
    used = watched.ask(key, asked | {"messages": [{"role": "user", "content": "a private question"}]}).body["content"][
        0
    ]
    rows = "\n".join(everything_stored(watched))
    assert used["id"] in rows
    assert "private" not in rows
    shown = watched.get(f"/v1/conversations/{conversation_of(watched, used['id'])}/tool-mappings", **{"x-api-key": key})
    assert "/a/private/place" in shown[1]
    result = {"type": "tool_result", "tool_use_id": used["id"], "content": "seen"}
    # Any process, with or without it in its cache: the call is rebuilt from what is stored.
    for _ in range(6):
        spied.queue(CHAT, chat_answer())
        assert watched.ask(key, asked | {"messages": [{"role": "user", "content": [result]}]}).status == 200
        (sent,) = [item for item in spied.requests[-1].json()["messages"] if item["role"] == "assistant"]
        assert sent["tool_calls"][0]["function"]["arguments"].replace(" ", "") == arguments.replace(" ", "")
    assert "1 values are encrypted" in watched.manage("rotate_key", "--encryption")


def conversation_of(cluster: Cluster, tool_use_id: str) -> str:
    sql = """SELECT c.external_id FROM conversations_conversation c JOIN conversations_toolmapping m
        ON m.conversation_id = c.id WHERE m.tool_use_id = %s"""
    return str(cluster.rows(sql, tool_use_id)[0][0])


def everything_stored(cluster: Cluster) -> Iterator[str]:
    tables = cluster.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for (table,) in tables:
        for row in cluster.rows(f'SELECT * FROM "{table}"'):  # noqa: S608
            for value in row:
                data = bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
                data = zstandard.decompress(data) if data.startswith(ZSTD) else data
                yield data.decode("utf-8", "replace")


def pages(cluster: Cluster) -> Iterator[str]:
    """The admin's lists, and the pages that they lead to."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    base = f"http://127.0.0.1:{cluster.tree.port}"

    def get(path: str, form: dict[str, str] | None = None) -> str:
        data = urllib.parse.urlencode(form).encode() if form else None
        with opener.open(base + path, data, timeout=60) as response:
            return unpacked(response.read())

    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', get("/admin/login/"))
    assert token is not None
    login = {"csrfmiddlewaretoken": token[1], "username": "admin", "password": CANARY["PASSWORD"], "next": "/admin/"}
    assert "Log out" in get("/admin/login/?next=/admin/", login)
    for table in ("conversation", "turn", "toolmapping", "usageentry", "apikey", "price", "process"):
        page = get(f"/admin/conversations/{table}/")
        yield page
        for link in sorted(set(re.findall(rf'href="(/admin/conversations/{table}/\d+/[a-z]*/?)', page)))[:12]:
            yield get(link)
    for (pk,) in cluster.rows("SELECT id FROM conversations_turn"):
        yield get(f"/admin/conversations/turn/{pk}/hops/")
        for form in ("bundle", "curl-received", "curl-sent"):
            yield get(f"/admin/conversations/turn/{pk}/hops/?as={form}")
    for (pk,) in cluster.rows("SELECT id FROM conversations_conversation"):
        for form in ("jsonl", "csv"):
            yield get(f"/admin/conversations/conversation/{pk}/export/?form={form}")
    yield get(f"/admin/conversations/conversation/?q={CANARY['OPENAI1'][:9]}")


def unpacked(body: bytes) -> str:
    """A page, or every file of a bug report."""
    if not body.startswith(b"PK"):
        return body.decode()
    with zipfile.ZipFile(io.BytesIO(body)) as files:
        return "\n".join(files.read(name).decode("utf-8", "replace") for name in files.namelist())
