"""What the harnesses of the tests raise: chaos, damage, the cluster, and documents."""

from __future__ import annotations


class HarnessError(Exception):
    """A harness cannot go on, or has found that Millstream is wrong."""
