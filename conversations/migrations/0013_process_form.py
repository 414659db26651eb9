from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0012_message_span"),
    ]

    operations = [
        migrations.AddField(
            model_name="process",
            name="form",
            field=models.PositiveSmallIntegerField(
                db_default=0,  # for processes of the version before, while they last
                default=0,
                help_text="The newest form of rows that it reads: none is written that another one cannot.",
            ),
        ),
    ]
