"""What surrounds every page: health, static files, the security headers."""

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.conftest import StartBridge


def test_static_files_health_and_policies(start_bridge: StartBridge) -> None:
    bridge = start_bridge()
    with httpx.Client(base_url=bridge.url, timeout=30) as client:
        style = client.get("/static/admin/css/base.css")
        assert (style.status_code, style.headers["content-type"]) == (200, 'text/css; charset="utf-8"')
        again = client.get("/static/admin/css/base.css", headers={"if-none-match": style.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get("/livez").status_code == 200
        # Only the admin's theme evaluates expressions.
        assert "'unsafe-eval'" in client.get("/admin/login/").headers["content-security-policy"]
        assert "'unsafe-eval'" not in client.get("/v1/models").headers["content-security-policy"]
    bridge.stop()
    assert "Warning" not in bridge.log.read_text(encoding="utf-8")


def test_a_bridge_that_crashed_starts_again_on_its_home(start_bridge: StartBridge) -> None:
    bridge = start_bridge()
    bridge.crash()
    bridge.start()
    assert bridge.status("/readyz") == 200


@pytest.mark.django_db
def test_a_page_without_its_last_slash_leads_to_it(client: Client) -> None:
    client.force_login(User.objects.create_superuser("operator"), "django.contrib.auth.backends.ModelBackend")
    for path in ("/admin", "/admin/connect", "/admin/conversations/turn"):
        answer = client.get(path)
        assert (answer.status_code, answer["location"]) == (301, f"{path}/")
    for path in ("/v1/models/", "/v1/messages/", "/nothing", "/v1"):
        assert client.get(path).status_code in {401, 404, 405}


@pytest.mark.django_db
def test_who_signs_in_is_offered_no_way_back_to_where_they_are(client: Client) -> None:
    page = client.get("/admin/login/").text
    assert "Return to site" not in page
