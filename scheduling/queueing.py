"""From tables to Kueue's queues: what each team may hold on one cluster, of which kinds of cards, with what limits."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction as F
from uuid import UUID

from scheduling.choices import Queueing
from scheduling.cluster.kueue import Limit, Stock, TeamFact, mixed_models, queue_documents, stocks_of
from scheduling.cluster.writing import Document
from scheduling.models import Cluster, Flavor
from scheduling.planning.facts import FlavorFact, Lending, NodeFact, Phase, QueueFact, QueueRules
from scheduling.planning.shares import flavors_of
from scheduling.snapshot import flavor_fact, held, pool_fact
from tenants.models import LendingLimit, Team
from tenants.selectors import quotas

NOTHING = F(0)


@dataclass(frozen=True, slots=True)
class Setup:
    """All that the queues of one cluster are made from."""

    teams: tuple[TeamFact, ...]
    stocks: tuple[Stock, ...]
    lending: Mapping[tuple[UUID, str], Lending]
    trees: Mapping[tuple[UUID, str], F]

    def documents(self) -> list[Document]:
        return list(queue_documents(self.teams, self.stocks))

    def rules(self, facts: Mapping[UUID, QueueFact]) -> QueueRules:
        return QueueRules(facts, mixed_models(self.stocks), self.lending, self.trees)

    def stock(self, name: str) -> Stock | None:
        return next((stock for stock in self.stocks if stock.name == name), None)


def queues_with_kueue(cluster: Cluster) -> bool:
    return cluster.queueing == Queueing.KUEUE


def setup_of(cluster: Cluster, nodes: Sequence[NodeFact], now: datetime) -> Setup:
    """Seven queries, however many teams."""
    teams = list(Team.objects.all())
    stocks = stocks_of(_flavors(cluster), nodes)
    models = sorted({stock.model for stock in stocks})
    granted = {key: quota.total for key, quota in quotas(now).items()}
    elsewhere = _elsewhere(cluster)
    limits = _limits(models)
    tops, slugs = _tops(teams), {team.pk: team.slug for team in teams}
    children = defaultdict[UUID, list[Team]](list)
    for team in teams:
        if team.parent_id:
            children[team.parent_id].append(team)
    facts, trees = [], defaultdict[tuple[UUID, str], F](F)
    for team in teams:
        own = {model: _own(team, children[team.pk], model, granted) for model in models}
        for model, cards in own.items():
            trees[tops[team.pk], model] += cards
        here = {model: max(NOTHING, cards - elsewhere.get((team.pk, model), NOTHING)) for model, cards in own.items()}
        above = slugs[team.parent_id] if team.parent_id else ""
        heads = bool(children[team.pk])
        facts.append(TeamFact(team.slug, team.namespace, above, heads, here, limits.get(team.pk, {})))
    lending = {
        (team.pk, model): Lending(tops[team.pk], limits.get(team.pk, {}).get(model, Limit()).borrowing)
        for team in teams
        for model in models
    }
    return Setup(tuple(facts), stocks, lending, dict(trees))


def _own(team: Team, children: Iterable[Team], model: str, granted: Mapping[tuple[UUID, str], F]) -> F:
    """What a team has and has not given to the teams below it; never negative, should a grant have ended above them."""
    given = sum((granted.get((child.pk, model), NOTHING) for child in children), NOTHING)
    return max(NOTHING, granted.get((team.pk, model), NOTHING) - given)


def _flavors(cluster: Cluster) -> Iterable[FlavorFact]:
    """What the pools can offer, and what is asked for although no pool offers it any more."""
    for pool in cluster.pools.all():
        yield from flavors_of(pool_fact(pool))
    asked = Flavor.objects.filter(workloads__cluster=cluster).exclude(workloads__phase=Phase.ENDED).distinct()
    for flavor in asked:
        yield flavor_fact(flavor)


def _elsewhere(cluster: Cluster) -> Mapping[tuple[UUID, str], F]:
    """Cards that each team holds in other clusters: grants count all of them together."""
    found: dict[tuple[UUID, str], F] = defaultdict(F)
    for (team, model, _), cards in held(exclude=cluster).items():
        found[team, model] += cards
    return found


def _limits(models: Iterable[str]) -> Mapping[UUID, dict[str, Limit]]:
    found: dict[UUID, dict[str, Limit]] = defaultdict(dict)
    for row in LendingLimit.objects.filter(model__in=list(models)):
        found[row.team_id][row.model] = Limit(row.borrowing, row.lending)
    return found


def _tops(teams: Iterable[Team]) -> Mapping[UUID, UUID]:
    """The team at the top of each team's tree."""
    parents = {team.pk: team.parent_id for team in teams}
    return {team: _top(team, parents) for team in parents}


def _top(team: UUID, parents: Mapping[UUID, UUID | None]) -> UUID:
    for _ in parents:  # a circle ends, too
        above = parents.get(team)
        if above is None:
            return team
        team = above
    return team
