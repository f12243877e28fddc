"""Monitoring: what is logged of predictions, the windows that are tested, and alarms."""
