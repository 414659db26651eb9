"""The same over real HTTP: fuzzed answers, and faults of HTTP itself, to a bridge that serves."""
# ruff: noqa: E501 - a table reads best in its own lines

import gzip
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from tests.api.conftest import Connect, Serve, Served
from tests.servers.client import TOOL, Client, body
from tests.servers.script import Abort, Answer, Raw, json_answer
from tests.servers.upstream import ScriptedUpstream
from tests.torture import grammar, mutation
from tests.torture.ledger import Proof, Trials
from tests.translation.captures import cases, cut

HANG = 5.0
# upstream: where the bridge calls it, streaming and not
PATHS = {
    "openai": ("/x/chat/completions", "/x/chat/completions"),
    "openai-responses": ("/x/responses", "/x/responses"),
    "gemini": ("/g/models/m:streamGenerateContent", "/g/models/m:generateContent"),
    "anthropic": ("/a/messages", "/a/messages"),
    "minimax": ("/m/chat/completions", "/m/chat/completions"),
    "deepseek": ("/d/chat/completions", "/d/chat/completions"),
}
CASES = {upstream: cases(upstream) for upstream in PATHS}
SSE = {"content-type": "text/event-stream"}
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"

PLACES = ("/x/chat/completions", "https://127.0.0.1:1/", "//evil.example", "file:///etc/passwd", "")

Fault = Callable[[Random, bytes], Answer | Raw]
FAULTS: tuple[Fault, ...] = (
    lambda rng, body: Answer((b"",), rng.choice((301, 302, 303, 307, 308)), {"location": rng.choice(PLACES)}),
    lambda rng, body: Answer((body,), rng.choice((201, 202, 203, 206, 226)), SSE),
    lambda rng, body: Raw((b"HTTP/1.1 %d x\r\ncontent-length: 0\r\n\r\n" % rng.choice((204, 304, 205, 100, 999)),)),
    lambda rng, body: Answer((body,), rng.choice((400, 401, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 529, 599))),
    lambda rng, body: json_answer({"error": rng.choice(mutation.VALUES[:6])}, rng.choice((400, 404, 429, 500))),
    lambda rng, body: Answer((gzip.compress(body)[: rng.randint(1, 200)],), 200, {**SSE, "content-encoding": "gzip"}),
    lambda rng, body: Answer((gzip.compress(body),), 200, {**SSE, "content-encoding": rng.choice(("gzip", "br", "x"))}),
    lambda rng, body: Answer((body,), 200, {**SSE, "content-length": str(len(body) + rng.choice((-1, 1, 1000)))}),
    lambda rng, body: Raw((OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + body,)),
    lambda rng, body: Raw((OK + b"transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + body,)),
    lambda rng, body: Raw((OK + b"content-length: 5\r\ncontent-length: 7\r\n\r\n" + body,)),
    lambda rng, body: Raw((OK + b"x: " + b"y" * 100_000 + b"\r\n\r\n" + body,)),
    lambda rng, body: Raw((OK + b"x\r\n\r\n" + body,)),
    lambda rng, body: Raw((OK + b"\r\n" + body,)),
    lambda rng, body: Raw((rng.randbytes(100),)),
    lambda rng, body: Raw((b"",)),
    lambda rng, body: Raw((b"HTTP/1.1 200",)),
    lambda rng, body: Answer((body[: len(body) // 2], Abort()), 200, SSE),
    lambda rng, body: Answer((b"<html>" + body,), 200, {"content-type": "text/html"}),
)  # fmt: skip


@pytest.mark.proves("streams")
@pytest.mark.timeout(240)
def test_whatever_upstreams_send_over_http_is_a_legal_answer_or_error(
    serve: Serve, connect: Connect, shared_upstream: ScriptedUpstream, proof: Proof, trials: Trials
) -> None:
    served = start(serve, shared_upstream.url)
    client = connect(served)
    share = trials(20_000, 300) // len(PATHS) + 1

    def run(upstream: str) -> None:
        for number in range(share):
            with proof.trial(f"{upstream} {number}"):
                took = one(served, client, upstream, Random(f"{upstream}{number}"))
                proof.worst("slowest answer s", took)
                assert took < HANG

    with ThreadPoolExecutor(len(PATHS)) as pool:
        list(pool.map(run, PATHS))
    assert "Traceback" not in served.bridge.log.read_text(encoding="utf-8")
    assert not client.http.get("/v1/conversations/none").is_success


def start(serve: Serve, url: str) -> Served:
    return serve(
        OPENAI_BASE_URL=f"{url}/x",
        GEMINI_BASE_URL=f"{url}/g",
        ANTHROPIC_UPSTREAM_URL=f"{url}/a",
        MINIMAX_BASE_URL=f"{url}/m",
        DEEPSEEK_BASE_URL=f"{url}/d",
        BRIDGE_UPSTREAM_IDLE_SECONDS="1.5",
        BRIDGE_HOLD_SECONDS="1",
    )


def one(served: Served, client: Client, upstream: str, rng: Random) -> float:
    """One answer of an upstream's; how long the client waited."""
    case, stream = rng.choice(CASES[upstream]), rng.random() < 0.6
    content_type, raw = mutation.fuzzed(rng, case, CASES[upstream])
    chunks = tuple(chunk for chunk in cut(raw, mutation.cuts(rng, len(raw))) if chunk)
    answer: Answer | Raw = Answer(chunks, 200, {"content-type": content_type})
    if rng.random() < 0.4:
        answer = rng.choice(FAULTS)(rng, raw)
    for path in PATHS[upstream]:
        served.upstream.queue(path, answer)
    began = time.monotonic()
    asked = body("Hi", tools=[TOOL], stream=stream) | {"model": f"{upstream}/m"}
    response = client.http.post("/v1/messages", json=asked)
    took = time.monotonic() - began
    for path in PATHS[upstream]:
        served.upstream._queues[path].clear()
    check(response.status_code, response.headers.get("content-type", ""), response.content, upstream)
    return took


def check(status: int, content_type: str, said: bytes, upstream: str) -> None:
    relayed = upstream == "anthropic"
    if status != 200:
        grammar.check_error(said)
    elif content_type.startswith("text/event-stream"):
        grammar.check_stream(said, relayed=relayed)
    else:
        grammar.check_message(said, relayed=relayed)
