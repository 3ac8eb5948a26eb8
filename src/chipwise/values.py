"""`dataclass` as the standard library has it, with methods that are made when they are first called.

The library writes six methods of each class as text and compiles them, which takes more than half of the time that
importing takes: most of the classes that a command imports it never makes. Here `__init__` alone is text, of classes
that are made, and stores through the slots themselves; the other methods are shared. Type checkers see the library's.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, eq: bool = True, frozen: bool = False, **options: bool) -> Any:
        """A class with the methods of `dataclasses.dataclass`, which takes the same options but those of order."""
        if cls is None:
            return partial(dataclass, eq=eq, frozen=frozen, **options)
        shown = options.pop("repr", True)
        made = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
        methods: dict[str, Any] = {"__init__": _Init(made)}
        if shown:
            methods["__repr__"] = _repr
        if eq:
            methods |= _equal(made, frozen=frozen)
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
            if options.get("slots"):
                methods |= {"__getstate__": _state, "__setstate__": _restore}
        for name, method in methods.items():
            if name not in made.__dict__:
                setattr(made, name, method)
        return made


class _Init:
    """Stands for `__init__` of a class until it is asked for, and puts it in its place."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        made = self.cls.__init__ = _init_of(self.cls)  # type: ignore[misc]
        return made if instance is None else MethodType(made, instance)


def _init_of(cls: type) -> Callable[..., None]:
    """`__init__` of a class from its fields."""
    known: dict[str, Any] = {"_store": object.__setattr__, "_made": object()}
    plain, named, body = ["self"], list[str](), list[str]()
    for f in dataclasses.fields(cls):
        name, value, default = f.name, f.name, ""
        if f.default_factory is not dataclasses.MISSING:
            known[f"_new_{name}"], default = f.default_factory, "=_made"
            value = f"_new_{name}() if {name} is _made else {name}" if f.init else f"_new_{name}()"
        elif f.default is not dataclasses.MISSING:
            known[f"_else_{name}"], default = f.default, f"=_else_{name}"
            value = name if f.init else f"_else_{name}"
        if f.init:
            (named if f.kw_only else plain).append(name + default)
        elif not default:
            continue
        slot = getattr(cls, name, None)
        if isinstance(slot, MemberDescriptorType):
            known[f"_set_{name}"] = slot.__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_store(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    head = ", ".join([*plain, "*", *named] if named else plain)
    # names that it takes from around it, so that its module stays its own: hints are looked up there
    text = f"def made({', '.join(known)}):\n def __init__({head}):\n  " + "\n  ".join(body or ["pass"])
    found: dict[str, Any] = {}
    exec(f"{text}\n return __init__", sys.modules[cls.__module__].__dict__, found)
    init: Callable[..., None] = found["made"](**known)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {f.name: f.type for f in dataclasses.fields(cls) if f.init} | {"return": None}
    return init


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the attributes of these names as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _equal(cls: Any, *, frozen: bool) -> dict[str, Any]:
    """`__eq__` by the fields that are compared, and `__hash__` of what is frozen."""
    compared = [f for f in dataclasses.fields(cls) if f.compare]
    seen = _getter([f.name for f in compared])
    hashed = _getter([f.name for f in compared if f.hash is not False])

    def equal(self: Any, other: object) -> bool:
        return seen(self) == seen(other) if other.__class__ is self.__class__ else NotImplemented

    def hashing(self: Any) -> int:
        return hash(hashed(self))

    return {"__eq__": equal, "__hash__": hashing if frozen else None}


def _refuse(self: object, name: str, *value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _restore(self: Any, state: list[object]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
