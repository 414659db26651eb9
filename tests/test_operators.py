"""How operators sign in: throttled, with strong hashes, over cookies and pages that are closed to others."""

import re
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.hashers import identify_hasher
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from tests.conftest import StartBridge

PASSWORD = "correct horse battery"
PRODUCTION = {
    "BRIDGE_ENV": "production",
    "BRIDGE_SECRET_KEY": "k9" * 20 + "-a-secret-key-for-the-tests",
    "BRIDGE_ALLOWED_HOSTS": "127.0.0.1",
}


def test_passwords_are_hashed_memory_hard(db: None) -> None:
    user = User.objects.create_superuser("root", password=PASSWORD)
    assert identify_hasher(user.password).algorithm == "scrypt"


def test_an_old_hash_is_brought_up_to_date_when_its_owner_signs_in(db: None, settings: Settings) -> None:
    hashers = settings.PASSWORD_HASHERS
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    user = User.objects.create_superuser("root", password=PASSWORD)
    settings.PASSWORD_HASHERS = hashers
    assert sign_in(Client(), PASSWORD) == 302
    user.refresh_from_db()
    assert user.password.startswith("scrypt$")


def test_ten_wrong_passwords_lock_the_name_out_from_that_address(db: None, settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # eleven strong ones take seconds
    User.objects.create_superuser("root", password=PASSWORD)
    here, elsewhere = Client(REMOTE_ADDR="203.0.113.1"), Client(REMOTE_ADDR="203.0.113.2")
    assert [sign_in(here, f"guess {number}") for number in range(9)] == [200] * 9
    assert sign_in(here, "the last guess") == 429
    assert sign_in(here, PASSWORD) == 429
    page = here.post("/admin/login/", {"username": "root", "password": PASSWORD}).text
    assert ("You are locked out" in page, "axes_reset" in page, 'rel="stylesheet"' in page) == (True, True, True)
    assert sign_in(elsewhere, PASSWORD) == 302


def sign_in(browser: Client, password: str) -> int:
    return browser.post("/admin/login/", {"username": "root", "password": password}).status_code


@pytest.mark.timeout(60)
def test_production_closes_cookies_and_pages(start_bridge: StartBridge, tmp_path: Path) -> None:
    bridge = start_bridge(**PRODUCTION, BRIDGE_ADMIN_PASSWORD=PASSWORD)
    secure = {"x-forwarded-proto": "https"}
    with httpx.Client(base_url=bridge.url, headers=secure) as browser:
        page = browser.get("/admin/login/")
        assert page.headers["strict-transport-security"].startswith("max-age=31536000")
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "same-origin"
        assert page.headers["cross-origin-opener-policy"] == "same-origin"
        policy = page.headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "object-src 'none'" in policy
        assert "unsafe-inline" not in re.findall(r"script-src [^;]*", policy)[0]
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert token is not None
        form = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
        headers = {"referer": bridge.url.replace("http:", "https:") + "/", "cookie": cookies(page)}
        entered = browser.post("/admin/login/", data=form, headers=headers)
        assert entered.status_code == 302, entered.text[:500]
        (session,) = [line for line in entered.headers.get_list("set-cookie") if line.startswith("toolbridge_session")]
        assert {"Secure", "HttpOnly", "SameSite=Lax"} <= set(session.split("; "))
    plain = httpx.get(f"{bridge.url}/admin/login/")
    assert (plain.status_code, plain.headers["location"][:6]) == (301, "https:")


def cookies(page: httpx.Response) -> str:
    """A browser would not send these over plain HTTP, as this test has to."""
    return "; ".join(line.partition(";")[0] for line in page.headers.get_list("set-cookie"))
