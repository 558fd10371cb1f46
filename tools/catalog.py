"""Write scheduling/planning/catalog.json: the GPU models that Berth knows.

    python -m tools.catalog FACTS.yaml

The geometry of MIG boards is read from the YAML file of facts; names for people, product strings and cards without
MIG stand in MODELS below. What neither says stays null: unknown is not zero.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).resolve().parent.parent / "scheduling" / "planning" / "catalog.json"

# key, name for people, GB, family, board of the facts ("" = no MIG), product strings beyond the facts' own examples
MODELS: tuple[tuple[str, str, int, str, str, tuple[str, ...]], ...] = (
    ("a30-24gb", "A30", 24, "ampere", "A30-24GB", ("NVIDIA-A30",)),
    (
        "a100-40gb",
        "A100",
        40,
        "ampere",
        "A100-40GB",
        ("NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-PCIE-40GB", "A100-SXM4-40GB", "A100-PCIE-40GB", "nvidia-tesla-a100"),
    ),
    (
        "a100-80gb",
        "A100",
        80,
        "ampere",
        "A100-80GB",
        ("NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-80GB-PCIe", "A100-SXM4-80GB", "nvidia-a100-80gb"),
    ),
    (
        "h100-80gb",
        "H100",
        80,
        "hopper",
        "H100-80GB",
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe", "nvidia-h100-80gb", "nvidia-h100-mega-80gb"),
    ),
    ("h800-80gb", "H800", 80, "hopper", "H100-80GB", ("NVIDIA-H800", "NVIDIA-H800-PCIe", "NVIDIA-H800-80GB")),
    ("h100-94gb", "H100", 94, "hopper", "H100-94GB", ("NVIDIA-H100-NVL",)),
    ("h100-96gb", "H100", 96, "hopper", "H100-96GB", ("NVIDIA-H100-96GB",)),
    ("gh200-96gb", "GH200", 96, "hopper", "H100-96GB", ("NVIDIA-GH200-480GB",)),
    ("gh200-144gb", "GH200", 144, "hopper", "GH200-144GB", ("NVIDIA-GH200-144G-HBM3e",)),
    ("h20-96gb", "H20", 96, "hopper", "H100-96GB", ("NVIDIA-H20",)),
    ("h200-141gb", "H200", 141, "hopper", "H200-141GB", ("NVIDIA-H200", "NVIDIA-H200-NVL", "nvidia-h200-141gb")),
    ("b200-180gb", "B200", 180, "blackwell", "B200-180GB", ("NVIDIA-B200", "nvidia-b200")),
    ("gb200-186gb", "GB200", 186, "blackwell", "GB200-186GB", ("NVIDIA-GB200", "nvidia-gb200")),
    ("b300-269gb", "B300", 269, "blackwell", "B300-269GB", ("NVIDIA-B300-SXM6-AC", "NVIDIA-B300")),
    ("gb300-278gb", "GB300", 278, "blackwell", "GB300-278GB", ("NVIDIA-GB300",)),
    (
        "rtx-pro-6000-96gb",
        "RTX PRO 6000",
        96,
        "blackwell",
        "RTX-PRO-6000-BLACKWELL-96GB",
        (
            "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
            "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition",
            "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition",
            "nvidia-rtx-pro-6000",
        ),
    ),
    # The facts disagree about the slices of these two, so they are offered whole.
    ("rtx-pro-5000-48gb", "RTX PRO 5000", 48, "blackwell", "", ("NVIDIA-RTX-PRO-5000-Blackwell",)),
    ("rtx-pro-4500-32gb", "RTX PRO 4500", 32, "blackwell", "", ("NVIDIA-RTX-PRO-4500-Blackwell",)),
    ("l4-24gb", "L4", 24, "ada-lovelace", "", ("NVIDIA-L4", "nvidia-l4")),
    ("l40-48gb", "L40", 48, "ada-lovelace", "", ("NVIDIA-L40",)),
    ("l40s-48gb", "L40S", 48, "ada-lovelace", "", ("NVIDIA-L40S",)),
    ("rtx-6000-ada-48gb", "RTX 6000 Ada", 48, "ada-lovelace", "", ("NVIDIA-RTX-6000-Ada-Generation",)),
    ("rtx-4090-24gb", "GeForce RTX 4090", 24, "ada-lovelace", "", ("NVIDIA-GeForce-RTX-4090",)),
    ("a10g-24gb", "A10G", 24, "ampere", "", ("NVIDIA-A10G",)),
    ("a10-24gb", "A10", 24, "ampere", "", ("NVIDIA-A10",)),
    ("a2-16gb", "A2", 16, "ampere", "", ("NVIDIA-A2",)),
    ("a16-16gb", "A16", 16, "ampere", "", ("NVIDIA-A16",)),
    ("a40-48gb", "A40", 48, "ampere", "", ("NVIDIA-A40",)),
    ("rtx-a6000-48gb", "RTX A6000", 48, "ampere", "", ("NVIDIA-RTX-A6000",)),
    ("rtx-a5000-24gb", "RTX A5000", 24, "ampere", "", ("NVIDIA-RTX-A5000",)),
    ("rtx-3090-24gb", "GeForce RTX 3090", 24, "ampere", "", ("NVIDIA-GeForce-RTX-3090",)),
    ("t4-16gb", "T4", 16, "turing", "", ("Tesla-T4", "NVIDIA-T4", "nvidia-tesla-t4")),
    ("quadro-rtx-6000-24gb", "Quadro RTX 6000", 24, "turing", "", ("Quadro-RTX-6000",)),
    ("quadro-rtx-8000-48gb", "Quadro RTX 8000", 48, "turing", "", ("Quadro-RTX-8000",)),
    (
        "v100-16gb",
        "V100",
        16,
        "volta",
        "",
        ("Tesla-V100-SXM2-16GB", "Tesla-V100-PCIE-16GB", "nvidia-tesla-v100"),
    ),
    (
        "v100-32gb",
        "V100",
        32,
        "volta",
        "",
        ("Tesla-V100-SXM2-32GB", "Tesla-V100-SXM3-32GB", "Tesla-V100-PCIE-32GB"),
    ),
    (
        "p100-16gb",
        "P100",
        16,
        "pascal",
        "",
        ("Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB", "nvidia-tesla-p100"),
    ),
    ("p40-24gb", "P40", 24, "pascal", "", ("Tesla-P40",)),
    ("p4-8gb", "P4", 8, "pascal", "", ("Tesla-P4", "nvidia-tesla-p4")),
    ("mi210-64gb", "MI210", 64, "cdna", "", ("AMD-Instinct-MI210",)),
    ("mi250-128gb", "MI250", 128, "cdna", "", ("AMD-Instinct-MI250",)),
    ("mi250x-128gb", "MI250X", 128, "cdna", "", ("AMD-Instinct-MI250X",)),
    ("mi300a-128gb", "MI300A", 128, "cdna", "", ("AMD-Instinct-MI300A",)),
    (
        "mi300x-192gb",
        "MI300X",
        192,
        "cdna",
        "",
        ("AMD-Instinct-MI300X-OAM", "AMD-Instinct-MI300X"),
    ),
    (
        "mi325x-256gb",
        "MI325X",
        256,
        "cdna",
        "",
        ("AMD-Instinct-MI325X-OAM", "AMD-Instinct-MI325X"),
    ),
    (
        "mi355x-288gb",
        "MI355X",
        288,
        "cdna",
        "",
        ("AMD-Instinct-MI355X-OAM", "AMD-Instinct-MI355X"),
    ),
)

# Cards that take another board's geometry but not its number of multiprocessors.
OTHER_CHIP = frozenset({"h20-96gb", "h800-80gb"})

# The grain in which drivers report the memory of a slice; listings print it in GiB with two digits only.
GRAIN_MIB = 64


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tools.catalog FACTS.yaml\n")
        return 2
    facts = yaml.safe_load(Path(arguments[0]).read_text(encoding="utf-8"))
    TARGET.write_text(printed(catalog(facts)), encoding="utf-8")
    return 0


def catalog(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The whole file as plain values. A model whose board the facts lack raises KeyError."""
    boards = {gpu["key"]: board(gpu) for gpu in facts["gpus"] if gpu["profiles"]}
    used = {row[4] for row in MODELS if row[4]}
    return {
        "grades": dict(facts["evidence_grades"]),
        "boards": {slug(key): boards[key] for key in sorted(used)},
        "models": [model(row) for row in MODELS],
    }


