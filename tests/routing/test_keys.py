"""Several keys for one upstream: in turn, and a refused or limited one rests."""

from tests.routing.lab import Lab
from tests.servers.chat import error, text

KEYS = ("sk-up-one", "sk-up-two", "sk-up-three")


def used(lab: Lab, upstream: str) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in lab.requests(upstream)]


def test_keys_are_used_in_turn(lab: Lab) -> None:
    a = lab.upstream("a", keys=KEYS)
    lab.always(a, text("ok"))
    model = lab.route(f"{a}/one")
    for _ in range(6):
        lab.ask(model)
    assert used(lab, a) == [*KEYS, *KEYS]


def test_after_a_refused_key_the_next_one_is_tried_at_once_and_the_refused_one_rests(lab: Lab) -> None:
    a = lab.upstream("a", keys=KEYS)
    lab.answers(a, error(401, "bad key"), error(429, "slow down", {"retry-after": "9"}))
    lab.always(a, text("ok"))
    model = lab.route(f"{a}/one")
    assert lab.ask(model).status_code == 200
    assert lab.attempts() == lab.ledger() == [("a", "error"), ("a", "error"), ("a", "complete")]
    lab.ask(model)
    lab.ask(model)
    assert used(lab, a) == [*KEYS, KEYS[2], KEYS[2]]
    rests = lab.records.rows("Rest").filter(upstream=a).order_by("key")
    assert [(rest.key, rest.reason) for rest in rests] == [(1, "refused (HTTP 401)"), (2, "rate limited (HTTP 429)")]
    assert not any(key in str(rest.__dict__) for rest in rests for key in KEYS)


def test_when_every_key_is_refused_the_fallback_is_asked_and_no_secret_is_told(lab: Lab) -> None:
    a, b = lab.upstream("a", keys=KEYS), lab.upstream("b")
    lab.always(a, error(401, "bad key"))
    lab.answers(b, text("from b"))
    model = lab.route(f"{a}/one", f"{b}/two")
    assert lab.ask(model).json()["content"][0]["text"] == "from b"
    assert used(lab, a) == [*KEYS]
    log = lab.served.bridge.log.read_text(encoding="utf-8")
    assert not any(key in log for key in KEYS)


def test_when_every_key_is_limited_the_one_that_is_due_first_is_tried_again(lab: Lab) -> None:
    a = lab.upstream("a", keys=KEYS[:2])
    limited = [error(429, "slow down", {"retry-after": wait}) for wait in ("9", "0.2")]
    lab.answers(a, *limited, text("ok"))
    assert lab.ask(lab.route(f"{a}/one")).status_code == 200
    assert used(lab, a) == ["sk-up-one", "sk-up-two", "sk-up-two"]
