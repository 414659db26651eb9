"""Whatever is asked of our own endpoints and of the admin: no answer of 500, and errors in the API's shape."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx
import pytest
from django.apps import apps
from django.urls import URLResolver, get_resolver

from tests.api.conftest import BOTH, CHAT, Served
from tests.servers import chat
from tests.servers.client import NO_AUTHORITIES, TOOL, Client
from tests.servers.postgres import connections
from tests.torture import asking, grammar
from tests.torture.ledger import Proof, Trials
from tests.torture.wire import Answer, Wire, logged

PASSWORD = "torture-chamber-operator"
WORKERS = 4
OPENAI = ("/v1/chat/", "/v1/embeddings", "/chat/", "/embeddings", "/v1/models", "/models")
PLAIN = ("/metrics", "/static/", "/docs", "/openapi.json", "/livez", "/readyz", "/admin")

pytestmark = [pytest.mark.proves("endpoints"), pytest.mark.timeout(240)]


class Asked(NamedTuple):
    """One request of the fuzz, as a failure names it."""

    seed: int
    request: asking.Request

    def __str__(self) -> str:
        return f"{self.seed}: {self.request!r:.4000}"


def shared_out(count: int, ask: Callable[[Iterable[int]], None]) -> None:
    """All seeds, by several clients at once."""
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(ask, (range(first, count, WORKERS) for first in range(WORKERS))))


@BOTH
def test_nothing_that_is_asked_of_the_api_is_answered_with_500(
    served: Served, client: Client, proof: Proof, trials: Trials
) -> None:
    served.upstream.always(CHAT, chat.text("fine"))
    served.records.rows("ApiKey").update(hosted_tools=True)

    def ask(seeds: Iterable[int]) -> None:
        with Wire(served.bridge.port, client.api_key) as wire:
            for seed in seeds:
                asked = Asked(seed, asking.asked(Random(seed)))
                with proof.trial(asked):
                    check(asked.request, wire.ask(*asked.request), served.bridge.log)
                if seed % 1000 == 0:
                    served.upstream.requests.clear()  # nobody reads them

    shared_out(trials(450_000, 500), ask)
    check_log(served, proof)


def check(request: asking.Request, answer: Answer, log: Path) -> None:
    """What is wrong comes with all that explains it: nobody can ask the same in the same moment again."""
    try:
        check_answer(request, answer)
    except (AssertionError, LookupError, ValueError) as error:
        told = f"{type(error).__name__}: {error}\n{answer}\n{answer.headers}{logged(log, answer.request_id)}"
        raise AssertionError(told) from error


def check_answer(request: asking.Request, answer: Answer) -> None:
    assert answer.status != 500, "a fault of ours"
    if answer.status >= 400 and request.method != "HEAD":
        check_refusal(request.path, answer)
    elif answer.headers.get("content-type", "").startswith("text/event-stream") and "/messages" in request.path:
        grammar.check_stream(answer.body)


def check_refusal(path: str, answer: Answer) -> None:
    assert answer.request_id, "no request id"
    if path.startswith(PLAIN):
        return
    told = json.loads(answer.body)
    assert isinstance(told["error"]["message"], str), "no message"
    if not path.startswith(OPENAI):
        grammar.check_error(answer.body)


def check_log(served: Served, proof: Proof) -> None:
    """Nothing was told to the operator either that is a fault of ours."""
    for found in served.bridge.log.read_text(encoding="utf-8").split("Traceback")[1:]:
        proof.failed("in the log: " + found[-1500:])


# ---------------------------------------------------------------- the admin


@BOTH
def test_nothing_that_is_asked_of_the_admin_is_answered_with_500(
    served: Served, client: Client, proof: Proof, trials: Trials
) -> None:
    something(served, client)
    pages = list(admin_pages())
    with closing(signed_in(served)) as http:

        def ask(seeds: Iterable[int]) -> None:
            for seed in seeds:
                rng = Random(seed)
                path = filled(rng, rng.choice(pages)) + asking.admin_query(rng, FIELDS)
                with proof.trial(f"{seed}: {path[:500]!r}"):
                    look(http, rng, path, served.bridge.log)

        shared_out(trials(50_000, 150), ask)
    check_log(served, proof)


def test_pages_leave_no_connection_to_the_database_behind(postgres_served: Served, proof: Proof) -> None:
    """Django serves each in a thread of its own: what that keeps for the next one nobody takes."""
    with closing(signed_in(postgres_served)) as http:
        before = connections(postgres_served.database_url)
        for _ in range(20):
            with proof.trial("an overview"):
                assert http.get("/admin/").status_code == 200
        assert connections(postgres_served.database_url) <= before + 1


def test_what_postgres_cannot_compare_is_told_on_a_page(postgres_served: Served, proof: Proof) -> None:
    path = "/admin/axes/accessattempt/?ip_address__in=true"
    with closing(signed_in(postgres_served)) as http, proof.trial(path):
        answer = http.get(path)
        assert (answer.status_code, "This cannot be" in answer.text) == (400, True)


def something(served: Served, client: Client) -> None:
    """A row of most tables, by what a client does."""
    served.chat(chat.calls(("call_1", "get_weather", {"city": "Oslo"})))
    client.ask("Weather?", tools=[TOOL])
    served.upstream.always(CHAT, chat.text("fine"))
    client.ask("Hi", headers={"x-conversation-id": "shared"})


FIELDS = sorted({f.name for model in apps.get_models() for f in model._meta.get_fields()})


def admin_pages() -> Iterator[str]:
    def walk(resolver: URLResolver, prefix: str) -> Iterator[str]:
        for entry in resolver.url_patterns:
            path = prefix + str(entry.pattern)
            if isinstance(entry, URLResolver):
                yield from walk(entry, path)
            elif "logout" not in path and "password" not in path:
                yield path

    yield from (path for path in walk(get_resolver(), "/") if path.startswith("/admin/"))


def filled(rng: Random, pattern: str) -> str:
    def value(_: re.Match[str]) -> str:
        return rng.choice(("1", "2", "3", "1", "999999", "0", "9" * 25, "x", "%00", "conversations"))

    path = re.sub(r"\(\?P<url>[^)]*\)\$?|\$$|\^", "", pattern)
    return re.sub(r"<[^>]+>", value, path)


def signed_in(served: Served) -> httpx.Client:
    from django.contrib.auth.models import User  # noqa: PLC0415 - Django is set up by now

    users: Any = User.objects.db_manager(served.records.alias)
    if not users.filter(username="torturer").exists():
        users.create_superuser("torturer", password=PASSWORD)
    http = httpx.Client(base_url=served.bridge.url, timeout=30, verify=NO_AUTHORITIES)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', http.get("/admin/login/").text)
    assert token is not None
    form = {"username": "torturer", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    assert http.post("/admin/login/", data=form).status_code == 302
    return http


def look(http: httpx.Client, rng: Random, path: str, log: Path) -> None:
    url = httpx.URL(str(http.base_url)).copy_with(raw_path=path.encode())
    response = http.get(url)
    assert response.status_code != 500, explained(response, log)
    if response.status_code == 200 and "<form" in response.text and rng.random() < 0.3:
        submit(http, rng, url, response.text, log)


def explained(response: httpx.Response, log: Path) -> str:
    request_id = response.headers.get("request-id", "")
    return f"{response.status_code} {request_id} {response.text[:1000]}\n{logged(log, request_id)}"


def submit(http: httpx.Client, rng: Random, url: httpx.URL, page: str, log: Path) -> None:
    """The page's own form, with some values that nobody would type."""
    inputs = re.findall(r'<(?:input|textarea|select)[^>]*\bname="([^"]+)"(?:[^>]*\bvalue="([^"]*)")?', page)
    form: dict[str, str] = {name: asking.form_value(rng, value) for name, value in inputs}
    form |= {"csrfmiddlewaretoken": next((value for name, value in inputs if name == "csrfmiddlewaretoken"), "")}
    form.pop("_popup", None)
    if "action" in form:
        form["action"] = rng.choice(re.findall(r'<option value="([a-z_]*)"', page) or [""])
    response = http.post(url, data=form, headers={"referer": str(url)})
    assert response.status_code != 500, f"{json.dumps(form)[:1000]}: {explained(response, log)}"
