"""DEP-3 fields in a commit's message become fields again; prose with colons stays prose."""

from __future__ import annotations

from patchkit.series.header import Field, Header
from patchkit.series.trailers import lift_fields, take_trailers

MESSAGE = """Long answers starve short ones.

Switch: ENGINE_RESERVE (default 128): tokens kept back
Origin: vendor
Forwarded: no
Drop-When: v0.31.0
  (upstream PR 55557)
Signed-off-by: A <a@b.c>"""


def test_known_fields_leave_the_last_paragraph_and_others_stay() -> None:
    header = lift_fields(Header(subject="a", body=MESSAGE))
    assert header.fields == (
        Field("Origin", "vendor"),
        Field("Forwarded", "no"),
        Field("Drop-When", "v0.31.0 (upstream PR 55557)"),
    )
    assert header.body == (
        "Long answers starve short ones.\n\n"
        "Switch: ENGINE_RESERVE (default 128): tokens kept back\nSigned-off-by: A <a@b.c>"
    )


def test_fields_at_the_head_of_the_text_are_found_too() -> None:
    header = lift_fields(
        Header(subject="a", body="Bug-Debian: https://b.c/1\nForwarded: no\n\nWhy.")
    )
    assert header.get("bug-debian") == ["https://b.c/1"]
    assert header.body == "Why."


def test_a_field_of_the_header_wins() -> None:
    header = Header(subject="a", fields=(Field("Origin", "backport, x"),), body="Origin: vendor")
    assert lift_fields(header).get("origin") == ["backport, x"]


def test_prose_that_begins_like_a_field_stays() -> None:
    for body in ("Origin: this came\nfrom nowhere.", "See\nOrigin: vendor", "Note: a", ""):
        header = Header(subject="a", body=body)
        assert lift_fields(header) == header


def test_named_trailers_are_taken_from_a_message() -> None:
    text = "Why.\n\nPatch-Name: a-b.patch\nGuard: tp3\nOrigin: vendor\n"
    body, found = take_trailers(text, ["Patch-Name", "Guard"])
    assert found == {"patch-name": "a-b.patch", "guard": "tp3"}
    assert body == "Why.\n\nOrigin: vendor"
    assert take_trailers("Why.\n", ["Guard"]) == ("Why.\n", {})
