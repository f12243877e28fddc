"""Plots of a model version on the wire."""

from typing import Any, ClassVar

from pydantic import ConfigDict, Field

from app.base.wire import Wire


class PlotCard(Wire):
    """A plot that a model version has."""

    name: str = Field(description="Name of the plot, the last part of its address.")
    title: str = Field(description="Title of the plot.")
    description: str = Field(description="Contents of the plot and how to read it, in plain sentences.")


class PlotList(Wire):
    """Plots of a model version."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    items: list[PlotCard] = Field(description="Plots of the version, in alphabetical order.")


class PlotTitle(Wire):
    """Title of a plot with its subtitle."""

    text: str = Field(description="Title.")
    subtitle: list[str] | None = Field(None, description="Lines below the title; null: there are none.")


class PlotSpecification(Wire):
    """A Vega-Lite specification that holds its data: beside these fields it has those of its kind of view."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    vega_lite_schema: str = Field(alias="$schema", description="Address of the JSON Schema of the grammar.")
    title: PlotTitle = Field(description="Title of the plot with its subtitle.")
    config: dict[str, Any] = Field(description="Theme: colours, fonts and sizes.")
