"""Values have the methods that the standard library's dataclasses have."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import pytest

from chipwise.values import dataclass


class Shape:
    """What both kinds of classes are made of."""

    def __post_init__(self) -> None:
        if self.width < 0:  # type: ignore[attr-defined]
            raise ValueError("negative")


@dataclass(frozen=True, slots=True)
class Slotted(Shape):
    width: int
    names: list[str] = field(default_factory=list, hash=False)
    seen: int = field(default=0, compare=False, repr=False)
    made: int = field(default=3, init=False)


@dataclass(frozen=True)
class Wider(Slotted):
    depth: float = field(default=1.0, kw_only=True)


@dataclass
class Counter:
    count: int = 0


@dataclass(frozen=True, eq=False)
class Lone:
    """Equal to itself alone."""

    one: int = 1


def library(cls: type, **options: bool) -> Callable[..., Any]:
    """The same class by the standard library."""
    own = {k: v for k, v in vars(Shape).items() if k == "__post_init__"}
    return dataclasses.make_dataclass(
        cls.__name__, [(f.name, f.type, copy.copy(f)) for f in fields(cls)], namespace=own, **options
    )


@pytest.mark.parametrize("cls", [Slotted, Wider])
def test_values_are_made_shown_and_compared_as_by_the_library(cls: type) -> None:
    theirs = library(cls, frozen=True)
    for given in ((2,), (2, ["a"]), (2, ["a"], 7)):
        mine, other = cls(*given), theirs(*given)
        assert repr(mine) == repr(other)
        assert hash(mine) == hash(other)
        assert mine == cls(*given) == replace(mine, seen=9)
        assert mine != cls(3)
        assert mine != other
        assert dataclasses.asdict(mine) == dataclasses.asdict(other)
    assert list(inspect.signature(cls).parameters) == list(inspect.signature(theirs).parameters)
    assert cls(1).names is not cls(1).names
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'width'"):
        cls()
    with pytest.raises(ValueError, match="negative"):
        cls(-1)


@pytest.mark.parametrize("value", [Slotted(2, ["a"]), Wider(2, depth=3.0)])
def test_a_frozen_value_is_not_changed_and_can_be_copied(value: Slotted) -> None:
    with pytest.raises(FrozenInstanceError):
        value.width = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del value.width
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == copy.copy(value) == value


def test_what_is_not_frozen_has_no_hash_and_what_is_not_compared_is_equal_to_itself() -> None:
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    assert Lone() != Lone()
    assert len({Lone(), Lone()}) == 2
