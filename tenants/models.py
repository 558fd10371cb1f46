"""Who there is, and how much each may hold. Models keep fields and constraints; rules live in services."""

import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import F as Column
from django.db.models import Q

from tenants.fields import FractionField


class User(AbstractUser):
    """A person. The operator of the platform is staff; everything else a person may do hangs on memberships."""

    def __str__(self) -> str:
        return self.get_full_name() or self.username


class Team(models.Model):
    """A tenant. Teams form a tree: organisation, departments, teams."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(max_length=40, unique=True, help_text="Names the team's namespace; never changes.")
    name = models.CharField(max_length=80)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(name="a_team_is_not_its_own_parent", condition=~Q(parent=Column("id"))),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def namespace(self) -> str:
        """The team's namespace, the same in each cluster."""
        return f"team-{self.slug}"


class Role(models.TextChoices):
    RESEARCHER = "researcher", "Researcher"
    LEAD = "lead", "Team lead"
    FINANCE = "finance", "Finance"


class Membership(models.Model):
    """One person's role in one team; a role holds for the team's whole subtree."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role.choices)
    since = models.DateTimeField()

    class Meta:
        ordering = ["team__name", "role"]
        constraints = [
            models.UniqueConstraint(name="one_role_once_per_team", fields=["team", "user", "role"]),
            models.CheckConstraint(name="role_is_known", condition=Q(role__in=["researcher", "lead", "finance"])),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.get_role_display().lower()} of {self.team}"


class RequestState(models.TextChoices):
    PENDING = "pending", "Pending"
    APPROVED = "approved", "Approved"
    DENIED = "denied", "Denied"
    COUNTERED = "countered", "Countered"
    WITHDRAWN = "withdrawn", "Withdrawn"


class QuotaRequest(models.Model):
    """Somebody asks for a grant. The decided row is itself the trace of the decision."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="quota_requests")
    asked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="quota_requests")
    asked_at = models.DateTimeField()
    model = models.CharField(max_length=60, help_text="GPU model, a key of the catalog.")
    amount = FractionField(help_text="Cards.")
    until = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=500)
    waits_for_it = models.CharField(max_length=120, blank=True, help_text="The workload that waits, in words.")
    state = models.CharField(max_length=10, choices=RequestState.choices, default=RequestState.PENDING)
    decided_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=500, blank=True, help_text="The decider's words to the asker.")
    offered_amount = FractionField(null=True, blank=True, help_text="Cards, when countered or approved with less.")
    offered_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-asked_at", "id"]
        indexes = [models.Index(fields=["team", "state"])]
        constraints = [
            models.CheckConstraint(
                name="request_state_is_known",
                condition=Q(state__in=["pending", "approved", "denied", "countered", "withdrawn"]),
            ),
            models.CheckConstraint(
                name="four_eyes",
                condition=Q(decided_by=None) | Q(state="withdrawn") | ~Q(decided_by=Column("asked_by")),
            ),
            models.CheckConstraint(
                name="a_decision_has_a_decider_and_a_time",
                condition=Q(state="pending", decided_by=None, decided_at=None)
                | (~Q(state="pending") & Q(decided_by__isnull=False, decided_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="a_counter_offers_an_amount",
                condition=~Q(state="countered") | Q(offered_amount__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.asked_by} asks {self.amount} x {self.model} for {self.team}"


class Grant(models.Model):
    """So many cards of one GPU model, from a time, until a time or open-ended.

    Never edited: a grant ends (`ends_at` is set once) and new ones begin. Quota is the sum of the grants in force.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="grants")
    member = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="grants")
    model = models.CharField(max_length=60)
    amount = FractionField(help_text="Cards.")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, blank=True)
    request = models.OneToOneField(QuotaRequest, null=True, blank=True, on_delete=models.PROTECT, related_name="grant")
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["starts_at", "id"]
        indexes = [models.Index(fields=["team", "model", "ends_at"])]
        constraints = [
            models.CheckConstraint(
                name="a_grant_ends_after_it_starts", condition=Q(ends_at=None) | Q(ends_at__gte=Column("starts_at"))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} x {self.model} for {self.member or self.team}"


class LendingLimit(models.Model):
    """How much a team may borrow of a model, and lend to others, where a cluster lets teams do so (Kueue).

    Without a row both are bounded only by what there is. On a team with teams below it, it bounds the whole branch.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="lending_limits")
    model = models.CharField(max_length=60, help_text="GPU model, a key of the catalog.")
    borrowing = FractionField(null=True, blank=True, help_text="Cards; empty: as many as others leave unused.")
    lending = FractionField(null=True, blank=True, help_text="Cards; empty: all that it does not use.")

    class Meta:
        ordering = ["team__name", "model"]
        constraints = [
            models.UniqueConstraint(name="one_lending_limit_per_team_and_model", fields=["team", "model"]),
        ]

    def __str__(self) -> str:
        return f"{self.team} may borrow {self.borrowing} and lend {self.lending} of {self.model}"
