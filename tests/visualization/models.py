"""Models of definitions, as pages are made of them."""

from __future__ import annotations

from ninetoothed.visualization.model import Model, View


def model_of(definition, given=None):
    views = [View(p.name, p.tensor, True, True) for p in definition.tensor_parameters]
    return Model(definition.name, views, definition.names, given or {}, {})
