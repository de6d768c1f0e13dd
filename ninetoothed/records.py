"""Dataclasses that cost an import little.

`dataclasses.dataclass` compiles each method of a class from text, and a first call imports some 150 classes.
Here all classes share the same functions over tables of their fields, which cost an object a little more than
compiled ones. Fields, `replace` and defaults are `dataclasses`' own. A class that others derive theirs from, as the
plugin contracts, is better a dataclass of Python's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import copy
    import dataclasses
    import functools
    import operator
    import reprlib

    def dataclass(cls=None, *, frozen=False, eq=True):
        """As `dataclasses.dataclass`, with these of its options."""
        if cls is None:
            return functools.partial(dataclass, frozen=frozen, eq=eq)
        cls = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        fields = dataclasses.fields(cls)
        methods = {"__init__": _init_of(cls, fields), "__repr__": _repr_of(fields)}
        if eq:
            compared = _values_of([field.name for field in fields if field.compare])
            methods["__eq__"] = _eq_by(compared)
            methods["__hash__"] = _hash_by(compared) if frozen else None
        for name, method in methods.items():
            if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
                setattr(cls, name, method)
        if frozen:
            cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
        return cls

    def _init_of(cls, fields):
        """An `__init__` that looks its parameters up; what does not fit is for Python's own to refuse."""
        missing = dataclasses.MISSING
        places = [field.name for field in fields if field.init and not field.kw_only]
        names = {field.name for field in fields if field.init}
        defaults = {
            field.name: field.default
            for field in fields
            if field.init and field.default is not missing
        }
        factories = {
            field.name: field.default_factory
            for field in fields
            if field.default_factory is not missing
        }
        count = len(names | factories.keys())
        is_finished_by_class = hasattr(cls, "__post_init__")
        keep = object.__setattr__

        def __init__(self, /, *values, **named):
            given = dict(zip(places, values), **named) if named else dict(zip(places, values))
            if len(given) != len(values) + len(named) or (named and not given.keys() <= names):
                _refuse_to_make(cls, values, named)
            if len(given) != count:
                given = {**defaults, **given}
                for name, make in factories.items():
                    if name not in given:
                        given[name] = make()
                if len(given) != count:
                    _refuse_to_make(cls, values, named)
            keep(self, "__dict__", given)
            if is_finished_by_class:
                self.__post_init__()

        __init__.__qualname__, __init__.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        return __init__

    def _refuse_to_make(cls, values, named):
        fields = [(field.name, field.type, copy.copy(field)) for field in dataclasses.fields(cls)]
        dataclasses.make_dataclass(cls.__qualname__, fields)(*values, **named)

    def _values_of(names):
        """Gives an object's fields of these names as a tuple."""
        if len(names) > 1:
            return operator.attrgetter(*names)
        return lambda self: tuple([getattr(self, name) for name in names])

    def _eq_by(values):
        def __eq__(self, other):
            if other.__class__ is not self.__class__:
                return NotImplemented
            return values(self) == values(other)

        return __eq__

    def _hash_by(values):
        return lambda self: hash(values(self))

    def _repr_of(fields):
        names = [field.name for field in fields if field.repr]

        @reprlib.recursive_repr()
        def __repr__(self):
            listed = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
            return f"{self.__class__.__qualname__}({listed})"

        return __repr__

    def _refuse_to_set(self, name, value):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_to_delete(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
