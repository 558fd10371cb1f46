"""Reads a page the way a person or a screen reader would: its words, its links, its forms and how fields are named."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.test import Client

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
UNSEEN = {"script", "style", "title", "head"}


@dataclass
class Form:
    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Seen(HTMLParser):
    """One answer, read."""

    status: int
    html: str
    words: str = ""
    links: list[str] = field(default_factory=list)
    forms: list[Form] = field(default_factory=list)
    ids: Counter[str] = field(default_factory=Counter)
    headings: list[str] = field(default_factory=list)
    labelled: set[str] = field(default_factory=set)
    controls: list[dict[str, str]] = field(default_factory=list)
    inputs_in_labels: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self._said: list[str] = []
        self.feed(self.html)
        self.close()
        self.words = re.sub(r"\s+", " ", "".join(self._said)).strip()
        self.unclosed = self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self._open.append(tag)
        if "id" in found:
            self.ids[found["id"]] += 1
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "form":
            self.forms.append(Form(found.get("action", ""), found.get("method", "get")))
        if tag == "label":
            self.labelled.add(found.get("for", ""))
        if tag in {"h1", "h2", "h3"}:
            self.headings.append(tag)
        if tag in {"input", "select", "textarea", "button"}:
            self._control(tag, found)
        self._said.append(" ")

    def _control(self, tag: str, found: dict[str, str]) -> None:
        if tag == "button":
            if self.forms and found.get("name"):
                self.forms[-1].buttons.append((found["name"], found.get("value", "")))
            return
        if self.forms and "name" in found:
            self.forms[-1].fields[found["name"]] = found.get("value", "")
        if found.get("type") != "hidden":
            self.controls.append(found)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass
        self._said.append(" ")

    def handle_data(self, data: str) -> None:
        if not UNSEEN & set(self._open):
            self._said.append(data)

    def form_to(self, part: str) -> Form:
        return next(form for form in self.forms if part in form.action)


def look(client: Client, path: str, **headers: Any) -> Seen:
    response = client.get(path, headers=headers)
    return Seen(response.status_code, response.content.decode())


def send(client: Client, path: str, **data: Any) -> Seen:
    response = client.post(path, data)
    return Seen(response.status_code, response.content.decode())


def as_person(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client
