"""Turns are looked for by time through their ids, and those that failed through an index that leaves out all others.

Safe while the bridge serves: on PostgreSQL they are made and dropped concurrently. One that was left half made is dropped first.
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

MADE = ("error", "aborted")
LEFT = ("turn_status", "conversations_turn_started_at_2e88aab3")


def leave_out_what_is_complete(_: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    gently = "CONCURRENTLY " if editor.connection.vendor == "postgresql" else ""
    for status in MADE:
        editor.execute(f"DROP INDEX {gently}IF EXISTS turn_{status}")
        editor.execute(f"CREATE INDEX {gently}turn_{status} ON conversations_turn (id) WHERE status = '{status}'")
    for name in LEFT:
        editor.execute(f'DROP INDEX {gently}IF EXISTS "{name}"')


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("conversations", "0014_runs_of_a_tool")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(leave_out_what_is_complete, migrations.RunPython.noop)],
            state_operations=[
                migrations.RemoveIndex("turn", name="turn_status"),
                migrations.AlterField(
                    "turn", "started_at", models.DateTimeField(help_text="The id has it, too, and is its index.")
                ),
                *(
                    migrations.AddIndex(
                        "turn",
                        models.Index(fields=["id"], name=f"turn_{status}", condition=models.Q(status=status)),
                    )
                    for status in MADE
                ),
            ],
        ),
    ]
