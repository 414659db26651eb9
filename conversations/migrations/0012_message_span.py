from django.db import migrations, models

# Neither database reads or copies the table for it. Django would check each row on PostgreSQL, with the table locked, and
# copy all of them on SQLite.
ADD = "ALTER TABLE conversations_message ADD COLUMN span integer DEFAULT 1 NOT NULL"


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0011_replay_rounds"),
    ]

    operations = [
        migrations.AlterField(
            model_name="message",
            name="content",
            field=models.BinaryField(
                help_text="Normalised blocks, JSON; of several messages, all of them, compressed."
            ),
        ),
        # The last one: the table is locked from here until the transaction ends.
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL([ADD], ["ALTER TABLE conversations_message DROP COLUMN span"])],
            state_operations=[
                migrations.AddField(
                    model_name="message",
                    name="span",
                    field=models.IntegerField(
                        db_default=1,  # for processes of the version before, while they last
                        default=1,
                        help_text="How many messages are in it. The hash and the depth are those of the last one.",
                    ),
                ),
            ],
        ),
    ]
