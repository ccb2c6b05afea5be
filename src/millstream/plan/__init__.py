"""What would happen: the queries a graph becomes."""

from millstream.plan.queries import Query, plan, plan_fenced, plan_stored

__all__ = ["Query", "plan", "plan_fenced", "plan_stored"]
