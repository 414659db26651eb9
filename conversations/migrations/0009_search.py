import sqlite3

import django.db.models.deletion
from django.db import migrations, models


def make_words(apps, schema_editor):
    """Each database has a way of its own to find words."""
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(
            "CREATE VIRTUAL TABLE conversations_searchwords "
            "USING fts5(words, tokenize='unicode61 remove_diacritics 0', columnsize=0)"
        )
        if sqlite3.sqlite_version_info >= (3, 42):
            # Nothing of a deleted turn stays in the index.
            schema_editor.execute(
                "INSERT INTO conversations_searchwords (conversations_searchwords, rank) VALUES ('secure-delete', 1)"
            )
    elif schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("ALTER TABLE conversations_searchedturn ADD COLUMN words tsvector")
        schema_editor.execute("CREATE INDEX searched_words ON conversations_searchedturn USING gin (words)")


def drop_words(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TABLE IF EXISTS conversations_searchwords")


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0008_live_snapshot"),
    ]

    operations = [
        migrations.CreateModel(
            name="SearchedTurn",
            fields=[
                ("turn", models.BigIntegerField(primary_key=True, serialize=False)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="searched_turns",
                        to="conversations.conversation",
                    ),
                ),
            ],
        ),
        migrations.RunPython(make_words, drop_words),
    ]
