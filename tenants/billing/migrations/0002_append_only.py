"""The database refuses to change the ledger, whoever asks.

On SQLite only changes are refused by the database: emptying its tables, as test runs do between tests, is a DELETE
there. Removal is refused by the model's manager on both.
"""

from django.db import migrations

TABLE = "billing_charge"
SENTENCE = "A ledger line is never changed or removed; post a line that corrects it."

ON_POSTGRESQL = [
    f"""
    CREATE FUNCTION billing_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '{SENTENCE}' USING ERRCODE = 'integrity_constraint_violation'; END $$
    """,
    f"""
    CREATE TRIGGER billing_charge_is_append_only BEFORE UPDATE OR DELETE ON {TABLE}
    FOR EACH ROW EXECUTE FUNCTION billing_refuse_change()
    """,
]
OFF_POSTGRESQL = [
    f"DROP TRIGGER billing_charge_is_append_only ON {TABLE}",
    "DROP FUNCTION billing_refuse_change()",
]
ON_SQLITE = [
    f"""
    CREATE TRIGGER billing_charge_is_append_only BEFORE UPDATE ON {TABLE}
    BEGIN SELECT RAISE(ABORT, '{SENTENCE}'); END
    """,
]
OFF_SQLITE = ["DROP TRIGGER billing_charge_is_append_only"]


def guard(apps, schema_editor):
    run(schema_editor, {"postgresql": ON_POSTGRESQL, "sqlite": ON_SQLITE})


def unguard(apps, schema_editor):
    run(schema_editor, {"postgresql": OFF_POSTGRESQL, "sqlite": OFF_SQLITE})


def run(schema_editor, statements):
    for statement in statements[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial")]

    operations = [migrations.RunPython(guard, unguard)]
