"""Servers that do not let us in, or are no Kubernetes: what each of them means, in a sentence for the operator.

Pure: from a library's exception, or from an answer's status, headers and body, to words. Files are named, never quoted.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

NOT_YET, EXPIRED = 9, 10  # OpenSSL's codes of a certificate that does not hold
OTHER_NAME = {62, 64}  # host name, address
RULES = "deploy/rbac.yaml"
RULES_FOR_KUEUE = "deploy/rbac-kueue.yaml"
ANONYMOUS = "system:anonymous"
WEB_PAGES = ("text/html", "application/xhtml")
FORBIDDEN = re.compile(
    r'User "(?P<who>[^"]*)" cannot (?P<verb>[a-z]+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)?'
)


def certificate_trouble(server: str, authority_file: str, error: BaseException) -> str:
    """What is wrong with the server's TLS, if that is what the exception is about; else ""."""
    found = next((one for one in causes(error) if isinstance(one, ssl.SSLError)), None)
    if isinstance(found, ssl.SSLCertVerificationError):
        return untrusted(server, authority_file, found)
    if found is not None and found.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"}:
        return f"The server at {server} does not speak TLS; its address may have to begin with http://."
    if authority_file and any(isinstance(one, FileNotFoundError | PermissionError) for one in causes(error)):
        return f"The authority file {authority_file} of {server} cannot be read."
    if authority_file and found is not None and "NO_CERTIFICATE" in (found.reason or ""):
        return f"The authority file {authority_file} of {server} holds no certificate."
    return ""


def untrusted(server: str, authority_file: str, error: ssl.SSLCertVerificationError) -> str:
    its = f"The certificate of the server at {server}"
    if error.verify_code == EXPIRED:
        return f"{its} has expired; it has to be renewed there."
    if error.verify_code == NOT_YET:
        return f"{its} does not hold yet; one of the two clocks may be wrong."
    if error.verify_code in OTHER_NAME:
        return f"{its} is for another name; give the cluster an address that stands in it."
    known = f"the authority in {authority_file}" if authority_file else "any authority that this system knows"
    return f"{its} is not signed by {known}; the authority file has to hold the one that signed it."


def causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and all that it came from: libraries wrap by cause, by context, and by argument."""
    waiting: list[BaseException] = [error]
    met: set[int] = set()
    while waiting:
        one = waiting.pop(0)
        if id(one) in met:
            continue
        met.add(id(one))
        yield one
        behind = (one.__cause__, one.__context__, *one.args)
        waiting += [other for other in behind if isinstance(other, BaseException)]


def stranger(server: str, status: int, headers: Mapping[str, str]) -> str:
    """Why an answer cannot be a Kubernetes API server's, if so; else "". A gateway's error page proves nothing."""
    its = f"The server at {server} is no Kubernetes API server"
    if 300 <= status < 400:
        where = urlsplit(header(headers, "location"))
        return f"{its}: it sends us on to {where.hostname or 'another page'} ({status}), as a log-in does."
    if status < 500 and is_web_page(headers):
        return f"{its}: it answers with a web page ({status})."
    return ""


def not_known(server: str, token_file: str) -> str:
    """Who we say to be means nothing there."""
    cure = f"the token file {token_file} has to hold a new one" if token_file else "its row needs a token file"
    return f"The cluster at {server} does not take our token (401); {cure}."


def is_web_page(headers: Mapping[str, str]) -> bool:
    """Kubernetes never sends one; what pods print under its address, it sends as plain text."""
    return header(headers, "content-type").startswith(WEB_PAGES)


def header(headers: Mapping[str, str], wanted: str) -> str:
    return next((value for name, value in headers.items() if name.lower() == wanted), "").strip().lower()


def forbidden(message: str) -> str:
    """Which right is missing, from the API server's own words; "" where the words are about something else."""
    found = FORBIDDEN.search(message)
    if found is None:
        return ""
    if found["who"] == ANONYMOUS:
        return "The cluster knows us as nobody (403): its row needs a token file, with a token of Berth's account."
    what = f"{found['resource']}.{found['group']}" if found["group"] else found["resource"]
    where = f"in namespace {found['namespace']}" if found["namespace"] else "in the whole cluster"
    rules = RULES_FOR_KUEUE if found["group"].startswith("kueue.") else RULES
    return (
        f"The cluster does not let {found['who']} {found['verb']} {what} {where} (403); "
        f"{rules} has this right: apply it there."
    )
