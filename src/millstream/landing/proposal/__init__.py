"""A source proposed for records that nobody has described yet: types, event time, options."""

from millstream.landing.proposal.lines import propose_document, propose_lines
from millstream.landing.proposal.proposal import Proposal
from millstream.landing.proposal.rows import propose_rows

__all__ = ["Proposal", "propose_document", "propose_lines", "propose_rows"]
