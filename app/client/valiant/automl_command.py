"""The command that finds the best model within a budget of seconds."""

from collections.abc import Callable
from typing import Any

from .best_model import BestModel
from .dataset import Dataset
from .service import Client

PRESETS = ("fast", "balanced", "best", "interpretable", "small")


def add_automl_command(add: Callable[..., Any], table_of: Callable[[Client, str], Dataset[Any]]) -> None:
    """add: adds a command to the parser. table_of: a dataset by its file, name or id."""

    def run(service: Client, table: str, **options: Any) -> BestModel[Any]:
        fields = {name: value for name, value in options.items() if value is not None}
        return service.automl(table_of(service, table), **fields)

    automl = add("automl", run, "find the best model within a budget of seconds; Ctrl-C keeps the best so far")
    automl.add_argument("table", help="a file, or the name or id of a dataset")
    automl.add_argument("--target", required=True, help="column to predict")
    automl.add_argument("--seconds", type=float, default=300.0, help="budget (300)")
    automl.add_argument("--units", type=int, help="number of fits, instead of seconds")
    automl.add_argument("--model", help="model that gets the version (the name of the dataset)")
    automl.add_argument("--preset", choices=PRESETS, help="kind of models (balanced)")
    automl.add_argument("--metric", help="metric to improve (rmse or log_loss)")
    automl.add_argument("--choose", choices=("simplest", "metric"), help="the simplest of the best, or the best")
    automl.add_argument("--include", action="append", help="algorithm to choose among; repeatable")
    automl.add_argument("--exclude", action="append", help="algorithm to leave out; repeatable")
    automl.add_argument("--seed", type=int, help="seed of all splits and fits")
