"""The environment's variables: what they become, and which values are refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from bridge_project import environment
from bridge_project.databases import database
from bridge_project.secret import stored_key
from conversations.keys import PREFIX
from tests.servers.bridge import PROJECT, clean_environment

PRODUCTION = {
    "BRIDGE_ENV": "production",
    "BRIDGE_SECRET_KEY": "k9" * 20 + "-a-secret-key-for-the-tests",
    "BRIDGE_ALLOWED_HOSTS": "bridge.example.com",
}


def manage(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=clean_environment(home, 8000) | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def setting(home: Path, name: str, **variables: str) -> object:
    script = f"import json; from bridge_project import settings; print(json.dumps(settings.{name}, default=str))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=PROJECT,
        env=clean_environment(home, 8000) | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    value: object = json.loads(done.stdout)
    return value


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "  ")
    assert environment.optional("X") is None
    assert environment.text("X", "default") == "default"
    assert environment.integer("X", 7) == 7
    assert environment.number("X", 0.5) == 0.5
    assert environment.words("X") == ()
    assert environment.http_url("X") is None
    assert environment.service_url("X") is None
    assert environment.flag("X") is False


def test_values_are_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", " 1 ")
    assert environment.integer("X", 7) == 1
    assert environment.number("X", 7.0) == 1.0
    assert environment.flag("X") is True
    monkeypatch.setenv("X", "a, b ,,c")
    assert environment.words("X") == ("a", "b", "c")
    monkeypatch.setenv("X", "https://host/v1/")
    assert environment.http_url("X") == "https://host/v1"


@pytest.mark.parametrize("value", ["sk-one\nsk-two", "sk-one,sk-t\0wo", "sk-\u200bone"])
def test_keys_that_no_request_can_carry_are_refused_unseen(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setattr("os.environ", {"X": value})
    with pytest.raises(ImproperlyConfigured, match=r"^X holds a line break, or what cannot be printed.*commas$"):
        environment.words("X")


@pytest.mark.parametrize("name", ["BRIDGE_API_KEYS", "OPENAI_API_KEY", "GEMINI_API_KEYS"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(tmp_path: Path, name: str) -> None:
    done = manage(tmp_path, "check", **{name: "sk-one,sk-geh\N{LATIN SMALL LETTER E WITH ACUTE}im"})
    assert done.returncode == 1
    assert f"{name} holds a key that no header can hold" in done.stderr
    assert "sk-geh" not in done.stderr


@pytest.mark.parametrize("value", ["x", "1.5", "-1", "99", "١"])
def test_what_is_no_integer_in_the_range_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match=r"X is '.*'; it must be a whole number from 0 to 10"):
        environment.integer("X", 2, most=10)


@pytest.mark.parametrize("value", ["x", "0", "-1", "nan", "inf", "1e300"])
def test_what_is_no_positive_number_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match=r"X is '.*'; it must be a number above 0"):
        environment.number("X", 2.0)


@pytest.mark.parametrize("value", ["host/v1", "ftp://host", "https://", "http:/host"])
def test_what_is_no_http_url_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match=r"X is .*http"):
        environment.http_url("X")


@pytest.mark.parametrize("value", ["localhost:6379", "http://:secret@host", "://secret@host", "redis:/secret@host"])
def test_what_is_no_url_of_a_service_is_refused_without_its_secret(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match=r"^X must be a URL: redis://\.\.\., rediss://\.\.\.$"):
        environment.service_url("X", "redis", "rediss")


@pytest.mark.parametrize("rest", ["[secret@host/x", "/secret@host/x", "#secret@host/x", "x@host:secret/x"])
def test_a_url_that_cannot_be_read_is_refused_without_its_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rest: str
) -> None:
    monkeypatch.setenv("REDIS_URL", f"redis://me:secret{rest}")
    with pytest.raises(ImproperlyConfigured, match=r"^REDIS_URL cannot be read") as refused:
        environment.service_url("REDIS_URL", "redis")
    with pytest.raises(ImproperlyConfigured, match=r"^DATABASE_URL cannot be read") as also:
        database(f"postgres://me:secret{rest}", tmp_path)
    assert "secret" not in f"{refused.value} {also.value}"
    assert environment.password(f"amqp://me:secret{rest}") in (None, "secretx")


@pytest.mark.parametrize("value", ["amqp://host", "memory://", "filesystem://", "redis://"])
def test_a_service_at_its_usual_place_needs_no_more_than_its_scheme(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("X", value)
    assert environment.service_url("X") == value


@pytest.mark.parametrize("value", ["amqp://host", "redis+socket:///x", "sentinel://a:1;sentinel://b:2", "pyamqp://x"])
def test_a_broker_is_any_that_celery_can_use(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("X", value)
    assert environment.broker_url("X") == value


@pytest.mark.parametrize("value", ["ampq://me:secret@host", "kafka://secret@host", "sqs://secret@", "unix://secret"])
def test_a_broker_that_celery_cannot_use_is_refused_at_the_start(tmp_path: Path, value: str) -> None:
    done = manage(tmp_path, "check", CELERY_BROKER_URL=value)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "toolbridge: CELERY_BROKER_URL names no broker that can be used here; known are redis://"
    )
    assert (done.stderr.count("\n"), "secret" in done.stderr) == (1, False)


@pytest.mark.parametrize("value", ["host:5672", "://host"])
def test_a_url_of_any_service_has_a_scheme(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match=r"^X must be a URL: scheme://\.\.\.$"):
        environment.service_url("X")


def test_an_unknown_choice_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "blue")
    with pytest.raises(ImproperlyConfigured, match="X is 'blue'; it must be one of red, green"):
        environment.choice("X", ("red", "green"), "red")


def test_the_embedded_database_is_durable_and_never_deferred(tmp_path: Path) -> None:
    embedded = database(None, tmp_path)
    assert embedded["NAME"] == str(tmp_path / "bridge.sqlite3")
    assert embedded["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "synchronous=FULL" in embedded["OPTIONS"]["init_command"]


@pytest.mark.parametrize(
    ("url", "path"), [("sqlite:///a/b.db", "a/b.db"), ("sqlite:////data/b%20c.db", "/data/b c.db")]
)
def test_a_sqlite_url_is_a_path(tmp_path: Path, url: str, path: str) -> None:
    assert database(url, tmp_path)["NAME"] == path


def test_a_postgres_url_is_taken_apart_and_leaves_nothing_on_a_shared_connection(tmp_path: Path) -> None:
    parsed = database("postgres://me:p%40ss@db.example:5433/bridge?sslmode=require", tmp_path)
    keys = ("NAME", "USER", "PASSWORD", "HOST", "PORT")
    assert [parsed[key] for key in keys] == ["bridge", "me", "p@ss", "db.example", "5433"]
    assert parsed["OPTIONS"]["sslmode"] == "require"
    assert parsed["OPTIONS"]["prepare_threshold"] is None
    assert parsed["DISABLE_SERVER_SIDE_CURSORS"] is True


@pytest.mark.parametrize("url", ["mysql://host/x", "postgres://host", "postgres://host:port/x", "sqlite://x", "x.db"])
def test_any_other_database_url_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL"):
        database(url, tmp_path)


def test_the_generated_secret_key_is_kept_and_private(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    key = stored_key(home)
    assert len(key) >= 50
    assert stored_key(home) == key
    assert (home / "secret_key").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in home.iterdir()] == ["secret_key"]


def test_upstreams_and_their_keys_come_from_the_environment(tmp_path: Path) -> None:
    upstreams = setting(
        tmp_path, "BRIDGE_UPSTREAMS",
        OPENAI_API_KEYS="a,b", OPENAI_API_KEY="b", VLLM_BASE_URL="http://gpu:8000/v1/",
        ANTHROPIC_BASE_URL="http://the-bridge", ANTHROPIC_UPSTREAM_URL="https://upstream",
    )  # fmt: skip
    assert isinstance(upstreams, dict)
    assert upstreams["openai"] == [["a", "b"], None]
    assert upstreams["openai-responses"] == [["a", "b"], None]
    assert upstreams["vllm"] == [[], "http://gpu:8000/v1"]
    assert upstreams["anthropic"] == [[], "https://upstream"]
    assert upstreams["gemini"] == [[], None]


def test_a_key_for_clients_is_sent_to_no_upstream(tmp_path: Path) -> None:
    def anthropic(**variables: str) -> object:
        upstreams = setting(tmp_path, "BRIDGE_UPSTREAMS", **variables)
        assert isinstance(upstreams, dict)
        return upstreams["anthropic"]

    own = f"{PREFIX}in-the-shell-of-a-client"
    assert anthropic(ANTHROPIC_API_KEY=own) == [[], None]
    assert anthropic(ANTHROPIC_API_KEY="sk-mine", BRIDGE_API_KEYS="sk-mine") == [[], None]
    assert anthropic(ANTHROPIC_API_KEYS=f"{own},sk-ant-x") == [["sk-ant-x"], None]
    # Another bridge has keys that look the same.
    assert anthropic(ANTHROPIC_API_KEY=own, ANTHROPIC_UPSTREAM_URL="https://b") == [[own], "https://b"]


def test_a_variable_that_is_none_of_the_settings_is_named_with_the_one_that_is_meant(tmp_path: Path) -> None:
    found = setting(tmp_path, "UNKNOWN_VARIABLES", MODEL_MAP_SONET="demo/x", BRIDGE_WHATEVER="1", OTHER="1")
    assert found == [["BRIDGE_WHATEVER", ""], ["MODEL_MAP_SONET", "MODEL_MAP_SONNET"]]
    assert setting(tmp_path, "UNKNOWN_VARIABLES", **PRODUCTION) == []


def test_the_broker_is_files_unless_redis_or_another_is_named(tmp_path: Path) -> None:
    name = "CELERY_BROKER_URL"
    assert setting(tmp_path, name) == "filesystem://localhost/"
    assert setting(tmp_path, name, REDIS_URL="redis://r") == "redis://r"
    assert setting(tmp_path, name, REDIS_URL="redis://r", CELERY_BROKER_URL="amqp://q") == "amqp://q"
    assert setting(tmp_path, name, REDIS_URL="unix:///run/r.sock") == "redis+socket:///run/r.sock"
    assert setting(tmp_path, name, REDIS_URL="unix://:p@/r?db=2") == "redis+socket://:p@/r?virtual_host=2"


def test_no_line_of_the_log_holds_a_password_of_a_service(tmp_path: Path) -> None:
    secrets = setting(tmp_path, "SECRETS", REDIS_URL="redis://:one-one@r", CELERY_BROKER_URL="amqp://me:two%2Ftwo@q")
    assert isinstance(secrets, list)
    assert {"one-one", "two/two"} <= set(secrets)


@pytest.mark.parametrize("missing", ["BRIDGE_SECRET_KEY", "BRIDGE_ALLOWED_HOSTS"])
@pytest.mark.parametrize("command", ["check", "up"])
def test_production_refuses_to_start_without(tmp_path: Path, missing: str, command: str) -> None:
    done = manage(tmp_path, command, **{name: value for name, value in PRODUCTION.items() if name != missing})
    assert done.returncode == 1
    assert done.stderr.startswith(f"toolbridge: BRIDGE_ENV=production needs {missing}")
    assert done.stderr.count("\n") == 1


def test_production_refuses_to_answer_to_any_host(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", **PRODUCTION | {"BRIDGE_ALLOWED_HOSTS": "bridge.example.com,*"})
    assert done.returncode == 1
    assert done.stderr.startswith("toolbridge: BRIDGE_ENV=production needs BRIDGE_ALLOWED_HOSTS")


def test_prepare_makes_the_folders_that_web_worker_and_beat_find(tmp_path: Path) -> None:
    """With a secret key of the operator's nothing else has made any; Celery's worker does not make its own."""
    home = tmp_path / "new" / "home"
    done = manage(home, "prepare", **PRODUCTION)
    assert done.returncode == 0, done.stderr
    assert "API key: sk-tb-" in done.stdout
    assert (home / "broker" / "messages").is_dir()
    assert (home / "broker" / "control").is_dir()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = manage(tmp_path / "file" / "home", "prepare", **PRODUCTION)
    assert done.returncode == 1
    assert done.stderr == f"CommandError: {tmp_path}/file/home cannot be made: Not a directory\n"


@pytest.mark.parametrize(("name", "value"), [("BRIDGE_STORAGE", "off"), ("BRIDGE_DEBUG", "1")])
def test_production_refuses(tmp_path: Path, name: str, value: str) -> None:
    done = manage(tmp_path, "check", **PRODUCTION, **{name: value})
    assert done.returncode == 1
    assert f"{name}={value} is" in done.stderr


def test_the_deployment_check_is_clean_in_production(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "INFO", **PRODUCTION)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues" in done.stdout


def test_a_short_secret_key_fails_the_deployment_check(tmp_path: Path) -> None:
    done = manage(
        tmp_path, "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION | {"BRIDGE_SECRET_KEY": "short"}
    )
    assert done.returncode == 1
    assert "security.W009" in done.stderr


@pytest.mark.parametrize(
    ("variables", "check"),
    [
        ({"MODEL_MAP_OPUS": "gpt-5.5"}, "conversations.E001"),
        ({"MODEL_MAP_OPUS": "openai/gpt-5.5"}, "conversations.W001"),
        ({"BRIDGE_HOLD_SECONDS": "20", "BRIDGE_UPSTREAM_IDLE_SECONDS": "10"}, "conversations.W002"),
        ({"BRIDGE_CORS_ORIGINS": "https://a.example/path"}, "conversations.E002"),
        ({"BRIDGE_TOOL_HOSTS": "a.example,https://b.example"}, "conversations.E003"),
        ({"AZURE_API_KEY": "sk-x"}, "conversations.W003"),
        (PRODUCTION | {"BRIDGE_SECRET_KEY": "short"}, "conversations.W004"),
        ({"BRIDGE_INACTIVTY_HOURS": "1"}, "conversations.W005"),
        ({"ANTHROPIC_API_KEY": f"{PREFIX}x"}, "conversations.W006"),
        ({"BRIDGE_ENCRYPTION_KEYS": f"{'long' * 8},short"}, "conversations.W007"),
    ],
)
def test_values_that_do_not_fit_together_fail_a_check_with_an_id(
    tmp_path: Path, variables: dict[str, str], check: str
) -> None:
    done = manage(tmp_path, "check", "--fail-level", "WARNING", **variables)
    assert done.returncode == 1
    assert check in done.stderr


def test_networks_are_hosts_that_tools_may_reach(tmp_path: Path) -> None:
    hosts = "10.0.0.0/8,fd00::/8,*.example.com,127.0.0.1"
    assert manage(tmp_path, "check", "--fail-level", "WARNING", BRIDGE_TOOL_HOSTS=hosts).returncode == 0


@pytest.mark.parametrize(
    ("variables", "reason"),
    [({}, "no such table"), ({"DATABASE_URL": "postgres://me:secret@127.0.0.1:1/x"}, "connection")],
)
@pytest.mark.parametrize("command", [("issue_key", "x"), ("purge_inactive",)])
def test_a_database_that_is_not_ready_is_one_line(
    tmp_path: Path, command: tuple[str, ...], variables: dict[str, str], reason: str
) -> None:
    done = manage(tmp_path, *command, **variables)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"toolbridge: the database cannot be used: {reason}")
    assert "secret" not in done.stderr


def test_an_unreadable_value_is_one_line_whatever_the_command(tmp_path: Path) -> None:
    for command in ("up", "migrate"):
        done = manage(tmp_path, command, PORT="eighty")
        assert done.returncode == 1
        assert done.stderr == "toolbridge: PORT is 'eighty'; it must be a whole number from 1 to 65535\n"
