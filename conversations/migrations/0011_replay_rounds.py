from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0010_lean_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="replay",
            name="round_number",
            field=models.PositiveSmallIntegerField(default=0, help_text="A later round of the turn; 0: its first."),
        ),
    ]
