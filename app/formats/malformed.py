"""The refusal of bodies that are damaged, or no table of the kind their Content-Type names."""

from app.base.errors import ValiantError


class MalformedTable(ValiantError):
    code, status, title = "malformed_table", 400, "The body is no table of its declared kind"
