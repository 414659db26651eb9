"""TLS: trust, names, pins; the certificate authority is made here."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from conversations.transport import Transport
from tests.transport.peer import OK, body_of

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Authority(NamedTuple):
    server: ssl.SSLContext
    client: ssl.SSLContext


class Secure(NamedTuple):
    port: int
    names: list[str | None]  # asked for with SNI
    requests: list[bytes]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = _self_signed()
    (folder / "pem").write_bytes(certificate + key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(Path(folder / "pem"))
    return Authority(server, ssl.create_default_context(cadata=certificate.decode()))


@pytest.fixture
async def secure(authority: Authority) -> AsyncIterator[Secure]:
    names: list[str | None] = []
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await _head(reader):
            requests.append(request)
            writer.write(CHUNKED + b"3\r\ncut\r\n" if b" /cut " in request else OK)
            if b" /cut " in request:
                break
        writer.close()

    authority.server.sni_callback = lambda _socket, name, _context: names.append(name)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=authority.server)
    yield Secure(server.sockets[0].getsockname()[1], names, requests)
    server.close()


@pytest.fixture
async def trusting(authority: Authority) -> AsyncIterator[Transport]:
    transport = Transport(ssl_context=authority.client)
    yield transport
    await transport.aclose()


def ask(url: str) -> httpx.Request:
    return httpx.Request("GET", url, extensions={"connect_to": "127.0.0.1"})


async def test_a_pinned_name_is_kept_in_sni_host_and_check(trusting: Transport, secure: Secure) -> None:
    for _ in range(2):
        response = await trusting.handle_async_request(ask(f"https://upstream.test:{secure.port}/"))
        assert await body_of(response) == b"ok"
    assert secure.names == ["upstream.test"]  # one connection for both
    assert b"Host: upstream.test:" in secure.requests[0]


async def test_an_address_is_checked_too(trusting: Transport, secure: Secure) -> None:
    request = httpx.Request("GET", f"https://127.0.0.1:{secure.port}/")
    assert await body_of(await trusting.handle_async_request(request)) == b"ok"


async def test_another_name_is_connect_error(trusting: Transport, secure: Secure) -> None:
    with pytest.raises(httpx.ConnectError, match=r"other\.test"):
        await trusting.handle_async_request(ask(f"https://other.test:{secure.port}/"))


async def test_an_unknown_authority_is_connect_error(transport: Transport, secure: Secure) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        await transport.handle_async_request(ask(f"https://upstream.test:{secure.port}/"))


async def test_a_body_cut_short_is_remote_protocol_error(trusting: Transport, secure: Secure) -> None:
    response = await trusting.handle_async_request(ask(f"https://upstream.test:{secure.port}/cut"))
    with pytest.raises(httpx.RemoteProtocolError):
        await body_of(response)


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def _self_signed() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test authority")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("upstream.test"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM), pem
