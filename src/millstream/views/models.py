"""The models of an app, and their versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import closest, fault, listed
from millstream.learn.versions import ModelVersion, is_model, versions_of

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.model.graph import Graph


@dataclass(frozen=True, slots=True)
class ModelView:
    """A model, and its versions from the newest on."""

    name: str
    versions: tuple[ModelVersion, ...]


@dataclass(frozen=True, slots=True)
class ModelsView:
    """The models of a home."""

    home: str
    models: tuple[ModelView, ...]

    @staticmethod
    def of(home: Home, graph: Graph | None, name: str | None = None) -> ModelsView:
        """Show the versions of all models, or of one.

        Raises:
            ARGUMENT_REFUSED: There is no such model.
        """
        home.verify_in_use()
        keys = {model.name: model.key for model in graph.models} if graph else {}
        known = [table for table in home.tables if is_model(home.table(table))]
        if name is not None and name not in known:
            expected = f"a model of the home: {closest(name, known)}{listed(tuple(known))}"
            raise fault("ARGUMENT_REFUSED", option="--model", value=name, expected=expected)
        shown = (
            ModelView(model, versions_of(home.table(model), keys.get(model, ())))
            for model in known
            if name in (None, model)
        )
        return ModelsView(str(home.path), tuple(shown))
