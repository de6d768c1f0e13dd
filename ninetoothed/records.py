"""Dataclasses that cost an import little.

`dataclasses.dataclass` compiles each method of a class from text, and a first call imports some 150 classes.
Here all classes share the same functions over tables of their fields, and an `__init__` is a copy of one that is
compiled already, with other parameters. Fields, `replace` and defaults are `dataclasses`' own. A class that others
derive theirs from, as the plugin contracts, is better a dataclass of Python's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    import functools
    import operator
    import reprlib
    import types

    #: The default of what a factory makes.
    _ANEW = object()

    _keep = object.__setattr__

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
        """An `__init__` with the class's parameters and the code of all."""
        factories = {
            field.name: field.default_factory
            for field in fields
            if field.default_factory is not dataclasses.MISSING
        }
        cls.__factories__ = factories
        is_plain = not factories and not hasattr(cls, "__post_init__")
        places = [field for field in fields if field.init and not field.kw_only]
        keywords = [field for field in fields if field.init and field.kw_only]
        names = ("self", *[field.name for field in places + keywords])
        # A parameter is a variable, and a variable of a code is its name.
        code = (_init_plain if is_plain else _init_finished).__code__.replace(
            co_argcount=1 + len(places),
            co_kwonlyargcount=len(keywords),
            co_nlocals=len(names),
            co_varnames=names,
        )
        defaults = _defaults_of(places)
        __init__ = types.FunctionType(code, globals(), "__init__", tuple(defaults.values()))
        __init__.__kwdefaults__ = _defaults_of(keywords)
        __init__.__qualname__, __init__.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        return __init__

    def _defaults_of(fields):
        return {
            field.name: field.default if field.default_factory is dataclasses.MISSING else _ANEW
            for field in fields
            if field.default is not field.default_factory
        }

    def _init_plain(self):
        # A debugger writes to what `locals` gives.
        _keep(self, "__dict__", {**locals()})
        del self.__dict__["self"]

    def _init_finished(self):
        _keep(self, "__dict__", {**locals()})
        del self.__dict__["self"]
        _finish(self)

    def _finish(self):
        """Makes what a factory makes anew for each object, then does what the class does itself."""
        given = self.__dict__
        for name, make in self.__factories__.items():
            if given.get(name, _ANEW) is _ANEW:
                given[name] = make()
        if hasattr(self, "__post_init__"):
            self.__post_init__()

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
