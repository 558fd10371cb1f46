"""Forms check shape: the type of each field and its bounds. Rules are the services'."""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from datetime import timedelta as td
from decimal import Decimal
from fractions import Fraction as F
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings

from scheduling.planning import catalog
from scheduling.planning.facts import Kind, Phase
from scheduling.services import LONGEST_GRACE
from tenants.errors import Refused
from tenants.models import RequestState, Team

AMOUNT = re.compile(r"\d{1,6}(\.\d{1,4})?|\d{1,6}/\d{1,4}")
ALIASES = {"cpu_milli": "cores", "memory_mib": "memory_gib"}
OPEN = "open"


class WholeField(forms.IntegerField):
    """A whole number, refused in our words."""

    default_error_messages = {
        "invalid": "Write a whole number.",
        "min_value": "Write %(limit_value)s or more.",
        "max_value": "Write %(limit_value)s or less.",
    }


class AmountField(forms.CharField):
    """Cards, as an exact fraction: 2, 0.5 or 7/8."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=12, widget=forms.TextInput(attrs={"inputmode": "decimal"}), **options)

    def clean(self, value: Any) -> F | None:
        text = super().clean(value).replace(",", ".").replace(" ", "")
        if not text:
            return None
        if not AMOUNT.fullmatch(text) or text.endswith("/0"):
            raise forms.ValidationError("Write a number of cards such as 2, 0.5 or 7/8.")
        try:
            return F(text)
        except ZeroDivisionError:
            raise forms.ValidationError("Write a number of cards such as 2, 0.5 or 7/8.") from None


class LastDayField(forms.DateField):
    """The last day of something; its value is the midnight that ends that day in the organisation's zone."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
        options.setdefault("error_messages", {"invalid": "Write the day as 2027-03-31."})
        super().__init__(widget=widget, input_formats=["%Y-%m-%d"], required=False, **options)

    def clean(self, value: Any) -> datetime | None:
        day = super().clean(value)
        return None if day is None else end_of(day)


class LoginForm(forms.Form):
    username = forms.CharField(
        label="Name", max_length=150, widget=forms.TextInput(attrs={"autocomplete": "username", "spellcheck": "false"})
    )
    password = forms.CharField(
        label="Password",
        max_length=500,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class WorkloadFilter(forms.Form):
    q = forms.CharField(label="Search", max_length=80, required=False, widget=forms.TextInput(attrs={"type": "search"}))
    phase = forms.ChoiceField(
        label="Phase",
        required=False,
        choices=[("", "Not ended"), ("all", "All"), *((str(phase), str(phase).title()) for phase in Phase)],
    )
    team = forms.ChoiceField(label="Team", required=False)
    kind = forms.ChoiceField(
        label="Kind", required=False, choices=[("", "All kinds"), *((str(kind), str(kind).title()) for kind in Kind)]
    )
    owner = forms.ChoiceField(label="Owner", required=False, choices=[("", "Everybody"), ("me", "Mine")])

    def __init__(self, data: Any, teams: Iterable[Team]) -> None:
        super().__init__(data)
        choice(self, "team").choices = [("", "All teams"), *((str(team.pk), team.name) for team in teams)]


class WishForm(forms.Form):
    """What somebody needs; which flavor it will be is the button that sends the form."""

    kind = forms.ChoiceField(
        label="What is it?",
        initial=Kind.WORKSPACE,
        widget=forms.RadioSelect,
        choices=[
            (str(Kind.WORKSPACE), "Workspace: a notebook that sleeps when idle"),
            (str(Kind.JOB), "Job: a command that runs to its end"),
        ],
    )
    team = forms.ChoiceField(label="Team")
    name = forms.CharField(
        label="Name",
        max_length=60,
        widget=forms.TextInput(
            attrs={"placeholder": "diffusion-notebook", "autocomplete": "off", "spellcheck": "false"}
        ),
        error_messages={"required": "Give it a name, such as diffusion-notebook."},
    )
    count = WholeField(label="Cards", min_value=1, max_value=64, initial=1, help_text="Slices come one by one.")
    hours = WholeField(
        label="For up to (hours)",
        min_value=1,
        max_value=720,
        required=False,
        initial=8,
        help_text="Empty: until ended.",
    )
    command = forms.CharField(
        label="Command",
        max_length=2000,
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 2, "class": "code", "spellcheck": "false", "placeholder": "python train.py"}
        ),
        help_text="Jobs need one; a shell in the container runs it.",
    )
    reason = forms.CharField(
        label="What for",
        max_length=500,
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 2, "placeholder": "Fine-tuning the segmentation model for the March deadline"}
        ),
        help_text="Your lead decides by this where an offer needs a decision.",
    )
    image = forms.CharField(
        label="Image",
        max_length=300,
        required=False,
        widget=forms.TextInput(
            attrs={"class": "code", "spellcheck": "false", "placeholder": "the usual one of its kind"}
        ),
    )
    storage_gib = WholeField(
        label="Storage (GiB)", min_value=0, max_value=2048, initial=50, help_text="Kept while it sleeps."
    )
    cores = forms.DecimalField(
        label="CPU cores",
        min_value=Decimal("0.1"),
        max_value=256,
        max_digits=6,
        decimal_places=1,
        initial=4,
        error_messages={**WholeField.default_error_messages, "invalid": "Write a number such as 4 or 0.5."},
    )
    memory_gib = WholeField(label="Memory (GiB)", min_value=1, max_value=4096, initial=16)
    until = LastDayField(label="Until", help_text="Of the quota you ask for; empty: open-ended.")
    cuda = forms.CharField(
        label="CUDA at least",
        max_length=10,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "12.4", "inputmode": "decimal", "autocomplete": "off"}),
        help_text="Empty: as the image's tag tells.",
    )
    grace_seconds = WholeField(
        label="Seconds to stop",
        min_value=1,
        max_value=LONGEST_GRACE,
        required=False,
        initial=30,
        help_text="From the notice to the kill; empty: 30.",
    )
    checkpoint = forms.CharField(
        label="Command before it stops",
        max_length=500,
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 2, "class": "code", "spellcheck": "false", "placeholder": "python save.py"}
        ),
        help_text="A shell in the container runs it, within these seconds, so that nothing is lost.",
    )
    submission = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, teams: Sequence[Team], **options: Any) -> None:
        super().__init__(data, **options)
        self.teams = teams
        field = choice(self, "team")
        field.choices = [(str(team.pk), team.name) for team in teams]
        field.error_messages["invalid_choice"] = "Choose one of the teams in which you run work."


