"""Creation of a key in the database itself: by whoever runs the service, who needs no key for that."""

import sys

from sqlalchemy.exc import DBAPIError, OperationalError

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.embedded.data_folder import Folder
from app.embedded.postgres import url
from app.embedded.stack import Stack
from app.schemas.keys import CreatedKey, KeySpec
from app.schemas.projects import DEFAULT_NAME
from app.services.access.keys import Keys
from app.store.base.database_errors import is_not_prepared
from app.store.engine import make_engine
from app.store.unit_of_work import WorkFactory
from migrations.schema_revision import upgrade


def print_key(settings: Settings, spec: KeySpec) -> None:
    """Create the key and print it. Raises StartFailed."""
    key = _create(settings, spec)
    print(f"Keep this key: it is not shown again. It expires on {key.expires_at:%Y-%m-%d}.", file=sys.stderr)
    print(key.secret)


def _create(settings: Settings, spec: KeySpec) -> CreatedKey:
    if settings.database_url is not None:
        return _add(settings, spec)
    running = settings.model_copy(update={"database_url": url(Folder(settings.data))})
    try:
        return _add(running, spec)
    except StartFailed:
        with Stack(settings) as stack:
            assert stack.settings.database_url is not None  # noqa: S101  the stack has one
            upgrade(stack.settings.database_url.get_secret_value())
            return _add(stack.settings, spec)


def _add(settings: Settings, spec: KeySpec) -> CreatedKey:
    engine = make_engine(settings, role="keys")
    try:
        return Keys(WorkFactory(engine)).create_first(spec, spec.project or DEFAULT_NAME)
    except OperationalError as error:
        raise StartFailed("The database of VALIANT_DATABASE_URL cannot be reached.") from error
    except DBAPIError as error:
        if is_not_prepared(error):
            raise StartFailed("The database has no tables or roles of keys: run `valiant migrate` first.") from error
        raise
    finally:
        engine.dispose()
