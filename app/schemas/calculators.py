"""The list of calculators on the wire."""

from pydantic import Field

from app.base.wire import Wire


class CalculatorCard(Wire):
    """Calculator of learning theory."""

    name: str = Field(description="Name of the calculator, the last part of its address.")
    title: str = Field(description="Quantity that it calculates, in one sentence.")
    description: str = Field(description="Description in full: the first paragraph is the title.")
    path: str = Field(description="Address that a request is sent to by POST.")


class CalculatorPage(Wire):
    """Page of calculators."""

    items: list[CalculatorCard] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")
