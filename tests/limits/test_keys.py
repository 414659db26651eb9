"""Revoking and rotating: effective in all of four processes within a second."""

import time
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command

from conversations.models import ApiKey
from tests.limits.cluster import Cluster


def statuses(cluster: Cluster, key: str) -> set[int]:
    return {reply.status for reply in cluster.ask_many(key, 24)}


def test_a_revoked_key_is_refused_everywhere_within_a_second(cluster: Cluster) -> None:
    key = cluster.issue("revoked")
    assert statuses(cluster, key) == {200}
    cluster.manage("revoke_key", "revoked")
    time.sleep(1)
    assert statuses(cluster, key) == {401}


def test_a_rotated_key_has_a_new_secret_and_the_old_one_stops(cluster: Cluster) -> None:
    old = cluster.issue("rotated", requests_per_minute=1000)
    assert statuses(cluster, old) == {200}
    new = cluster.manage("rotate_key", "rotated")
    assert new != old
    time.sleep(1)
    assert statuses(cluster, old) == {401}
    assert statuses(cluster, new) == {200}
    assert cluster.rows("SELECT requests_per_minute FROM conversations_apikey WHERE name = 'rotated'") == [(1000,)]


def test_an_expired_key_is_refused(cluster: Cluster) -> None:
    key = cluster.issue("expired", expires_at="2026-01-01")
    assert cluster.ask(key).status == 401


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([""], "name: "),
        (["x" * 101], "name: "),
        (["n", "--storage", "some"], "storage: "),
        (["n", "--requests-per-minute", "0"], "requests-per-minute: "),
        (["n", "--expires-at", "soon"], "expires-at: "),
        (["n", "--content-hours", "nan"], "content-hours: "),
        (["n", "--inactivity-hours", "inf"], "inactivity-hours: "),
    ],
)
def test_what_no_key_can_have_is_named(given: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("issue_key", *given, skip_checks=True)


def test_a_key_and_everything_encrypted_are_not_given_anew_at_once() -> None:
    with pytest.raises(CommandError, match="either a key, or --encryption"):
        call_command("rotate_key", "somebody", "--encryption", skip_checks=True)


@pytest.mark.django_db
def test_a_time_without_a_zone_is_one_of_utc_and_two_keys_of_a_name_are_told_apart() -> None:
    """Warnings are errors here: Django has one for such times."""
    for _ in range(2):
        call_command("issue_key", "twin", "--expires-at", "2030-01-02 03:04", skip_checks=True)
    one, other = ApiKey.objects.filter(name="twin").order_by("pk")
    assert one.expires_at == datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    with pytest.raises(CommandError, match="several keys are called twin: say which by its first characters") as told:
        call_command("revoke_key", "twin", skip_checks=True)
    assert f"({one.prefix}, {other.prefix})" in str(told.value)
    call_command("revoke_key", one.prefix, skip_checks=True)
    assert list(ApiKey.objects.filter(name="twin", revoked_at=None)) == [other]
