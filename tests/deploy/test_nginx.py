"""deploy/nginx.conf in front of a bridge: events come through as they are sent, in both directions nothing is lost."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import StartBridge
from tests.servers import chat
from tests.servers.bridge import PROJECT
from tests.servers.client import Client
from tests.servers.keeper import kept
from tests.servers.ports import free_port, wait_until
from tests.servers.script import Gate
from tests.servers.upstream import ScriptedUpstream


@contextmanager
def running_nginx(backend: int, folder: Path) -> Iterator[str]:
    command = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if command is None:
        pytest.skip("no nginx: `make servers` could not install it")
    port = free_port()
    path = folder / "nginx.conf"
    path.write_text(_configuration(backend, port, folder), encoding="utf-8")
    server = kept(
        subprocess.Popen([command, "-c", str(path), "-g", "daemon off;"], cwd=folder, stderr=subprocess.DEVNULL)
    )
    try:
        wait_until(lambda: _answers(port), "nginx answers")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def _configuration(backend: int, port: int, folder: Path) -> str:
    """The file that is deployed, but for its addresses and certificates."""
    deployed = (PROJECT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    deployed = re.sub(r"server 127\.0\.0\.1:8000", f"server 127.0.0.1:{backend}", deployed)
    deployed = re.sub(r"\n +(server 127\.0\.0\.1:8001|ssl_certificate|ssl_certificate_key) ?.*", "", deployed)
    deployed = deployed.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # A large body goes through a temporary file; as root its workers would be nobody, who may not write here.
    user = "user root;" if os.getuid() == 0 else ""
    return (
        f"{user} pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;\n"
        f"events {{ worker_connections 512; }}\nhttp {{ access_log off; {temporary}\n{deployed}\n}}\n"
    )


def _answers(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/metrics")
    except httpx.TransportError:
        return False
    return True


def test_events_come_through_as_they_are_sent(
    start_bridge: StartBridge, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    bridge = start_bridge(OPENAI_BASE_URL=f"{upstream.url}/v1", MODEL_MAP_DEFAULT="openai/gpt-test")
    gate = Gate()
    upstream.queue("/v1/chat/completions", chat.streamed_text("Hel", gate, "lo"))
    with running_nginx(bridge.port, tmp_path) as url:
        client = Client(url, bridge.api_key)
        with client.stream("Hello") as (response, events):
            assert response.status_code == 200
            seen = []
            for event in events:
                seen.append(event)
                if event.data.get("delta", {}).get("text") == "Hel":
                    # The upstream says no more until this has arrived.
                    gate.open()
        assert seen[-1].name == "message_stop"
        too_large = client.ask("x" * (32 * 1024 * 1024 + 1))
        assert (too_large.status_code, too_large.json()["error"]["type"]) == (413, "request_too_large")
        assert client.http.get("/metrics").status_code == 404
        client.close()
