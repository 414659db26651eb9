"""Indexes that no query uses, or that another one's beginning already is: each costs something with every turn.

Also what PostgreSQL should know about the tables that every turn writes. Safe while the bridge serves: indexes are dropped
concurrently, and a setting whose lock is not to be had at once is left as it was.
"""

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

COVERED = (  # by the unique index, or the one with `id`, that begins with the same column
    "conversations_conversation_api_key_id_4b791513",
    "conversations_message_conversation_id_f1a2d5e9",
    "conversations_turn_conversation_id_5017480b",
    "conversations_toolmapping_conversation_id_2c5f07ec",
    "conversations_blob_conversation_id_9edefb59",
    "conversations_claim_created_at_858a0bf8",  # by the new one: only claims of requests are looked for by age
    # A handful of rows, updated twice a second: without it the update touches no index.
    "conversations_process_seen_at_1d98ea57",
)
PREFIXES = (  # Django adds them for LIKE 'x%', which nobody asks
    "conversations_turn_request_id_5b46653b_like",
    "conversations_usageentry_request_id_00a4b6c5_like",
    "conversations_toolmapping_tool_name_19006e1c_like",
    "conversations_toolexecution_tool_name_29ac06af_like",
)
# A fifth of a large table is too long to wait for.
VACUUM = (
    "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.02"
)
SETTINGS = {
    # Updated twice with each turn: room for the new version on the same page.
    "conversation": f"fillfactor = 80, {VACUUM}",
    "turn": VACUUM,
    "message": VACUUM,
    "toolmapping": VACUUM,
    "blob": VACUUM,
    "claim": VACUUM,
    "change": VACUUM,
    "usageentry": VACUUM,
    "toolentry": VACUUM,
    "process": "fillfactor = 50",
    "tally": "fillfactor = 50",
}
# Compressed before they come here.
COMPRESSED = (("turn", "sent_tail"), ("turn", "answer"), ("blob", "data"))


def tune(_: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    postgres = editor.connection.vendor == "postgresql"
    gently = "CONCURRENTLY " if postgres else ""
    editor.execute(
        f"CREATE INDEX {gently}IF NOT EXISTS claim_request ON conversations_claim (created_at) WHERE kind = 'request'"
    )
    for name in COVERED:
        editor.execute(f'DROP INDEX {gently}IF EXISTS "{name}"')
    if not postgres:
        return
    for name in PREFIXES:
        editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"')
    for table, settings in SETTINGS.items():
        _attempt(editor, f"ALTER TABLE conversations_{table} SET ({settings})")
    for table, column in COMPRESSED:
        _attempt(editor, f"ALTER TABLE conversations_{table} ALTER COLUMN {column} SET STORAGE EXTERNAL")
    # Several times as fast as PostgreSQL's own; not every server is built with it.
    _attempt(editor, "ALTER TABLE conversations_message ALTER COLUMN content SET COMPRESSION lz4")


def _attempt(editor: BaseDatabaseSchemaEditor, statement: str) -> None:
    editor.execute(
        f"DO $$ BEGIN SET LOCAL lock_timeout = '2s'; {statement}; "
        "EXCEPTION WHEN lock_not_available OR feature_not_supported THEN NULL; END $$"
    )


def _owned_by(model: str, related_name: str) -> migrations.AlterField:
    field: models.ForeignKey[object, object] = models.ForeignKey(
        on_delete=django.db.models.deletion.CASCADE,
        related_name=related_name,
        to="conversations.conversation",
        db_index=False,
    )
    return migrations.AlterField(model, "conversation", field)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("conversations", "0009_search")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(tune, migrations.RunPython.noop)],
            state_operations=[
                migrations.AlterField(
                    "conversation",
                    "api_key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="conversations",
                        to="conversations.apikey",
                        db_index=False,
                    ),
                ),
                _owned_by("message", "messages"),
                _owned_by("turn", "turns"),
                _owned_by("toolmapping", "tool_mappings"),
                _owned_by("blob", "blobs"),
                migrations.AlterField("process", "seen_at", models.DateTimeField()),
                migrations.AlterField("claim", "created_at", models.DateTimeField()),
                migrations.AddIndex(
                    "claim",
                    models.Index(fields=["created_at"], name="claim_request", condition=models.Q(kind="request")),
                ),
            ],
        ),
        migrations.AlterField(
            "change", "ref", models.TextField(help_text="What it is about; of a purge, all its conversations.")
        ),
    ]
