"""Monitors of models, and alarms."""

from typing import Annotated
from uuid import UUID

from fastapi import Path, Query

from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import PAGE, Cursor, Limit, ModelPath, ServicesDep
from app.schemas.monitoring import (
    Alarm,
    AlarmChange,
    AlarmPage,
    AlarmState,
    Monitor,
    MonitorOptions,
    MonitorWindowPage,
)

router = Router(needs=READ_WRITE, prefix="/v1", tags=["monitoring"])
AlarmId = Annotated[UUID, Path(description="Id of the alarm.")]


@router.put("/models/{model}/monitor")
def put_monitor(model: ModelPath, body: MonitorOptions, services: ServicesDep) -> Monitor:
    """Monitor a model: its later predictions are counted by the bins of the training rows, and windows are tested.

    Counts alone are stored, no rows. What was logged and the evidence of former windows stay where the options change.
    """
    return services.monitors.put(model, body)


@router.get("/models/{model}/monitor")
def get_monitor(model: ModelPath, services: ServicesDep) -> Monitor:
    """The monitor of a model: its options, and how many rows it has logged."""
    return services.monitors.get(model)


@router.delete("/models/{model}/monitor", status_code=204)
def delete_monitor(model: ModelPath, services: ServicesDep) -> None:
    """End the monitoring of a model, and delete what was logged. Its alarms stay."""
    services.monitors.delete(model)


@router.get("/models/{model}/monitor/drift")
def list_monitor_windows(
    model: ModelPath,
    services: ServicesDep,
    version: Annotated[int | None, Query(ge=1, lt=2**31, description="Windows of this version; null: of all.")] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> MonitorWindowPage:
    """Windows of logged rows that were tested for drift, newest first."""
    return services.monitors.windows(model, limit, cursor, version)


@router.get("/alarms")
def list_alarms(
    services: ServicesDep,
    model: Annotated[str | None, Query(max_length=100, description="Alarms of this model; null: of all.")] = None,
    state: Annotated[AlarmState | None, Query(description="Alarms in this state; null: in any.")] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> AlarmPage:
    """Alarms of monitors, newest first."""
    return services.monitors.alarms(limit, cursor, model=model, state=state)


@router.get("/alarms/{alarm_id}")
def get_alarm(alarm_id: AlarmId, services: ServicesDep) -> Alarm:
    """An alarm."""
    return services.monitors.alarm(alarm_id)


@router.patch("/alarms/{alarm_id}")
def change_alarm(alarm_id: AlarmId, body: AlarmChange, services: ServicesDep) -> Alarm:
    """Acknowledge or close an alarm, mute it, or note its owner, a link or a sentence. Absent fields stay."""
    return services.monitors.change_alarm(alarm_id, body)
