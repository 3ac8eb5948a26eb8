"""Systems: cited spot checks, guards on what is bundled and on what users write, --have."""

import math

import pytest

from chipwise.catalog.chips import load_chips
from chipwise.catalog.system import get_system, load_systems, parse_have, systems_for
from chipwise.catalog.system_reader import system_entries
from chipwise.catalog.system_spec import System
from chipwise.errors import UnknownNameError, UsageError
from chipwise.units import GIB

SYSTEMS = list(load_systems().values())


def box(**keys: str) -> str:
    """A user's file with one machine; keys replace or add lines."""
    lines = {"chip": '"rtx-4090"', "chips_per_host": "4", "tiers": '[{ fabric = "pcie", chips = 4 }]'} | keys
    return "[my-box]\n" + "\n".join(f"{key} = {value}" for key, value in lines.items() if value)


def read(text: str) -> System:
    """The machine of a user's file."""
    (found,) = [entry.system() for entry in system_entries(text, "mine.toml", load_chips()).values()]
    return found


# facts, with where they were read


def test_v5e_pod_wraps_only_where_an_axis_spans_the_pod():
    # Google Cloud documentation, TPU v5e; scaling-book, TPUs: wrap-around with a full axis of 16
    pod = get_system("tpu-v5e-pod")
    listed = {(1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16)}
    assert set(pod.slices()) == listed
    assert pod.wraps((16, 16)) == (True, True)
    assert pod.wraps((8, 16)) == (False, True)
    assert pod.wraps((4, 4)) == (False, False)
    assert (pod.chips_per_host, pod.chips, pod.hosts) == (8, 256, 32)
    assert pod.tiers[0].bytes_per_s == 4 * pod.tiers[0].pairwise_bytes_per_s == 200e9


def test_v4_cubes():
    # Google Cloud documentation, TPU v4: axes of at most 4 or multiples of 4; a torus where all are multiples
    pod = get_system("tpu-v4-pod")
    for shape in [(2, 2, 1), (4, 4, 4), (4, 4, 8), (4, 8, 8), (12, 12, 24), (16, 16, 16)]:
        assert shape in pod.slices()
    assert pod.wraps((4, 4, 4)) == (True, True, True)
    assert pod.wraps((2, 4, 4)) == (False, False, False)
    assert (4, 4, 6) not in pod.slices()


def test_v5p_largest_slice():
    # Google Cloud documentation, TPU v5p: 8,960 chips in a pod, jobs of at most 96 cubes, 16x16x24
    pod = get_system("tpu-v5p-pod")
    assert pod.chips == 8960
    assert (16, 16, 24) in pod.slices()
    assert max(math.prod(shape) for shape in pod.slices()) == 96 * 64
    assert pod.scaleout.bytes_per_s == 50e9 / 8


def test_trn2_ultraserver():
    # AWS Neuron documentation, Trn2 architecture: 4x4 torus per instance, rings over four instances
    ultra = get_system("trn2-ultraserver")
    assert [tier.chips for tier in ultra.tiers] == [16, 64]
    assert [tier.bytes_per_s for tier in ultra.tiers] == [512e9, 128e9]
    assert ultra.slices() == ((4, 4), (4, 4, 4))
    assert ultra.wraps((4, 4, 4)) == (True, True, True)
    assert ultra.hosts == 4
    assert ultra.host.memory_bytes[1] == 2048 * GIB


def test_hgx_h100_is_eight_behind_nvswitch():
    # MLPerf system descriptions: NVLink Gen4 900 GB/s in both directions, eight ConnectX-7 of 400 Gb/s
    node = get_system("hgx-h100")
    (tier,) = node.tiers
    assert (tier.fabric, tier.chips, tier.bytes_per_s, tier.pairwise_bytes_per_s) == ("nvswitch", 8, 450e9, 450e9)
    assert node.scaleout.bytes_per_s == 400e9 / 8
    assert node.slices() == ((1,), (2,), (4,), (8,))


