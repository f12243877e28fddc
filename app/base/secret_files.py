"""Settings from files, as orchestrators mount secrets: `VALIANT_DATABASE_URL_FILE` names that of the URL."""

import os
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from app.base.errors import StartFailed


class SecretFiles(PydanticBaseSettingsSource):
    """Values of the files that VALIANT_…_FILE name, of settings that are secrets. Raises StartFailed."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        path = os.environ.get(f"VALIANT_{field_name.upper()}_FILE") if SecretStr in get_args(field.annotation) else None
        try:
            return path and Path(path).read_text(encoding="utf-8").strip(), field_name, False
        except OSError as error:
            raise StartFailed(f"VALIANT_{field_name.upper()}_FILE cannot be read: {error.strerror}.") from error

    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields.items()
        values = {name: self.get_field_value(field, name)[0] for name, field in fields}
        return {name: value for name, value in values.items() if value is not None}
