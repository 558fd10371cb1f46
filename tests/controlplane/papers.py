"""Keys and certificates of a control plane that lives for one test run, made by the `openssl` program.

Python's standard library reads certificates but makes none, and a dependency for six files is too much. OpenSSL comes
with every system that tests run on; without it the error says so.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from portal.processes import CouldNotStart

DAYS = "2"
CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
EXTENSIONS = """\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = IP:127.0.0.1, DNS:localhost
[elsewhere]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:elsewhere.example
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
authorityKeyIdentifier = keyid
"""


@dataclass(frozen=True, slots=True)
class Papers:
    """Where they lie."""

    authority: Path  # the certificate that clients trust
    certificate: Path  # of every server on 127.0.0.1: the API server and the kubelets' stand-in
    key: Path
    accounts_key: Path  # signs the tokens of service accounts
    admin_certificate: Path  # of a client that may do everything
    admin_key: Path


def make_papers(folder: Path, days: str = DAYS) -> Papers:
    """Make them all in `folder`. Raises CouldNotStart where openssl is missing or fails."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openssl.conf").write_text(EXTENSIONS, encoding="utf-8")
    authority, accounts_key = folder / "ca.crt", folder / "accounts.key"
    openssl("req", "-x509", "-config", folder / "openssl.conf", "-extensions", "authority", *CURVE, "-days", days,
            "-subj", "/CN=authority of the tests", "-keyout", folder / "ca.key", "-out", authority)  # fmt: skip
    certificate, key = sign(folder, "server", "/CN=tests", "server", days)
    admin_certificate, admin_key = sign(folder, "admin", "/O=system:masters/CN=admin", "client", days)
    openssl("ecparam", "-genkey", "-noout", "-name", "prime256v1", "-out", accounts_key)
    return Papers(authority, certificate, key, accounts_key, admin_certificate, admin_key)


def sign(folder: Path, name: str, subject: str, purpose: str, days: str) -> tuple[Path, Path]:
    """A certificate of the folder's authority, and its key; `purpose` is a section of EXTENSIONS."""
    conf = folder / "openssl.conf"
    certificate, request, key = (folder / f"{name}.{ending}" for ending in ("crt", "csr", "key"))
    openssl("req", "-new", "-config", conf, *CURVE, "-subj", subject, "-keyout", key, "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-CAcreateserial",
            "-days", days, "-extfile", conf, "-extensions", purpose, "-out", certificate)  # fmt: skip
    return certificate, key


def openssl(*words: str | Path) -> None:
    try:
        done = subprocess.run(["openssl", *words], capture_output=True, check=False, text=True)
    except FileNotFoundError:
        raise CouldNotStart("The control plane's certificates need the program openssl, which is missing.") from None
    if done.returncode:
        raise CouldNotStart(f"openssl {words[0]} failed: {' '.join(done.stderr.split())}")
