"""Logs in as each person of the demo and reads every page that its links lead to."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections import Counter, deque
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import Cookie, CookieJar

from tools.judges.findings import CouldNotJudge, Finding, shape

LOGIN = "/login/"
NOBODY = "nobody"  # the role of who is not logged in
MISSING = "/there-is-no-such-page/"
APART = ("/static/", "/api/", "/logout")  # not pages
PER_SHAPE = 2  # so many pages of one shape: two workloads stand for all
PER_ROLE = 60
PATIENCE = 30  # seconds


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to one person."""

    role: str
    path: str
    status: int
    kind: str
    body: bytes

    @property
    def is_html(self) -> bool:
        return self.kind == "text/html"


@dataclass(slots=True)
class Visitor:
    """One person with a session."""

    role: str
    base: str
    cookies: CookieJar = field(default_factory=CookieJar)

    def get(self, path: str) -> Page:
        return self.ask(path)

    def post(self, path: str, fields: dict[str, str]) -> Page:
        return self.ask(path, urllib.parse.urlencode(fields).encode())

    def ask(self, path: str, body: bytes | None = None) -> Page:
        address = self.base + path
        request = urllib.request.Request(address, data=body, headers={"Referer": address})  # noqa: S310 (our own demo)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        try:
            answer = opener.open(request, timeout=PATIENCE)
        except urllib.error.HTTPError as refusal:
            answer = refusal
        with answer:
            landed = answer.geturl().removeprefix(self.base) or path
            return Page(self.role, landed, answer.status, answer.headers.get_content_type(), answer.read())

    def cookie(self, part: str) -> Cookie:
        """The cookie whose name holds `part`. Raises CouldNotJudge where there is none."""
        for cookie in self.cookies:
            if part in cookie.name:
                return cookie
        raise CouldNotJudge(f"{self.role} has no {part} cookie after logging in.")


@dataclass(slots=True)
class Form:
    action: str
    hidden: dict[str, str] = field(default_factory=dict)
    people: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    """The links of a page, and its forms as far as the log-in page needs them."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.feed(body.decode("utf-8", errors="replace"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in found and "download" not in found:
            self.links.append(found["href"])
        elif tag == "form":
            self.forms.append(Form(found.get("action", "")))
        elif self.forms and tag == "input" and found.get("type") == "hidden":
            self.forms[-1].hidden[found.get("name", "")] = found.get("value", "")
        elif self.forms and tag in {"button", "input"} and found.get("name") == "person":
            self.forms[-1].people.append(found.get("value", ""))


def log_in_everybody(base: str) -> list[Visitor]:
    """A visitor for each person that the demo's log-in page lists. Raises CouldNotJudge where it lists nobody."""
    page = Visitor(NOBODY, base).get(LOGIN)
    people = [person for form in Reader(page.body).forms for person in form.people]
    if not people:
        raise CouldNotJudge(f"{LOGIN} answered {page.status} and lists nobody to log in as.")
    return [log_in(base, person) for person in people]


def log_in(base: str, person: str) -> Visitor:
    visitor = Visitor(person, base)
    forms = Reader(visitor.get(LOGIN).body).forms
    form = next(form for form in forms if person in form.people)
    landed = visitor.post(form.action or LOGIN, {**form.hidden, "person": person})
    if landed.status != 200 or landed.path.startswith(LOGIN):
        raise CouldNotJudge(f"{person} could not log in: {landed.path} answered {landed.status}.")
    return visitor


def crawl(visitor: Visitor, start: str = "/") -> tuple[list[Page], list[Finding]]:
    """The pages that links lead to, breadth first and bounded; and a finding for each link that leads nowhere."""
    pages: list[Page] = []
    findings: list[Finding] = []
    seen, shapes = {start}, Counter[str]()
    waiting = deque([(start, start)])
    while waiting and len(pages) < PER_ROLE:
        path, parent = waiting.popleft()
        if shapes[shape(path)] >= PER_SHAPE:
            continue
        shapes[shape(path)] += 1
        page = visitor.get(path)
        if page.status >= 400:
            example = f"{visitor.role} follows {path}"
            findings.append(Finding("links", f"a link to {shape(path)} answers {page.status}", shape(parent), example))
        elif page.is_html:
            pages.append(page)
            for link in own_links(page, visitor.base):
                if link not in seen:
                    seen.add(link)
                    waiting.append((link, path))
    return pages, findings


def strangers_pages(base: str) -> list[Page]:
    """What somebody sees who is not logged in: the log-in page, and that there is no such page."""
    stranger = Visitor(NOBODY, base)
    return [page for path in (LOGIN, MISSING) if (page := stranger.get(path)).is_html]


def own_links(page: Page, base: str) -> list[str]:
    """The page's links to other pages of the same host, as paths with their query."""
    absolute = [urllib.parse.urljoin(base + page.path, link) for link in Reader(page.body).links]
    ours = [urllib.parse.urldefrag(link).url.removeprefix(base) for link in absolute if link.startswith(f"{base}/")]
    return [path for path in ours if not path.startswith(APART)]
