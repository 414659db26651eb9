"""What surrounds every page: health, static files, the security headers."""

import httpx

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
