"""`python -m scheduling.cluster.simulated --port 8001 --seed DIR`: the simulated cluster as a process."""

from __future__ import annotations

import argparse
import sys
import uuid
from pathlib import Path

from .clock import SharedClock
from .cluster import Server, SimulatedCluster
from .seeding import FLEET, read_documents


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C. 2 when the seed cannot be read or the port is taken."""
    options = parse(arguments)
    try:
        documents = [document for seed in options.seed or [FLEET] for document in read_documents(Path(seed))]
        cluster = SimulatedCluster(documents, clock=SharedClock(), identity=options.identity or uuid.uuid4().hex)
        server = Server(cluster, options.port)
    except (OSError, ValueError) as error:
        print(f"simulated cluster: {error}", file=sys.stderr)
        return 2
    print(f"ready {server.url}", flush=True)
    server.run()
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="simulated", description=__doc__)
    parser.add_argument("--port", type=int, default=8001, help="on 127.0.0.1; 0 picks a free one")
    parser.add_argument("--seed", action="append", help="a YAML file or a folder of them; default: the demo's fleet")
    parser.add_argument("--identity", help="the seed of all uids; default: a new one each time")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
