from __future__ import annotations

from tests.damage import Sweep


def test_the_table_counts_outcomes_with_repair_and_without() -> None:
    counts = {"repaired first": {"harmless": 2, "repaired": 5}, "run as it is": {"refused": 7}}

    assert Sweep("2026-11-16", 7, counts).to_markdown().splitlines() == [
        "2026-11-16, seed 7:",
        "",
        "| a damaged home | cases | harmless | repaired | refused | stuck | silently wrong |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| repaired first | 7 | 2 | 5 | 0 | 0 | 0 |",
        "| run as it is | 7 | 0 | 0 | 7 | 0 | 0 |",
    ]
