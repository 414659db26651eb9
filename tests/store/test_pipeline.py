"""A transaction on PostgreSQL: sent together, answered together."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from conversations.models import ApiKey
from conversations.store.database import Database
from conversations.store.pipeline import PREPARE_AFTER
from conversations.store.writes import WholeTurn
from tests.store.rows import closing, conversation, opening

pytestmark = [
    pytest.mark.usefixtures("migrated"),
    pytest.mark.parametrize("migrated", ["postgres"], indirect=True),
]
PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT $1 + 1'"


@pytest.fixture
def db(migrated: str) -> Iterator[Database]:
    database = Database()
    yield database
    database.close()


def test_after_an_error_the_rest_is_left_out_and_the_connection_goes_on(db: Database) -> None:
    ((before,),) = db.query("SELECT pg_backend_pid()")
    db.begin()
    db.execute("SELECT 1 / %s", (0,))
    db.execute("SELECT pg_sleep(60)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        db.commit()
    db.rollback()
    db.begin()
    assert db.query("SELECT pg_backend_pid(), %s", (None,)) == [(before, None)]
    db.commit()


def test_what_cannot_be_written_is_not_sent(db: Database) -> None:
    db.begin()
    with pytest.raises(psycopg.DataError):
        db.execute("SELECT %s", ("a\0b",))
    assert db.query("SELECT %s", ("ab",)) == [("ab",)]
    db.commit()


def test_a_statement_that_was_not_prepared_for_an_error_before_it_is_prepared_later(db: Database) -> None:
    for _ in range(PREPARE_AFTER - 1):
        _ask(db)
    db.begin()
    db.execute("SELECT 1 / %s", (0,))
    db.execute("SELECT %s + 1", (1,))
    with pytest.raises(psycopg.errors.DivisionByZero):
        db.commit()
    db.rollback()
    assert db.query(PREPARED) == [(0,)]
    _ask(db)
    _ask(db)
    assert db.query(PREPARED) == [(1,)]


def _ask(db: Database) -> None:
    db.begin()
    assert db.query("SELECT %s + 1", (1,)) == [(2,)]
    db.commit()


def test_turns_are_one_statement_whatever_is_known_of_them(db: Database, key: ApiKey) -> None:
    for number in range(8):  # which of three follow another one, which of them are over
        db.begin()
        for place in range(3):
            row = conversation(key.pk)
            first = opening(row, sent_parent=7 if number >> place & 1 else None)
            (WholeTurn(first, closing(row, first.turn)) if number & 1 else first).apply(db)
        db.commit()
    inserted = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%INSERT INTO conversations_turn%%'"
    assert db.query(inserted) == [(1,)]
    followed = "SELECT sent_parent, count(*) FROM conversations_turn GROUP BY 1 ORDER BY 1"
    assert db.query(followed) == [(7, 12), (None, 12)]


def test_neither_side_waits_for_the_other_to_read_first(db: Database) -> None:
    """Far more, there and back, than sockets hold."""

    def exchange() -> None:
        db.begin()
        for _ in range(40):
            db.execute("SELECT repeat('x', 1000000), length(%s)", ("y" * 1_000_000,))
        db.commit()

    exchanging = threading.Thread(target=exchange, daemon=True)
    exchanging.start()
    exchanging.join(60)
    assert not exchanging.is_alive()


def test_a_connection_that_is_cut_inside_a_transaction_is_an_outage(db: Database) -> None:
    ((own,),) = db.query("SELECT pg_backend_pid()")
    db.begin()
    db.execute("SELECT pg_terminate_backend(%s::int)", (own,))
    db.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        db.commit()
    db.rollback()
    assert db.query("SELECT 1") == [(1,)]
