"""The rooms of docs/architecture.md and the doors between them, read off the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("portal", "scheduling", "tenants")
LONGEST_FUNCTION = 60  # lines, decorators and docstring included
LONGEST_FILE = 450

MAY_IMPORT = {  # whose modules a room's modules may import, of ours
    "tenants": {"tenants"},
    "scheduling": {"tenants", "scheduling"},
    "portal": {"tenants", "scheduling", "portal"},
}
PURE = (  # the standard library, numpy, and each other
    "scheduling.planning",
    "tenants.quota",
    "tenants.billing.balance",
    "tenants.billing.findings",
    "tenants.billing.posting",
    "tenants.billing.rating",
    "tenants.billing.report",
)
WITHOUT_DJANGO = (  # neither they nor what they import
    *PURE,
    "scheduling.cluster",
    "scheduling.telemetry.dcgm",
    "scheduling.telemetry.exposition",
    "tenants.clock",
    "portal.processes",
)
SPEAK_TO_KUBERNETES = {"scheduling.cluster.client", "portal.bench.decoding"}
INWARD = {  # inside scheduling: what these may not import
    "scheduling.planning": ("scheduling.cluster", "scheduling.reconcile", "scheduling.telemetry", "scheduling.models"),
    "scheduling.cluster": ("scheduling.reconcile", "scheduling.models", "scheduling.services", "scheduling.tasks"),
    "scheduling.providers": ("scheduling.reconcile", "scheduling.services", "scheduling.tasks"),
    "scheduling.telemetry": ("scheduling.reconcile", "scheduling.services", "scheduling.tasks"),
    "scheduling.services": ("scheduling.reconcile", "scheduling.tasks"),
    "scheduling.models": ("scheduling.reconcile", "scheduling.tasks", "scheduling.services", "scheduling.selectors"),
}
FORBIDDEN_IMPORTS = ("django.dispatch", "django.db.models.signals", "django.core.signals", "pickle", "marshal")
FORBIDDEN_NAMES = {"mark_safe", "eval", "exec", "SafeString", "RawSQL"}
FORBIDDEN_METHODS = {"raw", "extra"}
WEB_PROCESS = """
import sys, portal.asgi
from django.urls import get_resolver
get_resolver().url_patterns
print("kubernetes" in sys.modules)
"""
INLINE_TRICKS = ("|safe", "autoescape off", "<style", " style=", " onclick=", " hx-on", "javascript:")


@dataclass(frozen=True)
class Module:
    """One source file of a room."""

    name: str
    path: Path

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    def lies_in(self, *prefixes: str) -> bool:
        return any(within(self.name, prefix) for prefix in prefixes)


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


@cache
def modules() -> dict[str, Module]:
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py") if "migrations" not in file.parts]
    found = (Module(module_name(file), file) for file in sorted(files))
    return {module.name: module for module in found}


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(module: Module) -> ast.Module:
    return ast.parse(module.path.read_text(encoding="utf-8"), str(module.path))


@cache
def imports(module: Module) -> frozenset[str]:
    """Every module that is imported, anywhere in the file; `from a import b` counts as a.b where that is a module."""
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = absolute(module, node)
            found.add(source)
            found.update(f"{source}.{alias.name}" for alias in node.names if f"{source}.{alias.name}" in modules())
    return frozenset(found)


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """The full name behind `from . import x`."""
    if not node.level:
        return node.module or ""
    package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
    for _ in range(node.level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{node.module}" if node.module else package


def reached(module: Module) -> dict[str, str]:
    """Every module that importing this one imports, with our module that names it; also the packages above."""
    seen: dict[str, str] = {}
    waiting = [(module.name, module.name)]
    while waiting:
        name, importer = waiting.pop()
        if name in seen:
            continue
        seen[name] = importer
        if name in modules():
            waiting += [(target, name) for target in imports(modules()[name])]
            waiting += [(parent, name) for parent in name.rpartition(".")[:1] if parent]
    return seen


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree(module)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_rooms_are_there() -> None:
    assert {module.room for module in modules().values()} == set(ROOMS)
    assert len(modules()) > 30


def test_imports_are_read_wherever_they_stand(tmp_path: Path) -> None:
    source = tmp_path / "guest.py"
    source.write_text("from .. import quota\nfrom .rating import price\ndef late():\n    import kubernetes.client\n")

    found = imports(Module("tenants.billing.guest", source))

    assert found == {"tenants", "tenants.quota", "tenants.billing.rating", "kubernetes.client"}


def test_what_is_imported_by_detour_is_reached() -> None:
    assert reached(modules()["tenants.services"])["django.db"] in modules()


def test_imports_run_one_way_between_the_rooms() -> None:
    wrong = [
        f"{module.name} imports {target}"
        for module in modules().values()
        for target in imports(module)
        if target.partition(".")[0] in ROOMS and target.partition(".")[0] not in MAY_IMPORT[module.room]
    ]
    assert wrong == []


def test_pure_modules_import_the_standard_library_and_each_other() -> None:
    wrong = [
        f"{module.name} imports {target}"
        for module in modules().values()
        if module.lies_in(*PURE)
        for target in imports(module)
        if not is_plain(target) and not any(within(target, prefix) for prefix in PURE)
    ]
    assert wrong == []


def is_plain(target: str) -> bool:
    return target.partition(".")[0] in {*sys.stdlib_module_names, "numpy"}


def test_some_modules_and_all_they_import_know_no_django() -> None:
    wrong = [
        f"{module.name}: {importer} imports {target}"
        for module in modules().values()
        if module.lies_in(*WITHOUT_DJANGO)
        for target, importer in reached(module).items()
        if within(target, "django")
    ]
    assert wrong == []


def test_only_the_wall_speaks_to_kubernetes() -> None:
    wrong = [
        f"{module.name} imports {target}"
        for module in modules().values()
        if module.name not in SPEAK_TO_KUBERNETES
        for target in imports(module)
        if within(target, "kubernetes")
    ]
    assert wrong == []


def test_inside_scheduling_imports_run_from_tasks_to_planning() -> None:
    wrong = [
        f"{module.name} imports {target}"
        for prefix, forbidden in INWARD.items()
        for module in modules().values()
        if module.lies_in(prefix)
        for target in imports(module)
        if any(within(target, other) for other in forbidden)
    ]
    assert wrong == []


def test_nobody_imports_signals_or_picklers() -> None:
    wrong = [
        f"{module.name} imports {target}"
        for module in modules().values()
        for target in imports(module)
        if any(within(target, forbidden) for forbidden in FORBIDDEN_IMPORTS)
    ]
    assert wrong == []


def test_nobody_evaluates_text_or_trusts_markup_or_writes_raw_queries() -> None:
    wrong = [f"{module.name}:{line} {name}" for module in modules().values() for name, line in forbidden_uses(module)]
    assert wrong == []


def forbidden_uses(module: Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES:
            yield node.id, node.lineno
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_NAMES:
            yield node.attr, node.lineno
        if isinstance(node, ast.Call) and is_raw_query(node.func):
            yield ast.unparse(node.func), node.lineno


def is_raw_query(called: ast.expr) -> bool:
    """`X.objects.raw(…)` and `rows.extra(…)`."""
    return isinstance(called, ast.Attribute) and called.attr in FORBIDDEN_METHODS


def test_rules_do_not_hide_in_save() -> None:
    tables = [module for module in modules().values() if module.name.endswith("models")]
    wrong = [module.name for module in tables for node in functions(module) if node.name in {"save", "delete"}]
    assert tables
    assert wrong == []


def test_functions_are_short() -> None:
    long = {
        f"{module.name}.{node.name}": length
        for module in modules().values()
        for node in functions(module)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert long == {}


def test_files_are_short() -> None:
    lengths = {module.name: len(module.path.read_text(encoding="utf-8").splitlines()) for module in modules().values()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_templates_escape_and_hold_no_inline_code() -> None:
    """The content security policy would refuse inline code and styles anyway; this says so before a browser does."""
    wrong = [
        f"{template.relative_to(ROOT)} holds {trick!r}"
        for template in (ROOT / "templates").rglob("*.html")
        for trick in INLINE_TRICKS
        if trick in template.read_text(encoding="utf-8")
    ]
    assert wrong == []


def test_the_web_process_never_loads_the_kubernetes_client() -> None:
    """It weighs 50 MB and half a second; workers pay for it, browsers do not wait for it."""
    words = [sys.executable, "-c", WEB_PROCESS]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=50)
    assert result.stdout == "False\n", result.stderr
