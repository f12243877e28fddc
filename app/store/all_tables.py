"""All tables of the database: those of every file in this folder whose name ends in `_table` or `_tables`."""

from importlib import import_module
from pkgutil import walk_packages

from sqlalchemy import MetaData

from app import store
from app.store.base.table_base import Base


def read_metadata() -> MetaData:
    """Return the description of all tables, for migrations and their tests."""
    for module in walk_packages(store.__path__, f"{store.__name__}."):
        if module.name.endswith(("_table", "_tables")) and module.name != __name__:
            import_module(module.name)
    return Base.metadata
