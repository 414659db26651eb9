"""The store's reads on Django's own connection: a page or a command needs no second one."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from conversations.store.database import Database


class PageDatabase(Database):
    def query(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
