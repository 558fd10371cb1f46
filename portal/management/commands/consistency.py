"""`consistency`: finds and explains every disagreement between tables, cluster and ledger."""

import json
import sys
from argparse import ArgumentParser
from datetime import timedelta as td
from typing import Any

from django.core.management.base import BaseCommand

from scheduling.consistency import CHECKS, Look, run_checks
from tenants import clock

PATIENCE = td(minutes=15)


class Command(BaseCommand):
    help = "Find and explain every disagreement between tables, cluster and ledger. Repairs nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, *_: Any, **options: Any) -> None:
        look = Look(now=clock.now(), patience=PATIENCE * max(1.0, clock.rate()))
        findings = run_checks(look)
        faults = [finding for finding in findings if not finding.mere_note]
        if options["json"]:
            rows = [
                {"check": found.check, "where": found.where, "text": found.text, "note": found.mere_note}
                for found in findings
            ]
            report = {"at": look.now.isoformat(), "checks": list(CHECKS), "findings": rows}
            self.stdout.write(json.dumps(report, indent=2))
        else:
            for finding in findings:
                self.stdout.write(f"{'note' if finding.mere_note else finding.check}: {finding}")
            self.stdout.write(f"{len(CHECKS)} checks, {len(faults)} findings, {len(findings) - len(faults)} notes.")
        if faults:
            sys.exit(1)
