"""One table of software: a row is asked for what it can do, by one reader."""

from __future__ import annotations

import pytest

from chipwise.catalog.media_runtime import MediaRuntime, get_media_runtime
from chipwise.catalog.runtime import Sampler, get_runtime
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import CAPABILITIES, SoftwareTable, all_software, shipped
from chipwise.catalog.trainer import Trainer, get_trainer
from chipwise.errors import UsageError

KINDS = (Runtime, MediaRuntime, Trainer, Sampler)
GOOD = """
[formats]
[sets]
[group]
[source.page]
ref = "a page"
date = "2026-11-21"
[order]
networks = ["later"]
[software.one]
name = "One"
source = "page"
[software.one.trains]
kind = "fsdp"
called = ["one"]
memory = { loss = "fused", optimizer = "muon" }
[software.one.networks]
as = "first"
name = "One for networks"
pace = "host"
folds = false
fused_since = ""
tf32_conv = true
vendors = ["nvidia"]
families = ["simt"]
[software.later]
name = "Later"
source = { ref = "another page" }
grade = "recalled"
[software.later.trains]
kind = "fused"
like = "one"
memory = { optimizer = "sgd" }
[software.later.networks]
pace = "graph"
like = "first"
"""


def test_every_row_can_do_something_and_names_its_source() -> None:
    for name, row in shipped().rows.items():
        assert set(row) & set(CAPABILITIES), name
    for kind in KINDS:
        assert list(all_software(kind)) == [s.id for s in all_software(kind).values()]
        assert set(all_software(kind)) == set(shipped().names(kind.capability))
        for found in all_software(kind).values():
            assert found.default.sources or found.default.grade == "assumed", found.id


def test_one_row_does_several_things_each_under_its_name() -> None:
    rows = {name: set(row) & set(CAPABILITIES) for name, row in shipped().rows.items()}
    assert rows["nemo"] == {"trains", "networks"}
    assert rows["neuronx"] == {"trains", "serves"}
    assert rows["vllm"] == {"serves", "samples", "networks"}
    assert set(all_software(Sampler)) <= set(all_software(Runtime))
    assert get_media_runtime("megatron-bridge").id == "megatron-bridge"
    assert get_trainer("neuronx").name != get_runtime("neuronx").name


def test_a_capability_says_anew_what_its_row_says_of_all() -> None:
    table = SoftwareTable(GOOD, "mine.toml")
    one = table.able(Trainer)["one"]
    assert (one.name, one.default.sources[0].ref, one.default.grade) == ("One", "a page", "datasheet")
    networks = table.able(MediaRuntime)
    assert list(networks) == ["later", "first"]
    assert networks["first"].name == "One for networks"


def test_like_takes_all_but_what_is_said_and_what_is_its_own() -> None:
    later = SoftwareTable(GOOD, "mine.toml").able(Trainer)["later"]
    assert (later.kind, later.called) == ("fused", ())
    assert (later.memory.loss, later.memory.optimizer) == ("fused", "sgd")
    assert (later.default.sources[0].ref, later.default.grade) == ("another page", "recalled")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('pace = "graph"', 'pace = "grap"', "did you mean graph"),
        ("folds = false", 'folds = "no"', "expected true or false"),
        ('kind = "fused"', 'kind = "fused"\ntool = 3', "software.later.trains.tool: expected text"),
        ('kind = "fused"', 'kind = "fused"\nmethod = ["full"]', "did you mean methods"),
        ('like = "one"', 'like = "on"', "did you mean one"),
        ('source = "page"', 'source = "pge"', "did you mean page"),
        ('source = "page"\n', "", "key 'source' is missing"),
        ("[software.later.networks]", "[software.later.network]", "did you mean networks"),
        ("[software.later.networks]", "[software.later.networks]\nversion_of = \"torch\"", "unknown value 'torch'"),
        ('networks = ["later"]', 'networks = ["latr"]', "did you mean later"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_and_the_nearest(old: str, new: str, message: str) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(UsageError, match=message):
        _read(GOOD.replace(old, new, 1))


def _read(text: str) -> None:
    table = SoftwareTable(text, "mine.toml")
    for kind in (MediaRuntime, Trainer):
        table.able(kind)
