"""A dashboard for Grafana and alert rules for Prometheus, made for the metrics of an app."""

from pathlib import Path

DASHBOARD = Path(__file__).with_name("grafana.json")
RULES = Path(__file__).with_name("prometheus-rules.yml")

__all__ = ["DASHBOARD", "RULES"]
