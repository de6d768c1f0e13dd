"""A Program's nodes are not changed once it is made, by whatever works on it."""

from __future__ import annotations

import ast
import pickle
from dataclasses import FrozenInstanceError

import pytest

from ninetoothed import passes
from ninetoothed.program.nodes import Store, clone
from tests.parsing.applications import program_of


def application(x, y):
    y = x + 1  # noqa: F841


def doubled(store):
    store.value = ast.BinOp(left=store.value, op=ast.Add(), right=clone(store.value))


def test_neither_a_field_nor_a_list_can_be_changed():
    program = program_of(application)
    (store,) = program.body

    with pytest.raises(FrozenInstanceError, match="Store.value of a Program is changed"):
        doubled(store)
    with pytest.raises(FrozenInstanceError, match=r"BinOp\.op of a Program"):
        store.value.op = ast.Sub()
    with pytest.raises(FrozenInstanceError, match="a list of a Program's node is changed: append"):
        program.body.append(store)
    with pytest.raises(FrozenInstanceError, match="changed: __setitem__"):
        store.tile.indices[:] = []


def test_a_copy_can_be_changed_and_is_another():
    program = program_of(application)
    (store,) = program.body
    copy = clone(store)
    doubled(copy)
    copy.tile.indices.append(ast.Constant(value=0))

    assert isinstance(store.value.right, ast.Constant)
    assert store.tile.indices == []


def test_what_is_pickled_comes_back_as_nodes_that_can_be_changed():
    (store,) = pickle.loads(pickle.dumps(program_of(application).body))
    doubled(store)

    assert type(store) is Store
    assert isinstance(store.value.right, ast.BinOp)


def test_a_pass_that_changes_what_it_is_given_is_noticed(monkeypatch):
    def run(program):
        doubled(program.body[-1])
        return program

    monkeypatch.setattr(passes.remove_dead, "run", run)
    with pytest.raises(FrozenInstanceError):
        passes.run(program_of(application))
