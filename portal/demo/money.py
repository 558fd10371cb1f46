"""The second half of the story: Farah reads what the last month cost, to the last digit, and closes it."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

from portal.demo.stage import Stage
from portal.demo.visitor import expect

BUCKETS = ("unallocated", "stranded")
LINK = re.compile(r'<a [^>]*href="([^"#]+)"')
MOST_ROWS = 200  # of one page of the ledger


def the_month(stage: Stage) -> str:
    """By team, person, model and flavor; what nobody used has lines of its own; every table sums to its total."""
    stage.ids["month"] = last_month(stage)
    found = month(stage)
    tables, currency = found["tables"], found["currency"]
    for name in ("by_team", "by_person", "by_model", "by_flavor"):
        check_table(name, tables[name], tables["charged"])
    check_table("platform", tables["platform"], tables["overhead"])
    check_table("total", [tables["charged"], tables["overhead"]], tables["total"])
    amounts = {row["key"]: Decimal(row["amount"]) for row in tables["platform"]}
    expect(all(amounts.get(kind) for kind in BUCKETS), f"Nothing stands for {BUCKETS}: {amounts}")
    expect(len(tables["by_team"]) > 2 and len(tables["by_person"]) > 5, "The month knows hardly anybody.")
    page = stage.farah.get(f"/chargeback/{stage.ids['month']}/").text
    missing = [word for word in ("Vision", "Robin Vale", "Unallocated", "Stranded") if word not in page]
    expect(not missing, f"The page of the month does not show {missing}.")
    charged, total = tables["charged"]["shown"], tables["total"]["shown"]
    return (
        f"{found['name']}: {charged} of {total} {currency} charged to {len(tables['by_team'])} teams; each table sums."
    )


def the_lines(stage: Stage) -> str:
    """Every line of the ledger, added up: the month's total to the last digit."""
    tables = month(stage)["tables"]
    lines = list(ledger(stage, ""))
    charged = sum((Decimal(line["amount"]) for line in lines if line["kind"] == "use"), Decimal(0))
    every = sum((Decimal(line["amount"]) for line in lines), Decimal(0))
    seconds = sum((F(line["card_seconds"]) for line in lines), F(0))
    expect(len(lines) == tables["lines"], f"{len(lines)} lines were read, {tables['lines']} are said to be there.")
    expect(charged == Decimal(tables["charged"]["amount"]), f"The teams' lines sum to {charged}.")
    expect(
        every == Decimal(tables["total"]["amount"]),
        f"All lines sum to {every}, the total is {tables['total']['amount']}.",
    )
    expect(seconds == F(tables["total"]["card_seconds"]), f"All lines hold {seconds} card-seconds.")
    return f"{len(lines)} lines sum to {every}, and their card-seconds to {seconds}."


def the_drill_down(stage: Stage) -> str:
    """From a team's figure to the workloads, placements and lines behind it, by the links of the pages."""
    row = next(row for row in month(stage)["tables"]["by_team"] if row["name"] == "Vision")
    lines = list(ledger(stage, f"&team={row['key']}&kind=use"))
    amount = sum((Decimal(line["amount"]) for line in lines), Decimal(0))
    expect(amount == Decimal(row["amount"]), f"Vision's lines sum to {amount}, its row says {row['amount']}.")
    ids = {name: {line[name] for line in lines} for name in ("workload", "placement")}
    pages = [stage.farah.get(f"/chargeback/{stage.ids['month']}/").text]
    for wanted in ([str(row["key"])], ids["workload"], ids["placement"]):
        pages.append(stage.farah.get(link_with(pages[-1], wanted)).text)
    node = next(line["node"] for line in lines if line["placement"] in pages[-1] or line["node"] in pages[-1])
    return (
        f"Vision's {amount} come from {len(lines)} lines of {len(ids['placement'])} placements, one of them on {node}."
    )


def the_file(stage: Stage) -> str:
    """The month as CSV: the same lines, the same sum."""
    page = stage.farah.get(f"/chargeback/{stage.ids['month']}/").text
    answer = stage.farah.get(link_with(page, ["csv"]))
    expect(answer.headers.get("Content-Type", "").startswith("text/csv"), "The file is no CSV.")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    amount = sum((Decimal(row["amount"]) for row in rows), Decimal(0))
    total = Decimal(month(stage)["tables"]["total"]["amount"])
    expect(amount == total, f"The file sums to {amount}, the month to {total}.")
    return f"{len(rows)} rows sum to {amount}."


def the_closing(stage: Stage) -> str:
    """Reading changes nothing; closing is a POST of finance, once."""
    period = stage.ids["month"]
    path = f"/api/v1/chargeback/{period}/close/"
    before = month(stage)
    stage.farah.get(path, 405)
    expect(month(stage) == before, "Reading the month changed it.")
    stage.dana.post(path, status=403)
    closed = stage.farah.post(path).data
    expect(closed["is_closed"] and closed["closed_by"], f"The month is not closed: {closed['closed_by']}")
    expect(closed["tables"] == before["tables"], "Closing changed the figures.")
    second = stage.farah.post(path, status=409).refusal
    expect("Farah Lindqvist" in second, f"The second closing is told: {second}")
    return f"{closed['name']} is closed. A second time: “{second}”"


def last_month(stage: Stage) -> str:
    """The newest month that is over, as the list of months says."""
    periods = sorted(one["period"] for one in stage.farah.get("/api/v1/chargeback/").data["results"])
    expect(len(periods) > 1, f"There are lines in {periods} only; a month that is over is missing.")
    return str(periods[-2])


def month(stage: Stage) -> Mapping[str, Any]:
    found: Mapping[str, Any] = stage.farah.get(f"/api/v1/chargeback/{stage.ids['month']}/").data
    return found


def ledger(stage: Stage, which: str) -> Iterable[Mapping[str, Any]]:
    """All lines of the month that the parameters pick, page by page."""
    number = 1
    while True:
        path = f"/api/v1/chargeback/{stage.ids['month']}/lines/?page_size={MOST_ROWS}&page={number}{which}"
        page = stage.farah.get(path).data
        yield from page["results"]
        if page["next"] is None:
            return
        number += 1


def link_with(page: str, wanted: Iterable[str]) -> str:
    """The first link of a page whose address holds one of the words. Raises DidNotHappen where there is none."""
    words = list(wanted)
    links = [html.unescape(link) for link in LINK.findall(page)]
    found = next((link for link in links if any(word in link for word in words)), None)
    expect(found, f"No link of the page leads to {words[:3]}.")
    return found or ""


def check_table(name: str, rows: Iterable[Mapping[str, Any]], total: Mapping[str, Any]) -> None:
    """Exact amounts, card-seconds and every shown column sum to those of the total. Raises DidNotHappen."""
    rows = list(rows)
    for column in ("amount", "card_hours", "mean_cards", "shown"):
        found = sum((Decimal(row[column]) for row in rows), Decimal(0))
        expect(found == Decimal(total[column]), f"{name}: {column} sums to {found}, not to {total[column]}.")
    seconds = sum((F(row["card_seconds"]) for row in rows), F(0))
    expect(seconds == F(total["card_seconds"]), f"{name}: the card-seconds sum to {seconds}.")


SCENES: tuple[tuple[str, Callable[[Stage], str]], ...] = (
    ("Farah reads the month", the_month),
    ("Every line sums to the total", the_lines),
    ("From a figure to its placements", the_drill_down),
    ("The month as a file", the_file),
    ("Farah closes the month", the_closing),
)
