from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.source.pipconf import DEFAULT_INDEX, PipSettings, pip_settings


def test_without_any_configuration_it_is_pypi() -> None:
    found = pip_settings({"PIP_CONFIG_FILE": os.devnull})
    assert found == PipSettings(indexes=(DEFAULT_INDEX,))


def test_files_are_read_in_pips_order_and_variables_win(tmp_path: Path) -> None:
    site, home = tmp_path / "site", tmp_path / "home"
    for folder, text in (
        (site / "pip", "[global]\nindex-url = https://site/simple\ntimeout = 7\nretries = 9\n"),
        (home / ".pip", "[global]\nindex_url = https://old/simple\nproxy = http://p:1\n"),
        (home / ".config" / "pip", "[global]\nindex-url = https://user/simple\n[install]\nx=1\n"),
    ):
        folder.mkdir(parents=True)
        (folder / "pip.conf").write_text(text)
    env = {"HOME": str(home), "XDG_CONFIG_DIRS": str(site)}
    found = pip_settings(env)
    assert found.indexes == ("https://user/simple",)
    assert (found.timeout, found.retries, found.proxy) == (7.0, 9, "http://p:1")
    named = tmp_path / "named.conf"
    named.write_text(
        "[global]\ncert = /a.pem\ntrusted-host = a\n  b\nextra-index-url =\n  https://x/s\n"
        "  https://y/s\n[download]\nindex-url = https://download/simple\n"
    )
    found = pip_settings(env | {"PIP_CONFIG_FILE": str(named)})
    assert found.indexes == ("https://download/simple", "https://x/s", "https://y/s")
    assert found.cert == "/a.pem"
    assert found.trusted == {"a", "b"}
    found = pip_settings(env | {"PIP_INDEX_URL": "https://env/simple", "PIP_TIMEOUT": "3"})
    assert (found.indexes, found.timeout) == (("https://env/simple",), 3.0)


def test_no_index_and_find_links_are_obeyed() -> None:
    env = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/a /b"}
    found = pip_settings(env)
    assert (found.indexes, found.find_links) == ((), ("/a", "/b"))


def test_the_certificates_that_requests_would_use_are_used() -> None:
    base = {"PIP_CONFIG_FILE": os.devnull}
    assert pip_settings(base | {"REQUESTS_CA_BUNDLE": "/r.pem"}).cert == "/r.pem"
    assert pip_settings(base | {"CURL_CA_BUNDLE": "/c.pem"}).cert == "/c.pem"
    assert pip_settings(base | {"CURL_CA_BUNDLE": "/c.pem", "PIP_CERT": "/p.pem"}).cert == "/p.pem"


def test_a_file_that_cannot_be_read_is_pips_own_affair(tmp_path: Path) -> None:
    bad = tmp_path / "pip.conf"
    bad.write_bytes(b"\xff[[[nonsense")
    assert pip_settings({"PIP_CONFIG_FILE": str(bad), "HOME": str(tmp_path)}).timeout in (
        15.0,
        180.0,
    )
    assert pip_settings({"PIP_CONFIG_FILE": os.devnull, "PIP_TIMEOUT": "soon"}).timeout == 15.0


@pytest.mark.parametrize("text", ["-1", "nan", "abc", "0"])
def test_a_timeout_that_is_none_is_pips_default(text: str) -> None:
    assert pip_settings({"PIP_TIMEOUT": text, "PIP_CONFIG_FILE": os.devnull}).timeout == 15


@pytest.mark.parametrize(
    ("text", "tries"), [("-1", 4), ("nan", 4), ("inf", 100), ("1e9", 100), ("0", 0), ("7", 7)]
)
def test_tries_are_limited_whatever_is_asked_for(text: str, tries: int) -> None:
    found = pip_settings({"PIP_RETRIES": text, "PIP_CONFIG_FILE": os.devnull})
    assert found.retries == tries
    assert pip_settings({"PIP_TIMEOUT": "inf", "PIP_CONFIG_FILE": os.devnull}).timeout == 3600
