"""`millstream maintain`: small files, old versions and rows that are no longer kept."""

from __future__ import annotations

from millstream.cli.option import (
    DEFAULT_FILE,
    AppFile,
    ForDriver,
    HomeDir,
    Json,
    ProfileName,
    length_of_time,
)


def maintain(
    app: AppFile = DEFAULT_FILE,
    *,
    wait: ForDriver = "10m",
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Compact small files and delete what is no longer kept. A running driver does it itself."""
    from millstream.cli.status import show_sizes
    from millstream.lake.lease import Lease
    from millstream.loading import load
    from millstream.upkeep.maintain import by_driver, maintain as maintain_here

    loaded = load(app, profile)
    loaded.raise_faults(places=False)
    place, limit = loaded.home(home), length_of_time("--wait", wait)
    place.verify_in_use(loaded.name)
    if not by_driver(place, "maintain", wait_s=limit.total_seconds()):
        with Lease.acquire(place) as lease:
            maintain_here(loaded.graph, lease)
    show_sizes(place, loaded.graph, None, json=json)
