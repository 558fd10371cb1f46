"""Refusals: a sentence that names the rule and the number and says what to do next."""


class Refused(Exception):
    """A rule says no. The text is for people; `field` names the input it is about, where there is one."""

    def __init__(self, text: str, *, field: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.field = field


class AlreadyDecided(Refused):
    """Somebody was first; the text says who and when."""


class NotAllowed(Refused):
    """The person may know of the thing but may not do this with it."""
