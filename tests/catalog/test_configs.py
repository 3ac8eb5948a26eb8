"""Configurations from files that are not what they seem, and by name."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.configs import MAX_BYTES, bundled_configs, find_config, parse_config
from chipwise.errors import UnknownNameError, UsageError
from chipwise.tracing.sources import is_pipeline

SMALL = {"model_type": "llama", "hidden_size": 64}


def refused(path: Path | str) -> str:
    with pytest.raises(UsageError) as caught:
        find_config(str(path))
    text = str(caught.value)
    assert "\n" not in text
    return text


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_by_path_and_by_folder(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    file = written(folder / "config.json", json.dumps(SMALL))
    assert find_config(str(folder)).data == SMALL
    assert find_config(str(folder)).name == "my-model"
    assert find_config(str(file)).name == "my-model"


def test_two_underscores_in_a_file_name_stand_for_the_organisation(tmp_path: Path) -> None:
    file = written(tmp_path / "Qwen__Qwen3-8B.json", json.dumps(SMALL))
    assert find_config(str(file)).name == "Qwen/Qwen3-8B"


def test_a_file_name_cannot_smuggle_control_characters_into_a_table(tmp_path: Path) -> None:
    file = written(tmp_path / "a\n\x1b[31mb.json", json.dumps(SMALL))
    assert find_config(str(file)).name.isprintable()


def test_bundled_by_name_in_any_case_and_without_the_organisation() -> None:
    whole = find_config("meta-llama/Llama-3.1-70B")
    assert find_config("META-LLAMA/llama-3.1-70b") == whole
    assert find_config("llama-3.1-70b") == whole


def test_an_alias_has_the_keys_of_its_model() -> None:
    table = bundled_configs()
    assert table["meta-llama/Meta-Llama-3.1-70B"].data == table["meta-llama/Llama-3.1-70B"].data


def test_every_bundled_model_says_where_it_comes_from() -> None:
    assert [name for name, config in bundled_configs().items() if not config.origin.strip()] == []


@pytest.mark.parametrize("name", ["llama-3.1-71b", "Lama-3.1-70B", "meta-llama/Llama-3-1-70B"])
def test_an_unknown_name_suggests_the_nearest(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean .*Llama-3\.1-70B"):
        find_config(name)


@pytest.mark.parametrize("name", ["", " ", "nobody/nothing", "x" * 5000, "a\0b", "\ud800", "a/" * 3000])
def test_a_name_that_is_nothing_is_unknown(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_config(name)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "name", ["./nothing.json", "/nothing/here", "~/nothing-here", "~nobody-by-this-name/x", "nothing.json"]
)
def test_a_path_that_is_nothing_is_no_such_file(name: str) -> None:
    assert "no such file" in refused(name)


def test_truncated_json_names_the_place(tmp_path: Path) -> None:
    text = json.dumps(SMALL, indent=1)
    assert "line 3" in refused(written(tmp_path / "c.json", text[: len(text) - 8]))


@pytest.mark.parametrize("text", ["", "[]", "3", '"llama"', "null", "[{}]", "{} {}", "{", "{'a': 1}", "\ufeff{}"])
def test_what_is_not_one_object_is_refused(tmp_path: Path, text: str) -> None:
    assert "not valid JSON" in (said := refused(written(tmp_path / "c.json", text))) or "one JSON object" in said


def test_a_key_twice_is_refused(tmp_path: Path) -> None:
    said = refused(written(tmp_path / "c.json", '{"hidden_size": 1, "a": {}, "hidden_size": 2}'))
    assert "'hidden_size' occurs twice" in said


def test_a_key_twice_is_refused_inside_as_well(tmp_path: Path) -> None:
    assert "occurs twice" in refused(written(tmp_path / "c.json", '{"text_config": {"a": 1, "a": 1}}'))


def test_many_keys_take_no_quadratic_time() -> None:
    keys = ",".join(f'"{i}":0' for i in range(200_000))
    start = time.perf_counter()
    with pytest.raises(UsageError, match="occurs twice"):
        parse_config(f'{{{keys},"x":1,"x":2}}', "name", "origin")
    assert time.perf_counter() - start < 20


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    assert "nested too deeply" in refused(written(tmp_path / "c.json", '{"a":' * 100_000))


def test_a_number_without_end_is_refused(tmp_path: Path) -> None:
    assert "number too long" in refused(written(tmp_path / "c.json", '{"hidden_size": 1' + "0" * 100_000 + "}"))


def test_infinity_is_read_since_published_files_hold_it(tmp_path: Path) -> None:
    file = written(tmp_path / "c.json", '{"time_step_limit": [0.0, Infinity]}')
    assert find_config(str(file)).data["time_step_limit"] == [0.0, float("inf")]


def test_weights_are_not_a_configuration(tmp_path: Path) -> None:
    assert "not a text file" in refused(written(tmp_path / "model.json", bytes(range(256))))


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    with file.open("wb") as out:
        out.truncate(2_000_000_000)  # sparse: takes no space
    start = time.perf_counter()
    assert "2,000 MB" in refused(file)
    assert time.perf_counter() - start < 1
    with file.open("wb") as out:
        out.truncate(MAX_BYTES)
    assert " MB" not in refused(file)


def test_a_folder_without_a_configuration(tmp_path: Path) -> None:
    assert "holds no config.json" in refused(tmp_path)


def test_a_folder_called_config_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    assert refused(tmp_path)


def test_a_device_or_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    assert "not a file" in refused("/dev/zero")
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    assert "not a file" in refused(pipe)
    assert "not a file" in refused(tmp_path)


def test_a_symlink_that_points_to_itself(tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    assert refused(loop)


def test_a_symlink_to_a_file_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(written(tmp_path / "real.json", json.dumps(SMALL)))
    assert find_config(str(link)).data == SMALL


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    file = written(tmp_path / "c.json", json.dumps(SMALL))
    file.chmod(0)
    assert "cannot be read" in refused(file)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda b: b.decode("latin-1")))
def test_any_text_is_an_object_or_a_usage_error(text: str) -> None:
    try:
        found = parse_config(text, "name", "origin")
    except UsageError:
        return
    assert isinstance(found.data, dict)


@given(st.text(max_size=60))
def test_any_name_is_a_configuration_or_an_error_of_ours(name: str) -> None:
    with contextlib.suppress(UsageError, UnknownNameError):
        assert find_config(name).data


def test_a_folder_of_something_else_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"notes: a folder without config\.json"):
        find_config("notes")


def test_a_transformer_by_its_dimensions_is_the_model_of_these() -> None:
    from chipwise.api.loaded import describe

    text = "transformer:layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256"
    assert describe(text).params == describe("meta-llama/Llama-3.1-8B").params
    dense = "transformer:layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=32000"
    assert describe(f"{dense},experts=8,top_k=2").params == describe("mistralai/Mixtral-8x7B-v0.1").params
    assert describe(text.removesuffix(",vocab=128256")).params == describe(text).params
    assert describe(f"{dense},tied=1").params == describe(dense).params - 32000 * 4096


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("transformer:", "without a name"),
        ("transformer:layers=4", "without hidden, heads, ffn"),
        ("transformer:layer=4", "did you mean layers"),
        ("transformer:layers=4.5", "not a whole number"),
        ("transformer:layers=4,layers=5", "twice"),
        ("transformer:layers=4,hidden=64,heads=4,ffn=64,vocab=9,top_k=2", "add experts"),
        ("transformer:layers=4,hidden=64,heads=3,ffn=64,vocab=9", "give head_dim too"),
    ],
)
def test_dimensions_that_make_no_transformer_are_named(text: str, what: str) -> None:
    from chipwise.api.loaded import load
    from chipwise.errors import ChipwiseError

    with pytest.raises(ChipwiseError, match=what):
        load(text)


def test_an_adapter_is_its_base_model(tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    folder.mkdir()
    said = {"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-3.1-8B", "r": 16}
    (folder / "adapter_config.json").write_text(json.dumps({**said, "target_modules": ["q_proj", "v_proj"]}))
    (folder / "adapter_model.safetensors").write_bytes(b"")
    for text in (folder, folder / "adapter_config.json", folder / "adapter_model.safetensors"):
        found = find_config(str(text))
        assert found.name == "meta-llama/Llama-3.1-8B"
        assert "--lora rank=16,targets=q_proj+v_proj" in found.notes[-1]
    assert not is_pipeline(str(folder))
    for base, match in (("tuned", "is not bundled"), (str(folder), "is not bundled"), ("", "names no base_model")):
        (folder / "adapter_config.json").write_text(json.dumps({**said, "base_model_name_or_path": base}))
        with pytest.raises(UsageError, match=match):
            find_config(str(folder))


def test_a_folder_of_the_hugging_face_cache_is_its_main_snapshot(tmp_path: Path) -> None:
    home = tmp_path / "models--org--net"
    for name, hidden in (("aaa", 64), ("bbb", 128)):
        (home / "snapshots" / name).mkdir(parents=True)
        (home / "snapshots" / name / "config.json").write_text(
            json.dumps({"model_type": "llama", "hidden_size": hidden})
        )
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("bbb")
    for text in (home, home / "snapshots" / "bbb"):
        found = find_config(str(text))
        assert (found.name, found.data["hidden_size"]) == ("org/net", 128)
    (home / "refs" / "main").write_text("../../..")
    with pytest.raises(UsageError, match=r"config\.json"):
        find_config(str(home))
