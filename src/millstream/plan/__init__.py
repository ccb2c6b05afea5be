"""What would happen: the queries a graph becomes."""

from millstream.plan.queries import Query, plan

__all__ = ["Query", "plan"]
