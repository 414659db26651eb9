"""`manage.py up`: what it prints, what it survives, and how it ends."""

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest

from bridge_project.up.claims import claim_port
from tests.servers.bridge import PROJECT, clean_environment
from tests.servers.ports import free_port, wait_until
from tests.servers.tree import Tree

StartTree = Callable[..., tuple[Tree, str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def start(home: Path) -> Iterator[StartTree]:
    trees: list[Tree] = []

    def start_tree(**environment: str) -> tuple[Tree, str]:
        tree = Tree(home, environment)
        trees.append(tree)
        return tree, tree.start()

    yield start_tree
    for tree in trees:
        tree.stop()


def test_the_first_run_prints_credentials_that_work_and_the_second_does_not_repeat_them(start: StartTree) -> None:
    tree, printed = start()
    url = f"http://127.0.0.1:{tree.port}"
    assert f"Toolbridge serves {url}" in printed
    assert "only the built-in demo" in printed
    (key,) = set(re.findall(r"sk-tb-[\w-]+", printed))
    assert f"ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY={key} claude -p" in printed
    assert set(re.findall(r"claude-[a-z]+-[\d-]+", printed)) == {"claude-sonnet-5-5"}  # as in the README and the admin
    (password,) = re.findall(r"user admin, password (\S+)", printed)
    assert signs_in(url, "admin", password)
    assert tree.stop() == 0

    _, printed = start()
    assert key not in printed
    assert password not in printed
    assert "as printed by the first run" in printed


def test_upstreams_of_the_admin_count_as_such_when_it_starts_again(start: StartTree, home: Path) -> None:
    tree, printed = start()
    assert "only the built-in demo" in printed
    tree.stop()
    with closing(sqlite3.connect(home / "bridge.sqlite3")) as database, database:
        database.execute(
            "INSERT INTO conversations_upstream (name, provider, base_url, secret, key_count, enabled, changed_at)"
            " VALUES ('work', 'openai', '', x'', 0, 1, '2026-01-01')"
        )
    assert "demo" not in start()[1]


def test_a_key_that_left_the_environment_and_is_still_accepted_is_told(start: StartTree) -> None:
    one, other = "sk-given-one-0123456789", "sk-given-other-0123456789"
    tree, _ = start(BRIDGE_API_KEYS=f"{one},{other}")
    tree.stop()
    assert "BRIDGE_API_KEYS" not in tree.errors()
    tree, _ = start(BRIDGE_API_KEYS=other)
    tree.stop()
    (line,) = [line for line in tree.errors().splitlines() if "BRIDGE_API_KEYS" in line]
    assert line.startswith("toolbridge: environment 1 (sk-…) is no longer in BRIDGE_API_KEYS")
    assert (one not in line, "still accepted; manage.py revoke_key" in line) == (True, True)


def test_settings_that_do_not_fit_together_are_told(start: StartTree) -> None:
    tree, _ = start(MODEL_MAP_SONNET="gpt-5.5", MODEL_MAP_OPUS="openai/gpt-5.5", BRIDGE_CORS_ORIGINS="a.example")
    unset = (
        "MODEL_MAP_OPUS names 'openai', which no variable configures: set OPENAI_API_KEY, or add an upstream of that "
        "name in the admin"
    )
    tree.stop()
    assert set(tree.errors().splitlines()) >= {
        f"toolbridge: {unset}",
        "toolbridge: MODEL_MAP_SONNET is 'gpt-5.5'; it must be provider/model",
        "toolbridge: BRIDGE_CORS_ORIGINS holds 'a.example'; an origin is scheme://host[:port]",
    }


def test_what_was_given_and_does_nothing_is_told(start: StartTree) -> None:
    tree, printed = start(BRIDGE_INACTIVTY_HOURS="3", ANTHROPIC_API_KEY="sk-tb-of-a-client", MINIMAX_API_KEY="sk-x")
    tree.stop()
    assert set(tree.errors().splitlines()) >= {
        "toolbridge: BRIDGE_INACTIVTY_HOURS is no setting; BRIDGE_INACTIVITY_HOURS?",
        "toolbridge: ANTHROPIC_API_KEY is a key for this bridge's clients: it is not used as Anthropic's",
        "toolbridge: MINIMAX_API_KEY does nothing without MINIMAX_BASE_URL",
    }
    assert "user admin, password" in printed
    tree, printed = start(BRIDGE_ADMIN_USER="somebody-else")
    tree.stop()
    assert "somebody-else" not in printed
    assert "manage.py createsuperuser" in printed


def test_in_production_the_admin_is_where_the_proxy_is(start: StartTree, home: Path) -> None:
    tree, printed = start(BRIDGE_ENV="production", BRIDGE_SECRET_KEY="k9" * 30, BRIDGE_ALLOWED_HOSTS="bridge.example")
    assert f"Toolbridge serves http://127.0.0.1:{tree.port}\n" in printed
    assert "https://bridge.example/admin/" in printed
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_web_process_that_nobody_waits_for_any_more_says_nothing(home: Path) -> None:
    port = free_port()
    ready, announce = os.pipe()
    os.close(ready)
    web = subprocess.Popen(
        [sys.executable, "-m", "bridge_project.up.web", f"--announce={announce}"],
        cwd=PROJECT, env=clean_environment(home, port), pass_fds=(announce,), stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(announce)

    def served() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/livez", timeout=30).status_code == 200
        except httpx.TransportError:
            return web.poll() is not None

    wait_until(served, "it serves, or has ended")
    web.terminate()
    _, errors = web.communicate(timeout=40)
    assert errors == b""


def test_the_curl_line_works_when_pasted(start: StartTree) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    _, printed = start()
    command = printed[printed.index("curl ") : printed.index("ANTHROPIC_BASE_URL")].strip()
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert (answer["type"], answer["stop_reason"]) == ("message", "end_turn")


def test_given_credentials_are_used_and_not_printed(start: StartTree) -> None:
    tree, printed = start(
        BRIDGE_API_KEYS="sk-given-key-0123456789", BRIDGE_ADMIN_USER="ops", BRIDGE_ADMIN_PASSWORD="correct horse",
        OPENAI_API_KEY="sk-upstream",
    )  # fmt: skip
    assert "sk-" not in printed
    assert "correct horse" not in printed
    assert "demo" not in printed
    assert signs_in(f"http://127.0.0.1:{tree.port}", "ops", "correct horse")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_whole_tree_with_exit_code_0(start: StartTree, number: signal.Signals) -> None:
    tree, _ = start(WEB_WORKERS="2")
    processes = tree.wait_for_processes(4)
    assert tree.stop(number) == 0
    assert not [process for process in processes if process.is_running()]


def test_a_killed_supervisor_leaves_no_orphans(start: StartTree) -> None:
    tree, _ = start()
    processes = tree.wait_for_processes(3)
    tree.process.kill()
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not alive


def test_a_web_process_that_dies_is_replaced(start: StartTree) -> None:
    tree, _ = start()
    web = web_of(tree)
    web.kill()
    wait_until(lambda: web.pid not in {process.pid for process in tree.processes()}, "the dead one is gone")
    tree.wait_for_processes(3)
    # The socket stayed open meanwhile, so this waits for the new process instead of being refused.
    assert httpx.get(f"http://127.0.0.1:{tree.port}/livez", timeout=30).status_code == 200


def web_of(tree: Tree) -> psutil.Process:
    return next(process for process in tree.wait_for_processes(3) if "bridge_project.up.web" in process.cmdline())


def test_a_web_process_that_hangs_is_replaced(start: StartTree) -> None:
    """Stopped, it looks the same from outside: it lives, and its event loop stands still."""
    tree, _ = start(BRIDGE_HANG_SECONDS="3")
    web = web_of(tree)
    web.suspend()
    wait_until(lambda: web.pid not in {process.pid for process in tree.processes()}, "the one that hung is gone")
    assert httpx.get(f"http://127.0.0.1:{tree.port}/livez", timeout=30).status_code == 200
    assert f"bridge_project.up.web {web.pid} has stood still for 3 s" in tree.errors()


def test_nobody_is_replaced_because_everybody_was_stopped(start: StartTree) -> None:
    """A machine that sleeps, a container that is paused."""
    tree, _ = start(BRIDGE_HANG_SECONDS="3")
    web = web_of(tree)
    for process in tree.processes():
        process.suspend()
    time.sleep(4)
    for process in tree.processes():
        process.resume()
    time.sleep(2)
    assert web_of(tree).pid == web.pid
    assert "stood still" not in tree.errors()


def test_a_second_start_on_one_home_is_refused(start: StartTree, home: Path) -> None:
    first, _ = start()
    code, errors = Tree(home).fail()
    assert code == 1
    assert errors == f"toolbridge: already running on BRIDGE_HOME {home} as process {first.process.pid}\n"


def test_a_taken_port_is_named(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        code, errors = Tree(home, port=port).fail()
    assert code == 1
    assert errors == f"toolbridge: cannot listen on 127.0.0.1:{port}: the port is taken; choose another with PORT=\n"


def test_a_home_that_cannot_be_made_is_named(home: Path) -> None:
    home.touch()
    code, errors = Tree(home, {"BRIDGE_HOME": f"{home}/below"}).fail()
    assert code == 1
    assert one_line(errors, f"BRIDGE_HOME {home}/below cannot be")


def test_a_read_only_home_is_named(home: Path) -> None:
    home.mkdir(mode=0o555)
    # Permissions do not stop root unless it gives up its capabilities.
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
    done = subprocess.run(
        [*powerless, sys.executable, "manage.py", "up"],
        cwd=PROJECT,
        env=clean_environment(home, free_port()),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert one_line(done.stderr, f"BRIDGE_HOME {home} cannot be used: Permission denied")


@pytest.mark.parametrize("damage", ["garbage", "cut"])
def test_a_damaged_database_is_named(start: StartTree, home: Path, damage: str) -> None:
    tree, _ = start()
    assert tree.stop() == 0
    database = home / "bridge.sqlite3"
    whole = database.read_bytes()
    database.write_bytes(b"this is not a database " * 500 if damage == "garbage" else whole[: len(whole) // 2 + 100])
    code, errors = Tree(home).fail()
    assert code == 1
    assert one_line(errors, f"the database {database} ")


def test_a_migration_that_was_interrupted_is_finished(start: StartTree, home: Path) -> None:
    tree, _ = start()
    assert tree.stop() == 0
    with closing(sqlite3.connect(home / "bridge.sqlite3")) as database, database:
        database.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
        database.execute("DROP TABLE django_session")
    tree, _ = start()
    assert httpx.get(f"http://127.0.0.1:{tree.port}/readyz", timeout=30).status_code == 200


def test_a_database_that_does_not_answer_is_named(home: Path) -> None:
    port = free_port()
    code, errors = Tree(home, {"DATABASE_URL": f"postgres://someone:secret@127.0.0.1:{port}/bridge"}).fail()
    assert code == 1
    assert one_line(errors, "the database bridge on 127.0.0.1 cannot be used: ")
    assert "secret" not in errors


def test_postgresql_and_redis_serve_the_whole_tree(start: StartTree, postgres_url: str, redis_url: str) -> None:
    tree, printed = start(DATABASE_URL=postgres_url, REDIS_URL=redis_url)
    assert "sk-tb-" in printed
    tree.wait_for_processes(3)
    assert httpx.get(f"http://127.0.0.1:{tree.port}/readyz", timeout=30).status_code == 200
    assert tree.stop() == 0


def test_the_supervisor_does_not_load_django() -> None:
    script = "import sys; from bridge_project.up import supervisor; print('django.apps' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def signs_in(url: str, user: str, password: str) -> bool:
    with httpx.Client(base_url=url, timeout=30) as client:
        client.get("/admin/login/")
        form = {"username": user, "password": password, "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        answer = client.post("/admin/login/?next=/admin/", data=form)
        return (answer.status_code, answer.headers.get("location", "")) == (302, "/admin/")


def one_line(errors: str, start: str) -> bool:
    return errors.startswith(f"toolbridge: {start}") and errors.count("\n") == 1


def test_nobody_stands_still_at_the_port() -> None:
    """Several processes accept from it: a connection that another one was faster to take must not be waited for."""
    with claim_port("127.0.0.1", 0) as listener:
        assert not os.get_blocking(listener.fileno())