class AskForm(forms.Form):
    """A request for quota."""

    team = forms.ChoiceField(label="Team")
    model = forms.ChoiceField(label="GPU model")
    amount = AmountField(label="Cards", error_messages={"required": "Say how many cards: 2, 0.5 or 7/8."})
    until = LastDayField(label="Until the end of", help_text="Empty: open-ended.")
    reason = forms.CharField(
        label="What for",
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say in a sentence what the cards are for: the lead decides by it."},
    )

    def __init__(self, data: Any = None, *, teams: Sequence[Team], models: Iterable[str], **options: Any) -> None:
        super().__init__(data, **options)
        team, model = choice(self, "team"), choice(self, "model")
        team.choices = [(str(one.pk), one.name) for one in teams]
        team.error_messages["invalid_choice"] = "Choose one of the teams in which you run work."
        model.choices = [(key, catalog.title(key)) for key in models]
        model.error_messages["invalid_choice"] = "Choose a GPU model of the fleet."


class GrantFilter(forms.Form):
    team = forms.ChoiceField(label="Team", required=False)
    model = forms.ChoiceField(label="Model", required=False)

    def __init__(self, data: Any, *, teams: Iterable[Team], models: Iterable[str]) -> None:
        super().__init__(data, auto_id="which_%s")
        choice(self, "team").choices = [("", "All teams"), *((str(team.pk), team.name) for team in teams)]
        choice(self, "model").choices = [("", "All models"), *((key, catalog.title(key)) for key in models)]


class DecidedFilter(forms.Form):
    state = forms.ChoiceField(label="Answer", required=False)
    q = forms.CharField(
        label="Who asked", max_length=80, required=False, widget=forms.TextInput(attrs={"type": "search"})
    )

    def __init__(self, data: Any) -> None:
        super().__init__(data, auto_id="which_%s")
        answers = [(state.value, state.label) for state in RequestState if state != RequestState.PENDING]
        choice(self, "state").choices = [("", "All answers"), *answers]


class DecisionForm(forms.Form):
    """A lead's answer. All empty means: as asked for."""

    amount = AmountField(label="Cards", required=False)
    until = LastDayField(label="Until the end of")
    note = forms.CharField(
        label="Words to the asker", max_length=500, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )

    def offers(self) -> F:
        """The amount of a counter-offer."""
        amount: F | None = self.cleaned_data["amount"]
        if amount is None:
            raise Refused("Say how many cards you offer.", field="amount")
        return amount


class PoolForm(forms.Form):
    """The operator's rules for one pool."""

    min_nodes = WholeField(label="Nodes at least", min_value=0)
    max_nodes = WholeField(label="Nodes at most", min_value=0)
    idle_minutes = WholeField(
        label="Idle workspaces sleep after (minutes)", min_value=1, required=False, help_text="Empty: never."
    )
    empty_minutes = WholeField(label="Empty nodes go after (minutes)", min_value=0, help_text="0: at once.")
    spread = forms.BooleanField(label="Fill the emptiest node first", required=False)
    layout = forms.CharField(
        label="Fresh nodes come up as",
        max_length=63,
        required=False,
        widget=forms.TextInput(attrs={"class": "code", "spellcheck": "false"}),
    )
    layouts = forms.CharField(
        label="May be cut to",
        max_length=600,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "code", "spellcheck": "false"}),
        help_text="One MIG layout per line, such as all-1g.10gb; empty: never cut.",
    )

    def clean_layouts(self) -> list[str]:
        return (
            list(dict.fromkeys(re.split(r"[\s,]+", self.cleaned_data["layouts"].strip())))
            if self.cleaned_data["layouts"].strip()
            else []
        )


def refuse(form: forms.Form, refusal: Refused) -> None:
    """Put a service's sentence beside the field that it is about, or above the form."""
    field = ALIASES.get(refusal.field, refusal.field)
    shown = field in form.fields and not form.fields[field].widget.is_hidden
    form.add_error(field if shown else None, refusal.text)


def end_of(day: date) -> datetime:
    """The midnight that ends a day where the organisation is."""
    if day >= date(9990, 1, 1):
        raise forms.ValidationError("Choose a day before the year 9990.")
    return datetime.combine(day + td(days=1), time(), tzinfo=ZoneInfo(settings.BERTH_ZONE))


def choice(form: forms.Form, name: str) -> forms.ChoiceField:
    field = form.fields[name]
    if not isinstance(field, forms.ChoiceField):
        raise TypeError(f"{name} is no choice.")
    return field
