"""On SQLite the ids of conversations and turns are their rows' places in the table: it writes these tables, and those
that refer to them, anew. On PostgreSQL nothing changes."""

from django.db import migrations

from conversations.models.row_id import RowId


class Migration(migrations.Migration):
    dependencies = [("conversations", "0015_turns_by_id")]
    operations = [
        migrations.AlterField("conversation", "id", RowId(primary_key=True, serialize=False)),
        migrations.AlterField("turn", "id", RowId(primary_key=True, serialize=False)),
    ]
