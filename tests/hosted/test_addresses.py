"""Where no tool may reach: private, link-local and metadata addresses in every disguise, at every entry point."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest

from conversations.hosted.addresses import Allowed
from conversations.hosted.runner import Limits, Runner
from conversations.hosted.values import Endpoint, Hosted, ToolFailed
from tests.api.conftest import Serve, Served
from tests.hosted.test_mcp import server
from tests.servers.client import Client
from translation.hosted import Offer

# {port} is a port of this machine where somebody listens who must hear nothing.
VECTORS = [
    "http://127.0.0.1:{port}/",
    "https://127.0.0.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://localhost:{port}/",
    "https://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://127.255.255.254:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://017700000001:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "https://0.0.0.0:{port}/",
    "http://[::1]:{port}/",
    "https://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "https://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::ffff:0:0]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[2001:0:7f00:1::80ff:fffe]:{port}/",
    "http://[fe80::1]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://[fec0::1]:{port}/",
    "http://[fc00::1]:{port}/",
    "http://[fd12:3456::1]:{port}/",
    "http://[ff02::1]:{port}/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://169.254.169.254/latest/meta-data/",
    "https://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/latest/meta-data/",
    "http://2852039166/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://169.254.170.2/v2/credentials",
    "http://100.100.100.200/latest/meta-data/",
    "http://168.63.129.16/machine/",
    "http://192.0.0.192/opc/v1/instance/",
    "http://10.0.0.1/",
    "https://10.255.255.255/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://192.168.1.1:{port}/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://192.0.2.1/",
    "http://user:pw@127.0.0.1:{port}/",
    "http://example.com@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@example.com/",
    "http://127.0.0.1:{port}?@example.com/",
    "http://example.com\\@127.0.0.1:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://１２７.０.０.１:{port}/",
    "ftp://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/_x",
    "//127.0.0.1:{port}/",
    "http:///x",
    "https://xn--a/",
    "http://",
    "",
]


@contextmanager
def listening() -> Iterator[tuple[int, list[object]]]:
    """A port on every address of this machine, and who came."""
    came: list[object] = []
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        threading.Thread(target=_accept, args=(listener, came), daemon=True).start()
        yield listener.getsockname()[1], came
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, came: list[object]) -> None:
    while True:
        try:
            connection, address = listener.accept()
        except OSError:
            return
        came.append(address)
        connection.close()


@pytest.fixture(scope="module")
def closed(serve_shared: Serve) -> Served:
    """A bridge whose tools may reach public hosts only."""
    return serve_shared(BRIDGE_TOOL_SECONDS="2")


@pytest.fixture
def client(closed: Served) -> Iterator[Client]:
    connected = Client(closed.bridge.url, closed.records.issue(hosted_tools=True))
    yield connected
    connected.close()


def register(client: Client, kind: str, url: str) -> int:
    return client.http.post("/v1/hosted-tools", json={"name": "t", "type": kind, "url": url}).status_code


def connect(client: Client, url: str) -> int:
    return client.ask("hi", mcp_servers=[server(url)]).status_code


def test_sink_hears_nothing_whoever_asks(client: Client) -> None:
    with listening() as (port, came):
        for vector in VECTORS:
            url = vector.format(port=port)
            statuses = [register(client, "http", url), register(client, "mcp", url), connect(client, url)]
            assert statuses == [400, 400, 400], url
        assert came == []


async def test_row_that_was_changed_behind_the_checks_reaches_nothing() -> None:
    """The last gate is where the call is made: whatever is in a row, the address is judged again."""
    with listening() as (port, came):
        for vector in VECTORS:
            with pytest.raises(ToolFailed):
                await Allowed(()).pin(vector.format(port=port))
        assert came == []


@pytest.mark.parametrize(
    "named",
    [
        ["example.com"],
        ["*"],
        ["*.example.com"],
        ["10.0.0.0/8"],
        ["169.254.0.0/16"],
        ["::ffff:127.0.0.1"],
        ["0.0.0.0"],
        ["fe80::/10"],
    ],
)
async def test_naming_one_thing_does_not_open_another(named: list[str]) -> None:
    allowed = Allowed(named)
    for url in (
        "http://127.0.0.1:1/",
        "http://[::1]:1/",
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "http://0.0.0.0/",
    ):
        with pytest.raises(ToolFailed):
            await allowed.pin(url)


@pytest.mark.parametrize(
    ("named", "url", "address"),
    [
        (["127.0.0.1"], "http://127.0.0.1:8/", "127.0.0.1"),
        (["localhost"], "http://localhost:8/", "127.0.0.1"),
        (["10.0.0.0/8"], "http://10.1.2.3/", "10.1.2.3"),
        (["[::1]"], "http://[::1]:8/", "::1"),
        ([], "https://93.184.215.14/", "93.184.215.14"),
        (["93.184.215.14"], "http://93.184.215.14/", "93.184.215.14"),
    ],
)
async def test_what_is_named_or_public_is_pinned(named: list[str], url: str, address: str) -> None:
    assert (await Allowed(named).pin(url)).address in (address, "::1")


@pytest.mark.parametrize("url", ["http://93.184.215.14/", "https://93.184.215.15/"])
async def test_list_closes_the_rest_of_the_internet(url: str) -> None:
    with pytest.raises(ToolFailed):
        await Allowed(["93.184.215.16"]).pin(url)


@contextmanager
def listening_at(address: str, port: int = 0) -> Iterator[tuple[int, list[object]]]:
    """Like `listening`, on one address."""
    came: list[object] = []
    with socket.create_server((address, port)) as listener:
        threading.Thread(target=_accept, args=(listener, came), daemon=True).start()
        yield listener.getsockname()[1], came
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kind", ["http", "mcp"])
async def test_name_that_changes_its_mind_is_dialled_where_it_was_judged(
    kind: Literal["http", "mcp"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: whoever looks the name up again gets an address that may not be reached."""
    answers = ["127.0.0.2"]

    def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        address = answers.pop() if answers else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async def nobody(_: object) -> None:
        return None

    with listening_at("127.0.0.2") as (port, judged), listening_at("127.0.0.1", port) as (_, came):
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        runner = Runner(Allowed(["127.0.0.2"]), Limits(tool_seconds=2), nobody)
        endpoint = Endpoint(kind, f"http://flip.example:{port}/mcp", "key 1", headers=(("authorization", "s3cret"),))
        outcome = await runner.run(Hosted(Offer("t", "s", "t"), endpoint), b"{}", 5, nobody)
        await runner.close()
    assert (outcome.error, bool(judged), came) == ("protocol", True, [])


async def test_name_is_judged_by_all_that_it_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half public, half private is an attempt at something."""
    answers: dict[str, list[str]] = {
        "mixed.example": ["93.184.215.14", "127.0.0.1"],
        "public.example": ["93.184.215.14"],
        "mapped.example": ["::ffff:10.0.0.1"],
    }

    def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, port)) for address in answers[host]]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    for host in ("mixed.example", "mapped.example"):
        with pytest.raises(ToolFailed, match="not on the public internet"):
            await Allowed(["*.example", "127.0.0.1"] if host == "mapped.example" else ["*.example"]).pin(
                f"https://{host}/"
            )
    assert (await Allowed(["*.example"]).pin("https://public.example/")).address == "93.184.215.14"
    with pytest.raises(ToolFailed, match="over https"):
        await Allowed(()).pin("http://public.example/")
    assert (await Allowed(["public.example"]).pin("http://public.example/")).address == "93.184.215.14"
