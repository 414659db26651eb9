"""The development server has no lifespan: the bridge starts with its first request."""

import subprocess
import sys
from pathlib import Path

import httpx

from tests.servers.bridge import PROJECT, clean_environment
from tests.servers.ports import free_port, wait_until

KEY = "sk-test-" + "0" * 32
BODY = {"model": "demo/demo", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}


def test_a_stream_through_daphne_is_whole(tmp_path: Path) -> None:
    port = free_port()
    environment = clean_environment(tmp_path, port) | {"BRIDGE_API_KEYS": KEY}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=PROJECT, env=environment, check=True)
    command = [sys.executable, "-m", "daphne", "-p", str(port), "-v0", "bridge_project.asgi:application"]
    with subprocess.Popen(command, cwd=PROJECT, env=environment) as server:
        try:
            wait_until(lambda: _answers(port), "daphne answers")
            answer = httpx.post(
                f"http://127.0.0.1:{port}/v1/messages", json=BODY, headers={"x-api-key": KEY}, timeout=30
            )
        finally:
            server.terminate()
    assert answer.status_code == 200
    assert answer.text.count("event: message_stop") == 1
    assert answer.text.rstrip().endswith('{"type":"message_stop"}')


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/livez", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
