"""`consistency`: finds and explains every disagreement between tables, cluster and ledger."""

from argparse import ArgumentParser
from datetime import timedelta as td
from typing import Any

from django.db import DatabaseError

from portal.management.console import DONE, FINDINGS, Console, counted, unreadable_tables
from scheduling.consistency import CHECKS, Look, run_checks
from tenants import clock

PATIENCE = td(minutes=15)


class Command(Console):
    help = "Find and explain every disagreement between tables, cluster and ledger. Repairs nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")

    def work(self, **options: Any) -> int:
        look = Look(now=clock.now(), patience=PATIENCE * max(1.0, clock.rate()))
        try:
            findings = run_checks(look)
        except DatabaseError as error:
            raise unreadable_tables(error) from None
        faults = [finding for finding in findings if not finding.mere_note]
        if options["json"]:
            rows = [
                {"check": found.check, "where": found.where, "text": found.text, "note": found.mere_note}
                for found in findings
            ]
            self.print_json({"at": look.now.isoformat(), "checks": list(CHECKS), "findings": rows})
        else:
            self.print_table([["CHECK", "FINDING"], *([found.check, str(found)] for found in findings)])
            notes = len(findings) - len(faults)
            words = (counted(len(CHECKS), "check"), counted(len(faults), "finding"), counted(notes, "note"))
            self.stdout.write(", ".join(words) + ".")
        return FINDINGS if faults else DONE
