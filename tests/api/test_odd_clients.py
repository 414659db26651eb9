"""Odd but legal ways to send a request: none of them is seen in the answer."""

import gzip
import json
import socket
import zlib
from contextlib import closing, suppress

import httpx
import pytest

from bridge_project.up.requests import HEAD_BYTES
from conversations.api.incoming import BODY_LIMIT
from tests.api.conftest import CHAT, Served
from tests.servers import chat
from tests.servers.client import Client, body
from tests.servers.script import Silence, sse_answer

ASKED = json.dumps(body("Hi")).encode()
# What Java's HttpClient sends with every request to an http:// address, unless it is told not to.
WISH = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAA\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(ASKED), ASKED)
WHOLE = b"content-length: %d\r\n\r\n%b" % (len(ASKED), ASKED)


def told(served: Served, *parts: bytes, statuses: int = 1) -> bytes:
    """All that a connection is told, until so many answers have come or it is closed."""
    heard = b""
    with closing(socket.create_connection(("127.0.0.1", served.bridge.port), timeout=10)) as sock:
        for part in parts:
            with suppress(ConnectionError):  # who is refused may be told so before all was sent
                sock.sendall(part)
        while heard.count(b"HTTP/1.1 ") < statuses or not heard.endswith(b"}"):
            more = sock.recv(65536)
            if not more:
                break
            heard += more
    return heard


def request(client: Client, rest: bytes, wish: bytes = WISH) -> bytes:
    return b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: %b\r\n%b%b" % (
        client.api_key.encode(),
        wish,
        rest,
    )


@pytest.mark.parametrize("rest", [WHOLE, CHUNKED])
def test_a_wish_for_another_protocol_does_not_cost_the_body(client: Client, served: Served, rest: bytes) -> None:
    served.upstream.always(CHAT, chat.text("Hello."))
    asked = request(client, rest)
    assert told(served, asked + asked, statuses=2).count(b'"text":"Hello."') == 2
    assert told(served, *(asked[at : at + 50] for at in range(0, len(asked), 50))).count(b'"text":"Hello."') == 1
    assert {len(sent.json()["messages"]) for sent in served.upstream.requests} == {1}


def test_a_wish_without_a_body_is_passed_over(client: Client, served: Served) -> None:
    asked = request(client, b"\r\n").replace(b"POST /v1/messages", b"GET /v1/models")
    assert told(served, asked * 2, statuses=2).count(b"200 OK") == 2
    assert b" 400 " in told(served, asked.replace(b"GET /v1/models", b"CONNECT x:1") + b"{}")


def test_a_tunnel_is_no_socket(client: Client, served: Served) -> None:
    head = request(client, b"connection: close\r\n\r\n", wish=b"").replace(b"POST /v1/messages", b"CONNECT /v1/models")
    heard = told(served, head)
    assert (b" 405 " in heard, b'"type":"error"' in heard) == (True, True)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_of_http_1_0_gets_no_chunks(client: Client, served: Served, stream: bool) -> None:
    served.chat(chat.streamed_text("Hel", "lo.") if stream else chat.text("Hello."))
    asked = json.dumps(body("Hi", stream=stream)).encode()
    rest = b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n%b" % (len(asked), asked)
    with closing(socket.create_connection(("127.0.0.1", served.bridge.port), timeout=10)) as sock:
        sock.sendall(request(client, rest, wish=b"").replace(b" HTTP/1.1", b" HTTP/1.0"))
        heard = b"".join(iter(lambda: sock.recv(65536), b""))
    head, _, said = heard.partition(b"\r\n\r\n")
    assert (head.split()[1], b"connection: close" in head, b"transfer-encoding" in head) == (b"200", True, False)
    assert said.startswith(b"event: message_start\n" if stream else b"{")
    assert said.endswith(b'data: {"type":"message_stop"}\n\n' if stream else b"}")
    assert (b"content-length: %d" % len(said) in head) is not stream


