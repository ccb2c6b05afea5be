"""The notebook of the docs, executed in a kernel of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

from millstream.testing.quick_settings import SHORT_LIVED

NOTEBOOK = Path(__file__).parent.parent / "docs" / "how-to" / "notebook.ipynb"


def shown(cell: Any, kind: str = "text/html") -> str:
    """Give what a cell's last expression shows."""
    return str(cell.outputs[-1]["data"][kind])


def drawn(cell: Any) -> list[str]:
    """Name the datasets of the picture that a cell shows."""
    html = shown(cell)
    svg = html[html.index("<svg ") : html.index("</svg>") + len("</svg>")]
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return [str(text.text) for text in texts if text.get("font-weight")]


@pytest.mark.spark
def test_the_notebook_of_the_docs_does_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SHORT_LIVED.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(NOTEBOOK, 4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})

    client.execute()

    _, wrong, mended, sampled, counted, unknown, started, later, ran, landed = (
        cell for cell in notebook.cells if cell.cell_type == "code"
    )
    assert "<pre>[UNKNOWN_INPUT] " in shown(wrong)
    assert "\n  at:  cell 2, line 1\n" in shown(wrong)
    assert drawn(mended) == ["readings", "clean"]
    assert "<pre>" not in shown(mended)
    assert shown(sampled, "text/plain").splitlines()[:8] == [
        "+-------+-------------------+-----+",
        "|vehicle|                 at|speed|",
        "+-------+-------------------+-----+",
        "|     v7|2026-11-15 12:00:01| 60.0|",
        "|     v7|2026-11-15 12:00:31| 70.0|",
        "+-------+-------------------+-----+",
        "clean: 1 row violates 'speed is plausible': quarantined",
        "readings: 5 records sampled from Memory: 4 ok, 1 malformed",
    ]
    assert "<td>65.0</td>" in shown(counted)
    assert unknown.outputs[0]["traceback"] == [
        "[UNKNOWN_DATASET] there is no dataset 'per_minut'",
        "  fix: did you mean 'per_minute'? names are clean, per_minute, readings",
    ]
    assert shown(started, "text/plain") == "<App fleet: 1 source, 2 tables · running>"
    assert "<div>running in fleet</div><table>" in shown(started)
    assert later.outputs[0]["text"] == (
        "cell 8:1: UserWarning: 'fleet' runs: 'fast' as declared here is for its next start\n"
    )
    assert "<div>for the next start: fast</div>" in shown(later)
    assert "|     v7|2026-11-15 12:00:31| 70.0|" in ran.outputs[0]["text"]
    assert "\nreadings: 4 landed rows, of 4 ok, 1 malformed\n" in shown(landed)
