"""The key of rows whose ids their process mints."""

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class RowId(models.BigIntegerField):  # type: ignore[type-arg]  # Django does not know of it at run time
    """A 63-bit number. On SQLite it is the row's own place in the table, which only a column of just this type is: any
    other key is an index beside the table, one more page with every row."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        return "integer" if connection.vendor == "sqlite" else super().db_type(connection)

    def rel_db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        """Of columns that refer to it."""
        return super().db_type(connection)