def test_mi300x_is_a_full_mesh():
    # AMD ROCm blog on RCCL and xGMI: seven links of 64 GB/s
    (tier,) = get_system("mi300x-platform").tiers
    assert (tier.fabric, tier.chips, tier.pairwise_bytes_per_s) == ("mesh", 8, 64e9)
    assert tier.bytes_per_s == 7 * tier.pairwise_bytes_per_s


def test_dgx_b200_power_and_memory():
    # NVIDIA DGX B200 user guide: 14.3 kW, 2 TB upgradable to 4
    dgx = get_system("dgx-b200")
    assert dgx.max_power_w == 14300
    assert dgx.host.memory_bytes == (2048 * GIB, 2048 * GIB, 4096 * GIB)
    assert dgx.provenance("max_power_W").grade == "datasheet"


def test_what_macos_keeps():
    mac = get_system("mac-m4-max")
    assert mac.memory_options_bytes == (36 * GIB, 48 * GIB, 64 * GIB, 128 * GIB)
    assert mac.reserved_bytes(64 * GIB) == 16 * GIB
    assert mac.reserved_bytes(32 * GIB) == pytest.approx(32 * GIB / 3, rel=1e-3)
    assert get_system("hgx-h100").reserved_bytes(80 * GIB) == 0


# what holds for all


def test_every_chip_on_the_market_has_a_system():
    assert [chip for chip in load_chips().market() if not systems_for(chip)] == []


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.id)
def test_bundled_system(system):
    chips = load_chips()
    assert system.figures
    for figure in system.figures:
        provenance = system.provenance(figure)
        assert provenance.sources
        assert not any("stas00" in source.ref for source in provenance.sources)
        if all(source.ref.startswith("general knowledge") for source in provenance.sources):
            assert provenance.grade == "assumed", figure
        else:
            assert all(source.date for source in provenance.sources if not source.ref.startswith("general"))
    for shape in system.slices():
        assert math.prod(shape) <= system.chips
        assert len(system.wraps(shape)) == len(shape)
        if chips[system.chip].kind == "tpu":
            assert len(shape) <= 3
    for tier in system.tiers:
        if tier.pairwise_bytes_per_s is not None and tier.bytes_per_s is not None:
            assert tier.pairwise_bytes_per_s <= tier.bytes_per_s
    if "rent" in system.offered:
        assert all(chips[name].rentable for name, _ in system.members)


def test_names():
    assert get_system(" DGX-H100 ").chip == "h100-sxm5-80gb"
    with pytest.raises(UnknownNameError, match="hgx-h100"):
        get_system("hgx-h10")
    with pytest.raises(UnknownNameError):
        systems_for("h101")
    assert {system.id for system in systems_for("trainium2")} == {"trn2", "trn2-ultraserver"}


def test_illegal_slice():
    with pytest.raises(UsageError, match="legal: 1x1, 2x2"):
        get_system("tpu-v5e-pod").wraps((3, 3))


# what users write


def test_a_users_machine_inherits_the_link_and_needs_no_source():
    system = read(box(max_power_W="2000"))
    assert system.tiers[0].inherited
    assert system.tiers[0].bytes_per_s == load_chips()["rtx-4090"].host.bytes_per_s
    assert system.provenance("max_power_W").grade == "assumed"
    assert system.provenance("max_power_W").sources[0].ref == "mine.toml"
    with pytest.raises(UnknownNameError, match="max_power_W"):
        system.provenance("power_W")


