"""What is wrong with the tables of a home, counted."""

from __future__ import annotations

from dataclasses import dataclass

SHOWN = 20
"""How many remarks are kept; the counts go on."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What must be nothing but zeros, and remarks that say where it is not."""

    lost: int = 0
    """Rows that were put and have not landed, and batches that a table skipped."""
    duplicated: int = 0
    """Rows that landed more often than they were put, and batches that a table has twice."""
    torn: int = 0
    """Versions that cannot be read, or whose rows are not those of their commit."""
    wrong: int = 0
    """Rows in which the stream's tables differ from the batch answer."""
    regressed: int = 0
    """Times that a version, a total or an epoch went back."""
    remarks: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not any((self.lost, self.duplicated, self.torn, self.wrong, self.regressed))

    def __add__(self, other: Findings) -> Findings:
        return Findings(
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.torn + other.torn,
            self.wrong + other.wrong,
            self.regressed + other.regressed,
            (*self.remarks, *other.remarks)[:SHOWN],
        )

    def __str__(self) -> str:
        counts = (self.lost, self.duplicated, self.torn, self.wrong, self.regressed)
        return "{} lost, {} duplicated, {} torn, {} wrong, {} regressed".format(*counts)
