"""The runs of one tool, newest first, without sorting all that it ever had: its indexes go on with the id.

Safe while the bridge serves: on PostgreSQL they are made and dropped concurrently. One that was left half made is dropped first.
"""

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

MADE = {"tool_execution_tool": "tool_id", "tool_execution_name": "tool_name"}
COVERED = ("conversations_toolexecution_tool_id_e8b5cc92", "conversations_toolexecution_tool_name_29ac06af")


def go_on_with_the_id(_: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    gently = "CONCURRENTLY " if editor.connection.vendor == "postgresql" else ""
    for name, column in MADE.items():
        editor.execute(f"DROP INDEX {gently}IF EXISTS {name}")
        editor.execute(f"CREATE INDEX {gently}{name} ON conversations_toolexecution ({column}, id)")
    for name in COVERED:
        editor.execute(f'DROP INDEX {gently}IF EXISTS "{name}"')


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("conversations", "0013_process_form")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(go_on_with_the_id, migrations.RunPython.noop)],
            state_operations=[
                migrations.AlterField(
                    "toolexecution",
                    "tool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.SET_NULL,
                        null=True,
                        related_name="executions",
                        to="conversations.hostedtool",
                        db_constraint=False,
                        db_index=False,
                    ),
                ),
                migrations.AlterField("toolexecution", "tool_name", models.CharField(max_length=200)),
                migrations.AddIndex("toolexecution", models.Index(fields=["tool", "id"], name="tool_execution_tool")),
                migrations.AddIndex(
                    "toolexecution", models.Index(fields=["tool_name", "id"], name="tool_execution_name")
                ),
            ],
        ),
    ]
