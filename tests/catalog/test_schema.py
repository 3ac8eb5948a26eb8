from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from chipwise.catalog.chip import Provenance, Source
from chipwise.catalog.schema import Values, record
from chipwise.errors import UsageError


@dataclass(frozen=True)
class Inner:
    width: float = 1.0


@dataclass(frozen=True)
class Outer:
    id: str
    name: str
    count: int = 0
    on: bool = False
    kind: Literal["a", "b"] = "a"
    names: tuple[str, ...] = ()
    pair: tuple[int, float] = (1, 1.0)
    some: frozenset[str] = frozenset()
    inner: Inner | None = None
    switch: bool | str = False
    by: Mapping[str, Inner] = field(default_factory=dict)


def read(**table: Any) -> Outer:
    return record(Outer, {"name": "n"} | table, "t.toml: x", id="x")


def test_a_record_is_read_by_its_own_fields() -> None:
    found = read(
        count=2,
        on=True,
        kind="b",
        names=["p", "q"],
        pair=[3, 4],
        some=["s"],
        inner={"width": 2},
        switch="key",
        by={"k": {"width": 3}},
    )
    assert found == Outer(
        "x", "n", 2, True, "b", ("p", "q"), (3, 4.0), frozenset("s"), Inner(2.0), "key", {"k": Inner(3.0)}
    )
    assert read(switch=True).switch is True
    assert isinstance(read(inner={"width": 2}).inner.width, float)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"cuont": 1}, "t.toml: x: unknown key 'cuont' .did you mean count"),
        ({"id": "y"}, "unknown key 'id'"),
        ({"count": 1.5}, "x.count: expected a whole number, found 1.5"),
        ({"count": True}, "x.count: expected a whole number, found True"),
        ({"on": 1}, "x.on: expected true or false"),
        ({"kind": "c"}, "x.kind: unknown value 'c' .one of a, b"),
        ({"names": "p"}, "x.names: expected a list"),
        ({"names": ["p", 1]}, "x.names: expected text, found 1"),
        ({"pair": [1]}, "x.pair: expected 2 values, found 1"),
        ({"inner": {"wdth": 1}}, "x.inner: unknown key 'wdth' .did you mean width"),
        ({"inner": {"width": "wide"}}, "x.inner.width: expected a number"),
        ({"by": []}, "x.by: expected a table"),
        ({"by": {"k": {"width": False}}}, "x.by.k.width: expected a number"),
        ({"switch": 3}, "x.switch: expected text"),
    ],
)
def test_what_a_record_refuses(table: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(**table)


def test_what_has_no_default_has_to_be_there() -> None:
    with pytest.raises(UsageError, match=r"t\.toml: x: key 'name' is missing"):
        record(Outer, {}, "t.toml: x", id="x")
    with pytest.raises(UsageError, match="expected a table, found 3"):
        record(Outer, 3, "t.toml: x", id="x")


def test_where_figures_are_from() -> None:
    sources = {"sheet": Source("a sheet", "2026-01-01"), "talk": Source("a talk", None)}
    default = Provenance((sources["sheet"],), "datasheet", "of the sheet")
    values = Values("x")
    assert values.provenance({}, sources, default) is default
    assert values.provenance({"sources": ["talk"]}, sources, default) == Provenance((sources["talk"],), "datasheet", "")
    figures = {"width": 1.0, "height": 2.0}
    own = [{"figures": ["width"], "grade": "assumed", "note": "half"}]
    assert values.own({"own": own}, figures, sources, default) == {
        "width": Provenance(default.sources, "assumed", "half")
    }
    with pytest.raises(UsageError, match=r"own lists .widht., which the table does not have \(did you mean width"):
        values.own({"own": [{"figures": ["widht"]}]}, figures, sources, default)
    with pytest.raises(UsageError, match="own lists 'width' twice"):
        values.own({"own": own * 2}, figures, sources, default)
    with pytest.raises(UsageError, match=r"source .talks. is not in .sources. \(did you mean talk"):
        values.provenance({"sources": ["talks"], "grade": "assumed"}, sources)
    with pytest.raises(UsageError, match="no sources"):
        values.provenance({"grade": "assumed"}, sources)
