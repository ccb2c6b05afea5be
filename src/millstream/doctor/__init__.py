"""What is wrong with the surroundings of an app: machine, services, home."""

from __future__ import annotations

from millstream.doctor.deployment import look_at_home
from millstream.doctor.diagnosis import Diagnosis
from millstream.doctor.machine import look_at_machine
from millstream.doctor.service import look_at_services

__all__ = ["Diagnosis", "look_at_home", "look_at_machine", "look_at_services"]