def printed(values: Mapping[str, Any]) -> str:
    """JSON that a person can compare: indented, but each list of numbers on one line."""
    text = json.dumps(values, indent=1, ensure_ascii=False)
    return re.sub(r"\[[\s\d,]+\]", lambda found: re.sub(r"\s+", "", found[0]).replace(",", ", "), text) + "\n"


def model(row: tuple[str, str, int, str, str, tuple[str, ...]]) -> dict[str, Any]:
    key, name, gigabytes, family, board_key, products = row
    return {
        "key": key,
        "name": name,
        "memory_gb": gigabytes,
        "vendor": "amd" if family == "cdna" else "nvidia",
        "family": family,
        "board": slug(board_key) or None,
        "other_chip": key in OTHER_CHIP,
        "products": list(products),
    }


def board(gpu: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "compute_slices": gpu["total_compute_slices"],
        "memory_slices": gpu["total_memory_slices"],
        "balanced": dict(gpu["all_balanced"]),
        "sources": [source for text in gpu["sources"] if (source := public(text))],
        "profiles": [profile(entry) for entry in gpu["profiles"]],
    }


def profile(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": entry["name"],
        "resource": entry["resource"],
        "attributes": list(entry["attributes"]),
        "compute_slices": entry["compute_slices"],
        "memory_slices": entry["memory_slices"],
        "max_instances": entry["max_instances"],
        "starts": [place["start"] for place in entry["placements"]],
        "memory_mib": entry.get("memory_mib_gfd") or mebibytes(entry.get("memory_gib_listed")),
        "multiprocessors": entry.get("multiprocessors"),
        "listing": entry["evidence"]["listing"],
        "placements": entry["evidence"]["placements"],
    }


def mebibytes(gibibytes: float | None) -> int | None:
    """A listing's GiB as MiB, to the driver's grain: 19.62 -> 20096."""
    if gibibytes is None:
        return None
    return round(gibibytes * 1024 / GRAIN_MIB) * GRAIN_MIB


def public(source: str) -> str:
    """A source by its public name, without the number under which somebody keeps a copy; "" when nothing is left."""
    text = re.sub(r"[,;:]?[^,;:(]*\bids? \d[^)]*", "", source).strip()
    return text if re.search(r"[A-Za-z]", text) else ""


def slug(key: str) -> str:
    return key.lower()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