def test_a_mixed_machine():
    mixed = '[{ chip = "rtx-4090", count = 2 }, { chip = "rtx-3090", count = 1 }]'
    text = box(chip="", chips_per_host="", chips=mixed, tiers='[{ fabric = "pcie", chips = 3 }]')
    system = read(text)
    assert system.mixed
    assert system.members == (("rtx-4090", 2), ("rtx-3090", 1))
    assert (system.chip, system.chips_per_host) == ("rtx-4090", 3)
    slow = text.replace("rtx-4090", "rtx-5090").replace("rtx-3090", "t4")
    assert read(slow).tiers[0].bytes_per_s == load_chips()["t4"].host.bytes_per_s


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[my-box", "not valid TOML"),
        ("", "no systems"),
        ("[sources]\na = { date = '2026-01-01' }\n" + box(), "needs a ref"),
        (box(chips_per_hosts="4"), "did you mean chips_per_host"),
        (box(chip=""), "either chip or chips"),
        (box(chips_per_host="0"), "at least 1"),
        (box(chips_per_host="true"), "at least 1"),
        (box(max_power_W="-3"), "positive number"),
        (box(max_power_W="inf"), "positive number"),
        (box(form='"server-ish"'), "form must be one of"),
        (box(offered='["lease"]'), "rent, buy or both"),
        (box(tiers=""), "no tier"),
        (box(tiers="4"), "must be a list"),
        (box(tiers='[{ fabric = "pcie", chips = 2 }]'), "join only 2"),
        (box(tiers='[{ fabric = "pcie", chips = 6 }]'), "splits hosts"),
        (box(tiers='[{ fabric = "bridge", chips = 4 }, { fabric = "pcie", chips = 4 }]'), "does not nest"),
        (box(tiers='[{ fabric = "pcie", chips = 4, shape = [2, 2] }]'), "only a torus"),
        (box(tiers='[{ fabric = "pcie", chips = 4, slices = [[8]] }]'), "larger than"),
        (box(tiers='[{ fabric = "pcie", chips = 4, GB_per_s = 3 }]'), "did you mean"),
        (box(host_memory_GiB="[64, 32, 128]"), "least, typical and most"),
        (box(reserves="[{ share = 1.5 }]"), "more than the whole"),
        (box(scaleout_GBps="25"), "needs scaleout_kind"),
        (box(own='[{ figures = ["max_power"], grade = "assumed" }]'), "does not have"),
        (box(sources='["nowhere"]'), r"'nowhere' is not in .sources"),
        (box(chip='"rtx-4091"'), "did you mean rtx-4090"),
        (box(chip='"rubin-sxm"', offered='["rent"]'), "only announced"),
        ('["My Box"]\nchip = "rtx-4090"', "an id is made of"),
        (box(chip='"tpu-v5e"', tiers='[{ fabric = "torus2d", chips = 16, shape = [2, 4] }]'), "not 2 axes of 16"),
        (box(chip='"tpu-v5e"', tiers='[{ fabric = "torus3d", chips = 64, shape = [4, 4, 4] }]'), "forms a 2D torus"),
        (box(chip='"tpu-v4"', tiers='[{ fabric = "torus3d", chips = 256, shape = [4, 4, 4, 4] }]'), "not 3 axes"),
    ],
)
def test_broken_files_are_refused(text, message):
    with pytest.raises((UsageError, UnknownNameError), match=message):
        read(text)


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        ("2xrtx-4090,1xrtx-3090", (("rtx-4090", 2), ("rtx-3090", 1))),
        ("8xmi300x", (("mi300x", 8),)),
        ("rtx-4090", (("rtx-4090", 1),)),
        ("p5.48xlarge+epyc-9654", (("h100-sxm5-80gb", 8), ("epyc-9654", 1))),
        ("xeon-8480+", (("xeon-8480plus", 1),)),
        (" 2 x RTX-4090 , 1×rtx-4090", (("rtx-4090", 3),)),
    ],
)
def test_have(text, chips):
    assert parse_have(text) == chips


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", UsageError, "COUNTxCHIP"),
        ("2 rtx-4090", UsageError, "COUNTxCHIP"),
        ("2xrtx-4090,", UsageError, "COUNTxCHIP"),
        ("-1xrtx-4090", UsageError, "COUNTxCHIP"),
        ("0xrtx-4090", UsageError, "at least 1"),
        ("2xrtx-4091", UnknownNameError, "rtx-4090"),
    ],
)
def test_have_says_what_is_wrong(text, error, message):
    with pytest.raises(error, match=message):
        parse_have(text)