def test_white_space_around_a_header_is_none_of_it(client: Client, served: Served) -> None:
    served.chat(chat.text("Hello."))
    padded = request(client, WHOLE, wish=b"anthropic-version:  2023-06-01 \t\r\n").replace(b"\r\nan", b" \r\nan")
    assert b"Hello." in told(served, padded)


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/models"])
def test_of_two_keys_the_one_that_is_known_counts(client: Client, path: str) -> None:
    known, other = client.api_key, "sk-ant-for-somebody-else"
    method, sent = ("GET", None) if path.endswith("models") else ("POST", body("Hi"))
    for key, bearer, status in ((known, other, 200), (other, known, 200), (other, other, 401)):
        headers = {"x-api-key": key, "authorization": f"Bearer {bearer}"}
        answer = httpx.request(method, f"{client.http.base_url}{path}", json=sent, headers=headers)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/models", "/v1/conversations"])
def test_a_key_that_is_sent_twice_is_one_everywhere(client: Client, served: Served, path: str) -> None:
    """Some proxies add what the client has sent already."""
    served.upstream.always(CHAT, chat.text("Hello."))
    key = b"x-api-key: %b\r\nconnection: close\r\n" % client.api_key.encode()
    asked = request(client, WHOLE if path == "/v1/messages" else b"\r\n", key)
    asked = asked if path == "/v1/messages" else asked.replace(b"POST /v1/messages", b"GET " + path.encode())
    assert b" 200 OK" in told(served, asked)


def test_who_leaves_with_requests_in_line_is_no_error(client: Client, served: Served) -> None:
    """Only the last of them was told that its client had gone: the log had an error and a traceback for each."""
    asked = request(client, WHOLE, b"")
    for answer in (sse_answer(Silence()), chat.streamed_text("Hel", Silence())):
        served.chat(answer)
        before = served.bridge.log.read_text()
        stream = json.dumps(body("Hi", stream=True)).encode()
        first = request(client, b"content-length: %d\r\n\r\n%b" % (len(stream), stream), b"")
        with closing(socket.create_connection(("127.0.0.1", served.bridge.port), timeout=10)) as sock:
            sock.sendall(first + asked * 2)
            (sent,) = served.upstream.wait_for_requests(1)
        assert sent.abandoned.wait(5)
        served.upstream.reset()
        served.records.ended(client.api_key, served.records.turns(client.api_key).count())
        assert "ERROR" not in served.bridge.log.read_text().removeprefix(before)


@pytest.mark.parametrize("path", ["/v1/messages/", "/anthropic/v1/messages/", "/v1/messages/?beta=true"])
def test_a_slash_at_the_end_of_a_path_is_none_of_it(client: Client, served: Served, path: str) -> None:
    served.chat(chat.text("Hello."))
    assert client.http.post(path, json=body("Hi")).json()["content"][0]["text"] == "Hello."


def test_a_slash_at_the_end_of_other_paths_is_none_of_them_either(client: Client, served: Served) -> None:
    served.chat(chat.text("Hello."))
    assert client.http.post("/chat/completions/", json=body("Hi")).json()["object"] == "chat.completion"
    assert client.get("/v1/models/") == client.get("/v1/models") == client.get("/models/")
    name = client.get("/v1/conversations/")["first_id"]
    assert client.get(f"/v1/conversations/{name}/")["id"] == name
    assert client.get(f"/anthropic/v1/conversations/{name}/tool-mappings/")["data"] == []
    assert client.http.post(f"/v1/conversations/{name}/terminate/").json()["status"] == "terminated"


def test_a_head_is_the_one_that_get_would_give(client: Client) -> None:
    for path, status in (("/v1/models", 200), ("/v1/models/nobody", 404), ("/v1/messages", 405)):
        head, whole = client.http.head(path), client.http.get(path)
        assert (head.status_code, head.content) == (whole.status_code, b"") == (status, b"")
        assert head.headers["content-length"] == whole.headers["content-length"]


def packed(client: Client, content: bytes, coding: str) -> httpx.Response:
    return client.http.post("/v1/messages", content=content, headers={"content-encoding": coding})


