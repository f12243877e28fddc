"""Errors of monitoring: problems with stable codes."""

from app.base.errors import ValiantError


class MonitorNotFound(ValiantError):
    code, status, title = "monitor_not_found", 404, "The model has no monitor"


class AlarmNotFound(ValiantError):
    code, status, title = "alarm_not_found", 404, "No such alarm"


class NoReference(ValiantError):
    code, status, title = "no_reference", 409, "The model version has no stored reference"
    remedy = "Train the model with this release, which stores the distributions of the training rows with the version."
