"""CUDA versions: what an image needs at least, what a node's driver offers, and whether the one will do for the other.

A version is (major, minor); None is "nobody says", which is never "too old".
"""

import re

Version = tuple[int, int]

WRITTEN = re.compile(r"(\d{1,2})\.(\d{1,2})(?:\.\d{1,3})?", re.ASCII)
WORD = re.compile(r"(?<![a-z0-9])cuda[-_]?v?(\d{1,2})(?:[._](\d{1,2}))?(?![0-9])", re.ASCII)  # cuda12.4, cuda-12-…
SHORT = re.compile(r"(?<![a-z0-9])cu(\d{2})(\d)(?![0-9])", re.ASCII)  # cu124
BARE = re.compile(r"(\d{1,2})\.(\d{1,2})(?:\.\d{1,3})?(?![0-9.])", re.ASCII)  # the tag of an image called cuda
DRIVERS: dict[int, Version] = {  # a driver's branch -> the newest CUDA that it was made for
    450: (11, 0), 455: (11, 1), 460: (11, 2), 465: (11, 3), 470: (11, 4), 495: (11, 5), 510: (11, 6), 515: (11, 7),
    520: (11, 8), 525: (12, 0), 530: (12, 1), 535: (12, 2), 545: (12, 3), 550: (12, 4), 555: (12, 5), 560: (12, 6),
    565: (12, 7), 570: (12, 8), 575: (12, 9), 580: (13, 0),
}  # fmt: skip
FIRST, LAST = 7, 39  # majors that are believable; others are another product's numbers


def version_of(text: str) -> Version | None:
    """A version as people write it, 12.4 or 12.4.1; None when it is none."""
    found = WRITTEN.fullmatch(text.strip())
    return believable(int(found[1]), int(found[2])) if found else None


def version_in_parts(major: str, minor: str) -> Version | None:
    """A version as labels have it, in two parts."""
    if not (major.isascii() and major.isdigit() and len(major) <= 2):
        return None
    return believable(int(major), int(minor) if minor.isascii() and minor.isdigit() and len(minor) <= 2 else 0)


def of_driver(driver: str) -> Version | None:
    """What a driver such as 550.90.07 offers; None for a branch that is older or newer than those we know."""
    major = driver.partition(".")[0]
    if not (major.isascii() and major.isdigit() and len(major) <= 4):
        return None
    branch = max((known for known in DRIVERS if known <= int(major)), default=0)
    return None if branch == 0 or (branch == max(DRIVERS) and int(major) >= branch + 10) else DRIVERS[branch]


def needed(written: str, image: str) -> Version | None:
    """The least version that a workload needs: as its owner wrote it, else as the image's tag tells."""
    return version_of(written) or of_image(image)


def of_image(image: str) -> Version | None:
    """What an image's tag says of the CUDA in it, as cuda12.4, cu124, or the tag of an image that is called cuda."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].lower().partition(":")
    if name == "cuda" and (found := BARE.match(tag)):
        return believable(int(found[1]), int(found[2]))
    for pattern in (WORD, SHORT):
        if found := pattern.search(tag):
            return believable(int(found[1]), int(found[2] or 0))
    return None


def too_old(offered: Version | None, need: Version | None) -> bool:
    """Only what is known can be too old."""
    return need is not None and offered is not None and offered < need


def in_words(version: Version | None) -> str:
    return "unknown" if version is None else f"{version[0]}.{version[1]}"


def believable(major: int, minor: int) -> Version | None:
    return (major, minor) if FIRST <= major <= LAST else None