@pytest.mark.parametrize(
    ("content", "coding"),
    [
        (gzip.compress(ASKED), "gzip"),
        (gzip.compress(ASKED), "GZIP"),
        (zlib.compress(ASKED), "deflate"),
        (ASKED, "Identity"),
    ],
)
def test_a_packed_body_is_read(client: Client, served: Served, content: bytes, coding: str) -> None:
    served.chat(chat.text("Hello."))
    assert packed(client, content, coding).json()["content"][0]["text"] == "Hello."


@pytest.mark.parametrize(
    ("content", "coding", "status", "code"),
    [
        (b"x", "gzip", 400, "request_body_encoding_invalid"),
        (ASKED, "gzip", 400, "request_body_encoding_invalid"),
        (gzip.compress(ASKED)[:-1], "gzip", 400, "request_body_encoding_invalid"),
        (gzip.compress(ASKED) + b"more", "gzip", 400, "request_body_encoding_invalid"),
        (b"", "deflate", 400, "request_body_encoding_invalid"),
        (ASKED, "br", 400, "request_body_encoding_unsupported"),
        (gzip.compress(b" " * (BODY_LIMIT + 1)), "gzip", 413, "request_body_too_large_after_decoding"),
    ],
)
def test_a_body_that_is_not_packed_as_it_says_has_its_own_code(
    client: Client, content: bytes, coding: str, status: int, code: str
) -> None:
    answer = packed(client, content, coding)
    assert (answer.status_code, answer.json()["error"]["details"]["error_code"]) == (status, code)


def test_a_packed_body_is_unpacked_only_for_who_has_a_key(served: Served) -> None:
    answer = httpx.post(
        f"{served.bridge.url}/v1/messages", content=b"x", headers={"content-encoding": "gzip", "x-api-key": "nobody's"}
    )
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "rest", [b"no colon\r\n\r\n", b"content-length: -1\r\n\r\n", b"content-length: 1\r\n" + CHUNKED]
)
def test_what_is_no_http_is_refused_as_everything_else(client: Client, served: Served, rest: bytes) -> None:
    head, _, told_body = told(served, request(client, rest, wish=b"")).partition(b"\r\n\r\n")
    error = json.loads(told_body)
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"request-id: " + error["request_id"].encode() + b"\r\n" in head
    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")


@pytest.mark.parametrize("line", [b"a: b\r\n" * 2000, b"a: " + b"b" * 20_000 + b"\r\n", b"b" * 20_000])
@pytest.mark.parametrize("rest", [b"", b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"])
def test_a_head_and_what_follows_a_body_are_bounded(client: Client, served: Served, line: bytes, rest: bytes) -> None:
    """Who has no key yet can make the bridge keep little, and copy little."""
    answer = told(served, request(client, rest + line * (3 * HEAD_BYTES // len(line)), wish=b""))
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


def test_what_follows_a_body_is_no_header(client: Client, served: Served) -> None:
    key = b"0\r\nx-api-key: %b\r\n\r\n" % client.api_key.encode()
    head = b"GET /v1/conversations HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"
    assert told(served, head + key).startswith(b"HTTP/1.1 401 ")


def test_an_answer_is_not_interrupted_by_a_refusal(client: Client, served: Served) -> None:
    served.upstream.always(CHAT, sse_answer(chat.chunk({"content": "Hel"}), Silence()))
    asked = json.dumps(body("Hi", stream=True)).encode()
    whole = request(client, b"content-length: %d\r\n\r\n%b" % (len(asked), asked), wish=b"")
    with closing(socket.create_connection(("127.0.0.1", served.bridge.port), timeout=10)) as sock:
        sock.sendall(whole)
        heard = b""
        while b"Hel" not in heard:
            heard += sock.recv(65536)
        sock.sendall(b"no HTTP\r\n\r\n")
        while more := sock.recv(65536):
            heard += more
    assert heard.count(b"HTTP/1.1 ") == 1
