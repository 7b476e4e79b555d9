"""What documents say about tests is true as far as a test can know."""

import re
from pathlib import Path

from broker import ROOT


def test_every_test_that_pains_names_exists() -> None:
    rows = [line for line in (ROOT / "docs" / "pains.md").read_text().splitlines() if line.startswith("| B")]
    named = {name for row in rows for name in re.findall(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`", row)}
    assert len(named) > 100
    sources = [*(ROOT / "tests" / "e2e").glob("*.py"), *(ROOT / "crates").rglob("*.rs")]
    there = {name for source in sources for name in defined(source)}
    assert sorted(named - there) == []


def defined(source: Path) -> list[str]:
    return re.findall(r"\b(?:fn|def) ([a-z0-9_]+)", source.read_text())
