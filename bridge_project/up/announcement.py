"""What the first web process tells the supervisor once it serves, and what the operator then reads."""

import json
from typing import NamedTuple

from bridge_project import settings

PROMPT = "Which tools do you have?"


class FirstRun(NamedTuple):
    """The secrets that this start has made; each is shown once and kept nowhere in clear. And what it has found."""

    admin_password: str | None = None
    api_key: str | None = None
    only_demo: bool = False  # neither the environment nor a row names an upstream
    operator_exists: bool = True  # the one that BRIDGE_ADMIN_USER names


def encode(first_run: FirstRun) -> bytes:
    return json.dumps(first_run._asdict()).encode()


def banner(announced: bytes) -> str:
    first_run = FirstRun(**json.loads(announced))
    lines = [
        "",
        f"Toolbridge serves {_url()}",
        f"  admin    {_admin_url()}/admin/  {_operator(first_run)}",
        f"  API key  {first_run.api_key or _where_the_key_is()}",
    ]
    if first_run.only_demo:
        lines += [
            "  upstream only the built-in demo, whose answers are made up: set OPENAI_API_KEY, for example, or add an",
            "           upstream in the admin",
        ]
    if first_run.api_key:
        lines += ["", "Try it:", "", _curl(first_run.api_key), "", _claude_code(first_run.api_key)]
    return "\n".join([*lines, "", "Ctrl-C stops it.", "", ""])


def _url() -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.HOST, settings.HOST)  # noqa: S104 - a name for it
    return f"http://[{host}]:{settings.PORT}" if ":" in host else f"http://{host}:{settings.PORT}"


def _admin_url() -> str:
    """In production its pages answer to the names of the proxy in front, and by HTTPS alone."""
    return f"https://{settings.ALLOWED_HOSTS[0].removeprefix('.')}" if settings.PRODUCTION else _url()


def _operator(first_run: FirstRun) -> str:
    if not first_run.operator_exists:
        return "for the operators that there are (manage.py createsuperuser makes another)"
    return f"user {settings.BRIDGE_ADMIN_USER}, {_password(first_run)}"


def _password(first_run: FirstRun) -> str:
    if first_run.admin_password:
        return f"password {first_run.admin_password}"
    if settings.BRIDGE_ADMIN_PASSWORD:
        return "password as in BRIDGE_ADMIN_PASSWORD when it was made"
    return "password as printed by the first run (manage.py changepassword sets a new one)"


def _where_the_key_is() -> str:
    if settings.BRIDGE_API_KEYS:
        return "those of BRIDGE_API_KEYS, and those issued in the admin"
    return "as printed by the first run (manage.py issue_key NAME makes another)"


def _curl(api_key: str) -> str:
    body = json.dumps(
        {"model": "claude-sonnet-5-5", "max_tokens": 256, "messages": [{"role": "user", "content": PROMPT}]}
    )
    return (
        f"curl {_url()}/v1/messages -H 'x-api-key: {api_key}' \\\n"
        f"  -H 'anthropic-version: 2023-06-01' -H 'content-type: application/json' \\\n"
        f"  -d '{body}'"
    )


def _claude_code(api_key: str) -> str:
    return f"ANTHROPIC_BASE_URL={_url()} ANTHROPIC_API_KEY={api_key} claude -p '{PROMPT}'"
