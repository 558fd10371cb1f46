"""`inventory FILE`: what Berth sees in the nodes that a file holds."""

from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from portal.management.console import COULD_NOT, DONE, FINDINGS, Console, CouldNot, counted, read_file
from portal.management.nodefile import NodeFile, read_nodes
from scheduling.planning.catalog import title
from scheduling.planning.facts import DeviceFact, NodeFact, Problem


class Command(Console):
    help = "Print the cards, shares and troubles of the nodes in a file of `kubectl get nodes`; - reads standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE|-")
        parser.add_argument("--json", action="store_true")

    def work(self, **options: Any) -> int:
        name, text = read_file(options["file"])
        try:
            found = read_nodes(text)
        except CouldNot as refusal:
            found = NodeFile((), (Problem("", "", str(refusal).rstrip(".")),))
        problems = [*found.problems, *without_cards(found)]
        if options["json"]:
            self.print_json(as_json(found.nodes, problems))
        elif found.nodes:
            self.print_table(as_rows(found.nodes))
            self.stdout.write(in_total(found.nodes))
        odd = [*problems, *(problem for node in found.nodes for problem in node.problems)]
        for problem in odd:
            self.complain(sentence(name, problem))
        if not found.nodes and not odd:
            raise CouldNot(f"{name}: items: there is no node in it.")
        if not found.nodes:
            return COULD_NOT
        return FINDINGS if odd else DONE


def without_cards(found: NodeFile) -> Iterable[Problem]:
    if found.nodes and not any(node.cards for node in found.nodes):
        words = "the node has no card" if len(found.nodes) == 1 else f"none of the {len(found.nodes)} nodes has a card"
        yield Problem("", "status.allocatable", f"{words}; nothing can be placed")


def sentence(name: str, problem: Problem) -> str:
    """File, place, field and what is wrong, in one sentence."""
    return ": ".join(part for part in (name, problem.where, problem.field, problem.text) if part) + "."


def as_json(nodes: Iterable[NodeFact], problems: Iterable[Problem]) -> dict[str, Any]:
    """The keys that docs/commands.md promises."""
    nodes = list(nodes)
    return {
        "nodes": [node_as_json(node) for node in nodes],
        "totals": {"cards": sum(node.cards for node in nodes), "by_model": by_model(nodes)},
        "problems": [problem_as_json(problem) for problem in problems],
    }


def node_as_json(node: NodeFact) -> dict[str, Any]:
    return {
        "name": node.name,
        "pool": node.pool,
        "model": node.model,
        "title": title(node.model),
        "known": node.known,
        "memory_mib": node.memory_mib,
        "cards": node.cards,
        "sick_cards": node.sick_cards,
        "sharing": str(node.sharing),
        "replicas": node.replicas,
        "capacity": str(node.capacity),
        "zone": node.zone,
        "cpu_milli": node.cpu_milli,
        "host_memory_mib": node.host_memory_mib,
        "flavors": [flavor_as_json(node, device) for device in node.devices],
        "ready": node.ready,
        "schedulable": node.schedulable,
        "problems": [problem_as_json(problem) for problem in node.problems],
    }


def flavor_as_json(node: NodeFact, device: DeviceFact) -> dict[str, Any]:
    return {
        "resource": device.resource,
        "profile": device.profile,
        "share": str(device.share),
        "isolation": str(device.isolation),
        "memory_mib": device.memory_mib,
        "total": device.capacity,
        "free_hint": device.allocatable if node.schedulable and node.known else 0,
    }


def problem_as_json(problem: Problem) -> dict[str, str]:
    return {"where": problem.where, "field": problem.field, "text": problem.text}


def by_model(nodes: Iterable[NodeFact]) -> dict[str, int]:
    """Cards by model; those of no known name stand under "unknown"."""
    found: dict[str, int] = {}
    for node in nodes:
        if node.cards:
            model = node.model or "unknown"
            found[model] = found.get(model, 0) + node.cards
    return dict(sorted(found.items()))


def as_rows(nodes: Iterable[NodeFact]) -> list[list[str]]:
    rows = [["NODE", "POOL", "MODEL", "CARDS", "SHARING", "GIVEN OUT AS", "STATE"]]
    for node in nodes:
        model = title(node.model) if node.cards else "-"
        cards = f"{node.cards} ({node.sick_cards} sick)" if node.sick_cards else str(node.cards)
        given = ", ".join(device_in_words(device) for device in node.devices) or "nothing"
        sharing = f"{node.sharing} x {node.replicas}" if node.replicas > 1 else str(node.sharing)
        rows.append(
            [node.name, node.pool or "-", model or "unknown", cards, sharing if node.cards else "-", given, state(node)]
        )
    return rows


def device_in_words(device: DeviceFact) -> str:
    what = device.profile or ("whole" if device.share == 1 else str(device.share))
    units = (
        f"{device.allocatable} of {device.capacity}" if device.allocatable < device.capacity else str(device.capacity)
    )
    return f"{units} x {what}"


def state(node: NodeFact) -> str:
    if node.schedulable:
        return "usable" if node.known or not node.cards else "set aside"
    if node.cutting_to or node.mig_state in {"pending", "rebooting"}:
        return "being cut"
    if node.leaving or node.dropped:
        return "leaving"
    return "not usable" if node.ready else "not ready"


def in_total(nodes: Iterable[NodeFact]) -> str:
    nodes = list(nodes)
    models = ", ".join(f"{cards} x {title(model)}" for model, cards in by_model(nodes).items())
    cards = sum(node.cards for node in nodes)
    return f"{counted(len(nodes), 'node')}, {counted(cards, 'card')}" + (f": {models}" if models else "")
