"""References of versions, monitors, windows of counts, outcomes and alarms."""
