from __future__ import annotations

from millstream.checkpoint.entry import Offsets


def test_offsets_of_continuous_mode_have_no_watermark_and_no_time() -> None:
    offsets = Offsets.parse(b'v1\n\n{"orders":{"0":11}}')

    assert offsets == Offsets(watermark_ms=0, planned_at_ms=0, ends=('{"orders":{"0":11}}',))
