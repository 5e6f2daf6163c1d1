"""The one moment of a run: what --date says, else the day that the verb began."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from patchkit.errors import UsageFault
from patchkit.series.mailtext import git_date, mail_date

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class When:
    """day: YYYY-MM-DD, for Last-Update. mail: RFC 2822, for Date."""

    day: str
    mail: str


def when(text: str | None = None) -> When:
    """The moment that `text` states: a day (2031-01-31), or a date as mails have it.

    Without a text it is now, in UTC. Raises UsageFault for anything else.
    """
    if text is None:
        return _at(int(time.time()))
    if _DAY.fullmatch(text):
        day = _midnight(text)
        if day is not None:
            return day
    stated = git_date(text)
    if stated is None:
        raise UsageFault.because(
            f"--date {text}: not a day and not a date with its zone",
            next='--date 2031-01-31, or --date "Fri, 31 Jan 2031 12:00:00 +0000"',
        )
    return When(_day(int(stated.split()[0])), text)


def _midnight(text: str) -> When | None:
    from datetime import datetime, timezone

    try:
        moment = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    seconds = int(moment.timestamp())
    return _at(seconds) if 0 <= seconds < 4_000_000_000 else None


def _at(seconds: int) -> When:
    return When(_day(seconds), mail_date(seconds))


def _day(seconds: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
