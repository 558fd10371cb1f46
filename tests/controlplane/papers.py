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
"""


@dataclass(frozen=True, slots=True)
class Papers:
    """Where they lie."""

    authority: Path  # the certificate that clients trust
    certificate: Path  # of every server on 127.0.0.1: the API server and the kubelets' stand-in
    key: Path
    accounts_key: Path  # signs the tokens of service accounts


def make_papers(folder: Path, days: str = DAYS) -> Papers:
    """Make them all in `folder`. Raises CouldNotStart where openssl is missing or fails."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openssl.conf").write_text(EXTENSIONS, encoding="utf-8")
    at = {
        name: folder / name for name in ("ca.crt", "ca.key", "server.crt", "server.csr", "server.key", "accounts.key")
    }
    conf = ["-config", folder / "openssl.conf"]
    subject, made = ["-subj", "/CN=tests"], ["-days", days]
    openssl("req", "-x509", *conf, "-extensions", "authority", *CURVE, *made, "-subj", "/CN=authority of the tests",
            "-keyout", at["ca.key"], "-out", at["ca.crt"])  # fmt: skip
    openssl("req", "-new", *conf, *CURVE, *subject, "-keyout", at["server.key"], "-out", at["server.csr"])
    openssl("x509", "-req", "-in", at["server.csr"], "-CA", at["ca.crt"], "-CAkey", at["ca.key"], "-CAcreateserial",
            *made, "-extfile", folder / "openssl.conf", "-extensions", "server", "-out", at["server.crt"])  # fmt: skip
    openssl("ecparam", "-genkey", "-noout", "-name", "prime256v1", "-out", at["accounts.key"])
    return Papers(at["ca.crt"], at["server.crt"], at["server.key"], at["accounts.key"])


def openssl(*words: str | Path) -> None:
    try:
        done = subprocess.run(["openssl", *words], capture_output=True, check=False, text=True)
    except FileNotFoundError:
        raise CouldNotStart("The control plane's certificates need the program openssl, which is missing.") from None
    if done.returncode:
        raise CouldNotStart(f"openssl {words[0]} failed: {' '.join(done.stderr.split())}")
