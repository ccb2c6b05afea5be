"""A commit written without delta-rs, which describes no deletion vectors."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

from deltalake.exceptions import CommitFailedError

from millstream.lake.durable import sync_written
from millstream.lake.log import commit_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from deltalake import CommitProperties

    Action = tuple[str, Mapping[str, Any]]
    """Its kind, and what it says."""


def write_commit(
    table: Path,
    version: int,
    operation: str,
    actions: Iterable[Action],
    properties: CommitProperties,
) -> None:
    """Write a version of a table, durably, in one step.

    Args:
        table: Where the table is.
        version: The one after which nothing was committed.
        operation: What the history of the table calls it.
        actions: What it does.
        properties: What it records, and its transaction ids.

    Raises:
        CommitFailedError: Another commit has the version.
    """
    now_ms = time.time_ns() // 1_000_000
    recorded = properties.custom_metadata or {}
    info = {"timestamp": now_ms, "operation": operation, "operationParameters": {}, **recorded}
    transactions = [
        ("txn", {"appId": each.app_id, "version": each.version, "lastUpdated": now_ms})
        for each in properties.app_transactions or ()
    ]
    lines = [json.dumps({kind: said}) for kind, said in (("commitInfo", info), *transactions)]
    lines += [json.dumps({kind: said}) for kind, said in actions]
    target = commit_path(table, version)
    # Maintenance may be writing the same version at this moment.
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.draft")
    with draft.open("x") as file:
        file.write("\n".join(lines) + "\n")
        sync_written(file)
    try:
        # A name is given once: of two writers, the second one fails.
        target.hardlink_to(draft)
    except FileExistsError as error:
        raise CommitFailedError(str(error)) from error
    finally:
        draft.unlink()
