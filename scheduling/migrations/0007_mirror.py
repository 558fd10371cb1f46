"""How far each cluster was seen and written, so that no worker goes on from an older picture than another's."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0006_stuck_pods")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="heard_at",
            field=models.DateTimeField(
                blank=True, help_text="When its watches last spoke; on the wall clock.", null=True
            ),
        ),
        migrations.AddField(
            model_name="cluster",
            name="picture",
            field=models.JSONField(
                blank=True, default=dict, help_text="How far seen and written: no look may show less."
            ),
        ),
    ]
