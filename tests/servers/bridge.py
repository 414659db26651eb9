"""The real bridge as a subprocess: one web process, or the whole tree of `manage.py up`."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.servers import migrated
from tests.servers.keeper import kept
from tests.servers.ports import free_port, wait_until

PROJECT = Path(__file__).resolve().parents[2]


class Bridge:
    """One web process on its BRIDGE_HOME and port; `start` again after a stop or a kill continues with both."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.api_key = "sk-test-" + "0" * 32
        self.environment = clean_environment(home, self.port) | {"BRIDGE_API_KEYS": self.api_key} | dict(environment)
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns when the bridge serves; if it ends instead, its own words are the failure."""
        migrated.provide(self.environment)
        ready, announce = os.pipe()
        self.log = self.home.with_name(f"{self.home.name}.log")
        with self.log.open("a", encoding="utf-8") as log:
            self._process = kept(subprocess.Popen(
                [sys.executable, "-m", "bridge_project.up.web", f"--announce={announce}"],
                cwd=PROJECT, env=self.environment, pass_fds=(announce,), stderr=log, stdout=log, text=True,
            ))  # fmt: skip
        os.close(announce)
        with os.fdopen(ready, "rb") as answer:
            assert answer.read(), f"the bridge did not start:\n{self.log.read_text(encoding='utf-8')}"
        wait_until(lambda: self.status("/readyz") == 200, "the bridge is ready")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def status(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            with connection.getresponse() as response:  # one that is not read keeps the socket open
                response.read()
                return response.status
        finally:
            connection.close()

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """Status and decoded JSON of one request with the bridge's API key."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"x-api-key": self.api_key, "content-type": "application/json", **(headers or {})}
        try:
            connection.request("POST", path, json.dumps(body), given)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """SIGKILL is a crash: nothing is drained, nothing is said."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None

    def manage(self, *arguments: str, **environment: str) -> None:
        """A management command on this bridge's home."""
        command = [sys.executable, "manage.py", *arguments]
        subprocess.run(command, cwd=PROJECT, env=self.environment | environment, check=True, stdout=subprocess.DEVNULL)

    def crash(self) -> None:
        self.stop(signal.SIGKILL)


def clean_environment(home: Path, port: int) -> dict[str, str]:
    """Nothing of the developer's own configuration reaches a bridge under test."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"BRIDGE_HOME": str(home), "PORT": str(port)}
