"""What is measured: the upstream itself, nginx, LiteLLM and claude-code-router as peers, the bridge in its variants."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
from msgspec import Struct

from bench import bodies, machine
from bench.load import KEY, ask
from tests.servers.ports import free_port

PROJECT = Path(__file__).resolve().parent.parent
HOME = PROJECT / "var" / "bench"
LITELLM = PROJECT / ".bench" / "litellm" / "bin" / "litellm"
ROUTER = PROJECT / ".bench" / "ccr" / "node_modules" / ".bin" / "ccr"
MESSAGES, CHAT = "/v1/messages", "/v1/chat/completions"


class Running(Struct, frozen=True):
    """A server that answers."""

    port: int
    path: str
    complete: bytes
    pid: int
    cold_start: float = 0.0

    @property
    def web(self) -> int:
        """The process that serves, of a bridge's tree; else the server itself."""
        for process in machine.tree(self.pid):
            if "bridge_project.up.web" in process.cmdline():
                return process.pid
        return self.pid


@contextmanager
def launched(
    command: list[str], environment: dict[str, str], cores: frozenset[int], log: Path, tree: Path = PROJECT
) -> Iterator[int]:
    """A process group of its own, ended whole."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True, preexec_fn=lambda: machine.pin(cores),  # noqa: PLW1509 - nothing is threaded here
        )  # fmt: skip
    try:
        yield process.pid
    finally:
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    members = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        for pid in members:
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait(5)


@contextmanager
def fake_upstream() -> Iterator[Running]:
    port = free_port()
    with launched(
        [sys.executable, "-m", "bench.upstream", str(port)], dict(os.environ), machine.LOAD, HOME / "upstream.log"
    ) as pid:
        wait(port, CHAT, pid)
        yield Running(port, CHAT, b"[DONE]", pid)


@contextmanager
def nginx(upstream: int) -> Iterator[Running]:
    port, command = free_port(), shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert command is not None
    folder = HOME / "nginx"
    folder.mkdir(exist_ok=True)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 20000; }}\n"
        f"http {{ access_log off; client_max_body_size 64m; client_body_buffer_size 1m; {temporary}\n"
        f"upstream fake {{ server 127.0.0.1:{upstream}; keepalive 256; }}\n"
        f"server {{ listen 127.0.0.1:{port} backlog=4096; keepalive_requests 1000000;\n"
        f'location / {{ proxy_pass http://fake; proxy_http_version 1.1; proxy_set_header Connection "";'
        f" proxy_buffering off; }} }} }}\n"
    )
    started = time.perf_counter()
    with launched(
        [command, "-c", str(folder / "nginx.conf"), "-g", "daemon off;"],
        dict(os.environ),
        machine.SERVER,
        HOME / "nginx.log",
    ) as pid:
        wait(port, CHAT, pid)
        yield Running(port, CHAT, b"[DONE]", pid, time.perf_counter() - started)


@contextmanager
def litellm(upstream: int) -> Iterator[Running]:
    """As a user would run it for this purpose: one worker, no telemetry, no database, Chat Completions upstream."""
    port, configuration = free_port(), HOME / "litellm.yaml"
    configuration.write_text(
        f'model_list:\n  - model_name: "claude-*"\n    litellm_params: '
        f'{{model: openai/fake-model, api_base: "http://127.0.0.1:{upstream}/v1", api_key: sk-fake}}\n'
        "litellm_settings: {telemetry: false, num_retries: 0, drop_params: true, "
        "use_chat_completions_url_for_anthropic_messages: true}\n"
    )
    quiet = {"LITELLM_LOG": "ERROR", "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [
        str(LITELLM),
        "--config",
        str(configuration),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--num_workers",
        "1",
    ]
    started = time.perf_counter()
    with launched(command, {**os.environ, **quiet}, machine.SERVER, HOME / "litellm.log") as pid:
        wait(port, MESSAGES, pid, seconds=180)
        yield Running(port, MESSAGES, b"message_stop", pid, time.perf_counter() - started)


@contextmanager
def router(upstream: int) -> Iterator[Running]:
    """claude-code-router as its README configures it: one provider, no logs."""
    port, home = free_port(), HOME / "ccr"
    (home / ".claude-code-router").mkdir(parents=True, exist_ok=True)
    provider = {
        "name": "fake",
        "api_base_url": f"http://127.0.0.1:{upstream}/v1/chat/completions",
        "api_key": "sk-fake",
        "models": ["fake-model"],
    }
    settings = {"HOST": "127.0.0.1", "PORT": port, "LOG": False, "APIKEY": KEY, "NON_INTERACTIVE_MODE": True}
    configuration = settings | {"Providers": [provider], "Router": {"default": "fake,fake-model"}}
    (home / ".claude-code-router" / "config.json").write_text(json.dumps(configuration))
    started = time.perf_counter()
    environment = {**os.environ, "HOME": str(home), "NODE_ENV": "production"}
    with launched([str(ROUTER), "start"], environment, machine.SERVER, HOME / "ccr.log") as pid:
        wait(port, MESSAGES, pid)
        yield Running(port, MESSAGES, b"message_stop", pid, time.perf_counter() - started)


def toolbridge(upstream: int, name: str, **settings: str) -> AbstractContextManager[Running]:
    """What `make run` starts, in a home of its own that is made anew."""
    return bridge_of(PROJECT, upstream, name, settings)


@contextmanager
def bridge_of(tree: Path, upstream: int, name: str, settings: Mapping[str, str]) -> Iterator[Running]:
    """The same of any tree of the project."""
    home, port = HOME / name, free_port()
    shutil.rmtree(home, ignore_errors=True)
    python = PROJECT / ".venv" / "bin" / "python"
    environment = surroundings(upstream, name) | {"PORT": str(port), **settings}
    command = [str(python) if python.exists() else sys.executable, "manage.py", "up"]
    # One process or more on PostgreSQL are compared with each other: a core of its own would be worth more than a core.
    cores = machine.CORES if "DATABASE_URL" in settings else machine.SERVER
    started = time.perf_counter()
    with launched(command, environment, cores, HOME / f"{name}.log", tree) as pid:
        wait(port, MESSAGES, pid)
        yield Running(port, MESSAGES, b"message_stop", pid, time.perf_counter() - started)


def surroundings(upstream: int, name: str) -> dict[str, str]:
    """The environment of a bridge, and of what works on the same database."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TMPDIR") if key in os.environ}
    return {
        **kept,
        "BRIDGE_HOME": str(HOME / name),
        "BRIDGE_API_KEYS": KEY,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream}/v1",
        "MODEL_MAP_DEFAULT": "openai/fake-model",
    }


def wait(port: int, path: str, pid: int, seconds: float = 60) -> None:
    """Until it answers a small request."""
    deadline, complaint = time.monotonic() + seconds, "nothing listens"
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            raise SystemExit(f"a server ended before it served; its log is in {HOME}")
        try:
            result = ask(port, path, bodies.small())
        except OSError:
            time.sleep(0.02)
            continue
        if result.latencies:
            return
        complaint = result.complaint
        time.sleep(0.05)
    raise SystemExit(f"no answer from port {port} in {seconds} s: {complaint}")
