"""Addresses with a password: what of them is shown, kept, and told to git."""

from __future__ import annotations

import pytest

from patchkit.store.address import Login, blotted, login, public


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at https://u:p@h/x and https://t@h/y", "at https://***@h/x and https://***@h/y"),
        ("https://u:p@ss@h/x", "https://***@h/x"),
        ("'https://u:p/ss@h:8/x': no", "'https://***@h:8/x': no"),
        ("https://u:p#s?s@h/x", "https://***@h/x"),
        ("https://h/x?token=s", "https://h/x?***"),
        ("https://h/@scope/x", "https://h/@scope/x"),
        ("ssh://git@h/x", "ssh://***@h/x"),
        ("file:///a/b@c?d", "file:///a/b@c?d"),
        ("me@host:x/y is no address", "me@host:x/y is no address"),
    ],
)
def test_what_is_shown_holds_no_password(text: str, shown: str) -> None:
    assert blotted(text) == shown


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://u:p@h:8/x.git", "https://h:8/x.git"),
        ("https://token@h/x.git?private_token=s", "https://h/x.git"),
        ("https://u:p/s@h/x", "https://h/x"),
        ("https://h/a@b.git", "https://h/a@b.git"),
        ("ssh://git@h/x", "ssh://git@h/x"),
        ("ssh://git:p@h/x", "ssh://git@h/x"),
        ("git://h/x", "git://h/x"),
        ("git@h:x/y.git", "git@h:x/y.git"),
        ("../x@y", "../x@y"),
        ("file:///x@y?z", "file:///x@y?z"),
    ],
)
def test_what_is_kept_holds_no_password_and_still_names_the_place(address: str, kept: str) -> None:
    assert public(address) == kept


def test_a_login_is_told_apart_from_the_address() -> None:
    assert login("https://me:p%40s%2Fs@h:8/x") == Login(
        "https://h:8/x", "https://h:8", "me", "p@s/s"
    )
    assert login("https://token@h/x") == Login("https://h/x", "https://h", "token")
    assert login("https://:p@h/x") == Login("https://h/x", "https://h", "", "p")
    for other in ("https://h/x", "ssh://me:p@h/x", "git@h:x", "../x", "https://[::1/x"):
        assert login(other) == Login(other)


def test_a_line_break_in_a_password_is_no_second_line_to_git() -> None:
    assert login("https://me:p%0Ahost=evil@h/x") == Login("https://h/x", "https://h")
