#!/usr/bin/env python3
"""The command line: `manage.py COMMAND`. Exit code 0: done; 1: done with findings; 2: could not."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as fault:
        print(fault, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
