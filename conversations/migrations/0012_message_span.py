from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0011_replay_rounds"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="span",
            field=models.PositiveIntegerField(
                db_default=1,  # for processes of the version before, while they last
                default=1,
                help_text="How many messages are in it. The hash and the depth are those of the last one.",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="content",
            field=models.BinaryField(
                help_text="Normalised blocks, JSON; of several messages, all of them, compressed."
            ),
        ),
    ]
