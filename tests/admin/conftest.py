"""An operator who is signed in, and one conversation of everything.

pytest reads this file before Django is set up, so each fixture imports what it needs.
"""
# ruff: noqa: PLC0415

from typing import TYPE_CHECKING

import pytest
from django.test import Client

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from conversations.models import Conversation, Turn


@pytest.fixture
def operator(db: None) -> "User":
    from django.contrib.auth.models import User

    return User.objects.create_superuser("operator")


@pytest.fixture
def browser(operator: "User") -> Client:
    client = Client()
    client.force_login(operator, "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def outsider(db: None) -> Client:
    """May look at every record, and at nothing that was said."""
    from django.contrib.auth.models import Permission, User

    user = User.objects.create_user("outsider", is_staff=True)
    views = Permission.objects.filter(content_type__app_label="conversations", codename__startswith="view_")
    user.user_permissions.set(views.exclude(codename="view_content"))
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def conversation(db: None) -> "Conversation":
    from tests.admin import rows

    made = rows.a_conversation(rows.a_key(), 1, external_id="session/one")
    made.save(force_insert=True)
    turn = rows.a_turn(made, 1)
    turn.save(force_insert=True)
    rows.a_mapping(turn).save()
    rows.an_answer(turn).save()
    rows.an_entry(turn, made).save()
    return made


@pytest.fixture
def turn(conversation: "Conversation") -> "Turn":
    return conversation.turns.get()
