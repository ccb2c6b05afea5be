"""The code of a source, as a person would write it."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import TYPE_CHECKING

from millstream.check.names import is_name
from millstream.cli.text import counted, grouped
from millstream.model.codec import CsvOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.landing.proposal import Proposal
    from millstream.views.sample_input import SampledSource


def to_code(sampled: SampledSource) -> str:
    """Write an app with the proposed source."""
    proposal = sampled.proposal
    name = re.sub(r"[^a-z0-9]+", "_", sampled.name.split(".")[0].lower()).strip("_0123456789")
    name = name if is_name(name) and name not in ("app", "ms") else "records"
    times = {"event_time": proposal.event_time, "watermark": proposal.watermark}
    options = ", ".join(f"{key}={_text(value)}" for key, value in times.items() if value)
    decorator = f"@app.source({options})" if options else "@app.source"
    kind = sampled.connector
    places = [_text(place) for place in (sampled.place, sampled.servers) if place]
    lines = "".join(f"        {each},\n" for each in (*places, *_arguments(proposal)))
    notes = "".join(f"# {line}\n" for line in _notes(proposal))
    return (
        f'import millstream as ms\n\napp = ms.App("{name}")\n\n\n{notes}{decorator}\n'
        f"def {name}() -> ms.{kind}:\n    return ms.{kind}(\n{lines}    )"
    )


def _arguments(proposal: Proposal) -> Iterator[str]:
    yield f"format={_text(proposal.format)}"
    if proposal.pattern:
        yield f"pattern={_text(proposal.pattern)}"
    yield f"schema={_text(proposal.schema)}"
    if proposal.rename:
        yield f"rename={_text(dict(proposal.rename))}"
    if proposal.formats:
        one = {name: f[0] if len(f) == 1 else list(f) for name, f in proposal.formats.items()}
        yield f"formats={_text(one)}"
    if proposal.document:
        yield "document=True"
    if proposal.csv is not None:
        usual = CsvOptions()
        said = {f.name: getattr(proposal.csv, f.name) for f in fields(CsvOptions)}
        changed = (f"{n}={_text(v)}" for n, v in said.items() if v != getattr(usual, n))
        if written := ", ".join(changed):
            yield f"csv=ms.CsvOptions({written})"


def _notes(proposal: Proposal) -> Iterator[str]:
    share = proposal.fits / proposal.sampled if proposal.sampled else 1
    fits = f"{grouped(proposal.fits)} of {counted(proposal.sampled, 'sampled record')} fit"
    yield f"{fits} ({share:.1%})"
    yield from (f"one that does not: {reason}" for reason in proposal.reasons[:3])
    if proposal.keys:
        yield f"different in each: {', '.join(proposal.keys)}"
    yield from proposal.notes


def _text(value: object) -> str:
    """Write a value as Python code with double quotes."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(k)}: {_text(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False)
