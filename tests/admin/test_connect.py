"""The page with the lines to paste."""

import ast
import shlex

import pytest
from django.test import Client

from conversations import keys
from conversations.admin.connect import snippets
from conversations.models import ApiKey

PAGE = "/admin/connect/"
ODD = "o'dd/\"mo`del $(x)\\"


@pytest.mark.django_db
def test_the_page_names_this_server_the_key_and_the_model(browser: Client) -> None:
    key, secret = keys.issue("laptop")
    page = browser.get(PAGE, {"model": "demo/demo", "key": str(key.pk)}, headers={"host": "127.0.0.1:8123"})
    assert page.status_code == 200
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:8123" in page.text
    assert "ANTHROPIC_MODEL=demo/demo" in page.text
    assert "laptop" in page.text
    assert secret not in page.text
    assert "/admin/conversations/apikey/add/" in page.text
    assert page.text.count("data-copy=") >= 8
    assert "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC" in page.text


@pytest.mark.django_db
def test_a_model_that_leads_nowhere_is_said_so(browser: Client) -> None:
    assert "gemini is not configured" in browser.get(PAGE, {"model": "gemini/x"}).text


@pytest.mark.django_db
def test_keys_are_for_those_who_may_see_them(outsider: Client) -> None:
    keys.issue("laptop")
    assert "laptop" in outsider.get(PAGE).text
    from django.contrib.auth.models import User  # noqa: PLC0415 - models after set-up

    User.objects.get(username="outsider").user_permissions.clear()
    assert "laptop" not in outsider.get(PAGE).text
    assert "Issue a key" not in outsider.get(PAGE).text
    assert ApiKey.objects.exists()


@pytest.mark.django_db
def test_nobody_sees_it_without_signing_in(client: Client) -> None:
    answer = client.get(PAGE)
    assert answer.status_code == 302
    assert "/admin/login/" in answer["location"]


def test_an_odd_name_of_a_model_stays_a_name() -> None:
    found = {snippet.name: snippet.text for snippet in snippets("http://127.0.0.1:1", ODD)}
    for name in ("python", "langchain", "openai"):
        texts = [node.value for node in ast.walk(ast.parse(found[name])) if isinstance(node, ast.Constant)]
        assert ODD in texts
    assert f"ANTHROPIC_MODEL={ODD}" in shlex.split(found["claude"])
    assert any('\\"mo`del' in word for word in shlex.split(found["curl"]))
