"""Errors of serving stores: reaching them, fitting their tables, and writing each batch once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import ClusterError, CommandError, DeclarationError, Location, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class StoreUnreachableError(ClusterError):
    """A store does not answer, or went away."""

    code = "STORE_UNREACHABLE"
    transient = True

    def __init__(self, store: str, *, why: str) -> None:
        super().__init__(
            f"{store} does not answer: {why}",
            fix="start the server, or mend its address; what was committed is safe, and a running "
            "app tries again",
        )


class TransactionHangsError(ClusterError):
    """A transaction of Kafka stays open, and nobody will end it."""

    code = "TRANSACTION_HANGS"

    def __init__(self, store: str, topic: str, partition: int, *, offset: int, writer: str) -> None:
        ended = f"abort --topic {topic} --partition {partition} --start-offset {offset}"
        super().__init__(
            f"{store} cannot be written: a transaction of {writer!r} stays open at offset {offset} "
            f"of partition {partition} of topic {topic!r}, and its coordinator has forgotten it",
            fix=f"have Kafka end it: `kafka-transactions.sh {ended}`, "
            "and likewise what `kafka-transactions.sh find-hanging` lists; then run the app again",
        )


class StoreLoginError(ClusterError):
    """A store does not let this user in."""

    code = "STORE_LOGIN"

    def __init__(self, store: str, *, why: str) -> None:
        super().__init__(
            f"{store} refuses the login: {why}",
            fix="mend the user, the password or the database of its address",
        )


class StoreFailedError(ClusterError):
    """A store refuses a whole batch, or what is needed to write it."""

    code = "STORE_FAILED"

    def __init__(self, store: str, *, why: str) -> None:
        super().__init__(
            f"{store} refuses what is asked of it: {why}",
            fix="mend the cause and start again; of a batch that was refused, nothing is written",
        )


class StoreRestoredError(ClusterError):
    """A store lacks batches that the checkpoint has committed."""

    code = "STORE_RESTORED"

    def __init__(self, store: str, *, batch: int, knows: int, checkpoint: str, forget: str) -> None:
        held = "no batch" if batch < 0 else f"batches up to {batch}"
        super().__init__(
            f"{store} holds {held}, but the checkpoint has committed batch {knows}: "
            "it was restored from a backup, or lost what it had confirmed",
            fix="restore it as it was; or have all of it written again: delete "
            f"{checkpoint!r} and run {forget}",
        )


class StoreAheadError(ClusterError):
    """A store holds batches that the checkpoint knows nothing of."""

    code = "STORE_AHEAD"

    def __init__(self, store: str, *, batch: int, knows: int, checkpoint: str, forget: str) -> None:
        known = "none" if knows < 0 else f"batches up to {knows}"
        super().__init__(
            f"{store} holds batch {batch} of another checkpoint; this one knows {known}: "
            "running on would skip or repeat rows",
            fix=f"restore {checkpoint!r}; or have all of it written again: run {forget}",
        )


class StoreTakenError(DeclarationError):
    """Another dataset writes to the same place of a store."""

    code = "STORE_TAKEN"

    def __init__(self, store: str, *, by: str, writer: str, forget: str) -> None:
        super().__init__(
            f"{store} is written by {by}; {writer} may not write there too",
            fix=f"choose another table; or, if {by} is no more, run {forget}",
        )


class StoreModeError(DeclarationError):
    """A store cannot do what a mode or an option needs."""

    code = "STORE_MODE"

    def __init__(self, store: str, *, serve: str, why: str, use: str, at: Location) -> None:
        super().__init__(f"{serve!r} cannot be served to {store}: {why}", fix=use, at=at)


class StoreColumnMissingError(DeclarationError):
    """A table of a store lacks a column of the answer."""

    code = "STORE_COLUMN_MISSING"

    def __init__(self, store: str, *, column: str, type: str, at: Location) -> None:  # noqa: A002
        super().__init__(
            f"{store} has no column {column!r}, which the answer has",
            fix=f"evolve=True adds it as {type}; or leave it out of the answer",
            at=at,
        )


class StoreColumnTypeError(DeclarationError):
    """A column of a store cannot hold what the answer has for it."""

    code = "STORE_COLUMN_TYPE"

    def __init__(
        self, store: str, *, column: str, got: str, expected: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"{store} has column {column!r} as {got}; the answer needs {' or '.join(expected)}",
            fix="cast the column of the answer, change the table, or choose another table",
            at=at,
        )


class StoreColumnRequiredError(DeclarationError):
    """A table of a store wants a column that the answer does not have."""

    code = "STORE_COLUMN_REQUIRED"

    def __init__(self, store: str, *, column: str, at: Location) -> None:
        super().__init__(
            f"{store} wants a value for {column!r}, which the answer does not have",
            fix="add the column to the answer, give it a default in the store, or let it be null",
            at=at,
        )


class StoreKeyError(DeclarationError):
    """A table of a store does not hold its rows to the key."""

    code = "STORE_KEY"

    def __init__(self, store: str, *, key: Sequence[str], statement: str, at: Location) -> None:
        super().__init__(
            f"{store} has no unique index on its key ({', '.join(key)})",
            fix=f"run {statement}",
            at=at,
        )


class LookupRefusedError(CommandError):
    """A row is asked for by other columns than the key."""

    code = "LOOKUP_REFUSED"

    def __init__(self, dataset: str, *, given: Sequence[str], key: Sequence[str]) -> None:
        has = f"its key is {', '.join(key)}" if key else "it has no key"
        super().__init__(
            f"a row of {dataset!r} is asked for by {listed(given)}; {has}",
            fix="give a value for each column of the key, and for no other"
            if key
            else "give the sink a key=[…]",
        )


class LookupValueError(CommandError):
    """A row is asked for by a value that its key cannot have."""

    code = "LOOKUP_VALUE"

    def __init__(
        self,
        dataset: str,
        *,
        column: str,
        type: str,  # noqa: A002
        value: object,
        expected: str,
    ) -> None:
        super().__init__(
            f"{column!r} of the key of {dataset!r} is {type}, and cannot be {value!r}",
            fix=f"give {expected}",
        )


class RowMissingError(CommandError):
    """No row has the key that is asked for."""

    code = "ROW_MISSING"

    def __init__(self, dataset: str, *, key: Sequence[tuple[str, str]]) -> None:
        told = ", ".join(f"{column}={value!r}" for column, value in key)
        super().__init__(
            f"no row of {dataset!r} has {told}",
            fix="ask for another key, or again when a batch has brought it",
        )


class NothingServedError(CommandError):
    """A row is asked for before any was served."""

    code = "NOTHING_SERVED"

    def __init__(self, store: str) -> None:
        super().__init__(
            f"nothing was ever served to {store}",
            fix="run the app, with the same home and profile, so that it serves something",
        )


class NotServedError(CommandError):
    """A row is asked for of something that no store serves."""

    code = "NOT_SERVED"

    def __init__(self, dataset: str, *, served: Sequence[str]) -> None:
        super().__init__(
            f"{dataset!r} is in no serving store",
            fix=f"ask for one that is: {listed(served)}; or declare it with @app.serve",
        )


class ServiceMissingError(ClusterError):
    """A server for tests is not installed."""

    code = "SERVICE_MISSING"

    def __init__(self, program: str, *, package: str) -> None:
        super().__init__(
            f"tests need the program {program!r}, which is not on this machine",
            fix=f"`apt-get install {package}`; `make services` installs all that `make test` needs",
        )


class ServiceStartError(ClusterError):
    """A server for tests does not start."""

    code = "SERVICE_START"

    def __init__(self, server: str, *, cause: str, log: str) -> None:
        super().__init__(
            f"the {server} server for tests does not start: {cause}", fix=f"read {log}"
        )
