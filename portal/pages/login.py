"""Logging in and out. In the demo one picks a person; elsewhere name and password, with a bound on guessing."""

import structlog
from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from portal.demo.people import FOUR, four
from portal.guesses import Guess, forget, note_failure, seconds_to_wait
from portal.pages.forms import LoginForm
from tenants.models import User

log = structlog.get_logger(__name__)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def log_in(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return be_somebody(request) if settings.BERTH_DEMO and "person" in request.POST else check_password(request)
    if request.user.is_authenticated:
        return redirect(onward(request))
    return show_form(request, LoginForm())


@never_cache
@require_POST
def log_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("login")


def be_somebody(request: HttpRequest) -> HttpResponse:
    """The demo's way in: any of the four, without a password."""
    name = request.POST["person"]
    found = (
        User.objects.filter(username=name, is_active=True).first() if name in {one.username for one in FOUR} else None
    )
    if found is None:
        return show_form(request, LoginForm(), "Choose one of the four people.", status=400)
    login(request, found, backend="django.contrib.auth.backends.ModelBackend")
    return HttpResponseRedirect(onward(request))


def check_password(request: HttpRequest) -> HttpResponse:
    form = LoginForm(request.POST)
    if not form.is_valid():
        return show_form(request, form, "Write both your name and your password.", status=400)
    guess = Guess(form.cleaned_data["username"], str(request.META.get("REMOTE_ADDR", "")))
    if wait := seconds_to_wait(guess):
        text = f"Too many failed attempts. Wait {wait // 60 + 1} minutes, or ask the operator for a new password."
        return show_form(request, form, text, status=429)
    found = authenticate(request, username=guess.username, password=form.cleaned_data["password"])
    if found is None:
        note_failure(guess)
        log.warning("login_refused", name=guess.username, address=guess.address)
        return show_form(request, form, "Name and password do not match.", status=400)
    forget(guess)
    login(request, found)
    return HttpResponseRedirect(onward(request))


def show_form(request: HttpRequest, form: LoginForm, wrong: str = "", status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "wrong": wrong,
        "people": four() if settings.BERTH_DEMO else [],
        "next": request.POST.get("next") or request.GET.get("next", ""),
    }
    return render(request, "login/login.html", context, status=status)


def onward(request: HttpRequest) -> str:
    """Where to go once logged in: a page of ours that was asked for, else home."""
    wanted = request.POST.get("next") or request.GET.get("next", "")
    ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if ours and wanted.startswith("/") else str(settings.LOGIN_REDIRECT_URL)
