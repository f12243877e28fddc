"""The list of calculators; each has its route among the queries."""

from itertools import islice

from app.api.edge.router import READ, Router
from app.api.params.common import Cursor, Limit
from app.ml.operations import QueryEntry, calculator_entries
from app.schemas.calculators import CalculatorCard, CalculatorPage

router = Router(needs=READ, prefix="/v1/theory", tags=["theory"])


@router.get("")
async def list_calculators(limit: Limit = 200, cursor: Cursor = None) -> CalculatorPage:
    """List the calculators of learning theory in alphabetical order."""
    after = (entry for name, entry in calculator_entries().items() if cursor is None or name > cursor)
    cards = [_card(entry) for entry in islice(after, limit + 1)]
    return CalculatorPage(items=cards[:limit], next_cursor=cards[limit - 1].name if len(cards) > limit else None)


def _card(entry: QueryEntry) -> CalculatorCard:
    title = entry.description.split("\n\n")[0].replace("\n", " ")
    return CalculatorCard(name=entry.name, title=title, description=entry.description, path=entry.query.path or "")
