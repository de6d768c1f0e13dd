"""Dataclasses that cost an import little.

`dataclasses.dataclass` compiles each method of a class from text, and a first call imports some 150 classes.
Here `__init__` alone is text, compiled once a class has more than a few objects; the
others are shared. Fields, `replace` and defaults are `dataclasses`' own. A class that others derive theirs from, as
the plugin contracts, is better a dataclass of Python's.
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

    def dataclass(cls=None, *, frozen=False, eq=True):
        """As `dataclasses.dataclass`, with these of its options."""
        if cls is None:
            return functools.partial(dataclass, frozen=frozen, eq=eq)
        cls = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        fields = dataclasses.fields(cls)
        methods = {"__init__": _by_field(cls, fields, frozen), "__repr__": _repr_of(fields)}
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

    #: So many objects of a class are set field by field before its `__init__` is compiled.
    _FEW = 8

    def _by_field(cls, fields, is_frozen):
        """The `__init__` of a class's first objects; what does not fit is for the compiled one to refuse."""
        parameters = {field.name for field in fields if field.init}
        places = [field.name for field in fields if field.init and not field.kw_only]
        needed = {field.name for field in fields if field.init and not _has_default(field)}
        few = iter(range(_FEW))

        def __init__(self, /, *values, **named):
            given = dict(zip(places, values)) | named
            is_each_given_once = len(given) == len(values) + len(named)
            fits = is_each_given_once and needed <= given.keys() <= parameters
            if next(few, None) is None or not fits:
                cls.__init__ = made = _init_of(cls, is_frozen)
                made(self, *values, **named)
                return
            for field in fields:
                if field.name in given:
                    value = given[field.name]
                elif field.default_factory is not dataclasses.MISSING:
                    value = field.default_factory()
                elif field.init:
                    value = field.default
                else:
                    continue
                object.__setattr__(self, field.name, value)
            if hasattr(cls, "__post_init__"):
                self.__post_init__()

        return __init__

    def _has_default(field):
        missing = dataclasses.MISSING
        return field.default is not missing or field.default_factory is not missing

    def _init_of(cls, is_frozen):
        fields = dataclasses.fields(cls)
        places = [field for field in fields if field.init and not field.kw_only]
        by_keyword = [field for field in fields if field.init and field.kw_only]
        known = {"_factory_": _FACTORY, "_keep_": object.__setattr__}

        def parameter(field):
            if field.default is not dataclasses.MISSING:
                known[f"default_{field.name}"] = field.default
                return f"{field.name}=default_{field.name}"
            is_made = field.default_factory is not dataclasses.MISSING
            return f"{field.name}=_factory_" if is_made else field.name

        head = ["self", *map(parameter, places), *(["*"] if by_keyword else [])]
        head += map(parameter, by_keyword)
        body = []
        for field in fields:
            name, value = field.name, field.name
            if field.default_factory is not dataclasses.MISSING:
                known[f"make_{name}"] = field.default_factory
                value = f"make_{name}()"
                if field.init:
                    value += f" if {name} is _factory_ else {name}"
            elif not field.init:
                continue
            body.append(
                f"_keep_(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}"
            )
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        lines = "".join(f"\n    {line}" for line in body or ["pass"])
        exec(f"def __init__({', '.join(head)}):{lines}", known)
        made = known["__init__"]
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        return made

    #: Stands for what is made anew for each object.
    _FACTORY = object()

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
