"""What machines print becomes chips of the catalogue: small prints of the tools' form, and all recordings beside the
checkout."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.catalog.chips import load_chips
from chipwise.catalog.snapshot import shipped_text
from chipwise.catalog.system import parse_have
from chipwise.errors import UsageError
from chipwise.measure.machine import TABLE, FoundMachine, MachineReport, machines_of, owned

TABLE_HEAD = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.65.06              Driver Version: 580.65.06      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
"""


def table(*gpus: tuple[str, str, str], mig: str = "N/A") -> str:
    """The table of nvidia-smi with GPUs by name, power cap and memory."""
    rows = [
        f"| {i:3}  {name:<26}  On  |   00000000:{i + 1:02X}:00.0 Off |                    0 |\n"
        f"| N/A   30C    P0             70W / {cap:>5} |       1MiB / {memory:>10} |      0%      Default |\n"
        f"|                                         |                        |{mig:>21} |\n"
        "+-----------------------------------------+------------------------+----------------------+"
        for i, (name, cap, memory) in enumerate(gpus)
    ]
    return TABLE_HEAD + "\n".join(rows) + "\n"


def one(*texts: str) -> FoundMachine:
    found = machines_of({str(i): text for i, text in enumerate(texts)})
    assert len(found.machines) == 1, found
    return found.machines[0]


def listed(*names: str) -> str:
    """What nvidia-smi -L prints."""
    return "\n".join(f"GPU {i}: {name} (UUID: GPU-{i:08d}-aaaa)" for i, name in enumerate(names))


def test_a_table_of_eight() -> None:
    found = one(table(*[("NVIDIA H200", "700W", "143771MiB")] * 8))
    assert (found.chip, found.count, found.differs, found.ambiguous) == ("h200-sxm-141gb", 8, (), ())
    assert found.memory_gb == pytest.approx(150.755, abs=1e-3)


def test_the_words_of_driver_610_and_the_narrow_table_of_450() -> None:
    new = table(("NVIDIA GeForce RTX 5090", "575W", "32607MiB")).replace("Driver Version:", "KMD Version:")
    assert one(new).chip == "rtx-5090"
    assert machines_of({"a": new}).software["NVIDIA driver"] == "580.65.06"
    old = "|   0  Tesla T4            On   | 00000000:00:1E.0 Off |                    0 |\n"
    old += "| N/A   34C    P8     9W /  70W |      0MiB / 15109MiB |      0%      Default |\n"
    assert one(old).chip == "t4"


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("NVIDIA GeForce RTX 4090 D", "rtx-4090d"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx-4090-laptop"),
        ("NVIDIA GeForce RTX 4080 SUPER", "rtx-4080-super"),
        ("NVIDIA H20", "h20-96gb"),
        ("NVIDIA H800", "h800-sxm5"),
        ("NVIDIA A800 80GB PCIe", "a800-pcie-80gb"),
        ("NVIDIA A100-SXM-64GB", None),
        ("NVIDIA GeForce RTX 2070 with Max-Q Design", None),
        ("NVIDIA GeForce RTX 4090 M", None),
        ("GRID T4-4C", None),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", None),
        ("Quadro RTX 4000", "quadro-rtx-4000"),
        ("Quadro RTX 6000", "quadro-rtx-6000"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "rtx-4000-sff-ada"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q"),
    ],
)
def test_a_near_name_is_no_match(name: str, chip: str | None) -> None:
    found = one(listed(name))
    assert found.chip == chip
    assert chip or found.nearest or found.ambiguous


def test_amd_near_names_and_numbers() -> None:
    def row(name: str, part: str, memory: int) -> str:
        return f"device,VRAM Total Memory (B),Card Series,Card Model\ncard0,{memory},{name},{part}\n"

    assert one(row("Radeon RX 7900 XT", "0x744c", 21_458_059_264)).chip == "rx-7900-xt"
    assert one(row("AMD Instinct MI308X", "0x74a2", 206_141_652_992)).chip == "mi308x"
    assert one(row("N/A", "0x744c", 25_753_026_560)).chip == "rx-7900-xtx"  # the size tells


def test_memory_tells_chips_of_one_name_apart_and_another_product() -> None:
    assert one(table(("NVIDIA GeForce RTX 3080", "320W", "12288MiB"))).chip == "rtx-3080-12gb"
    assert set(one(listed("NVIDIA GeForce RTX 3080")).ambiguous) == {"rtx-3080-10gb", "rtx-3080-12gb"}
    forged = one(table(("NVIDIA GeForce RTX 4090", "450W", "49140MiB")))
    assert forged.chip is None
    assert "48 GiB" in forged.why
    assert "rtx-4090" in forged.nearest


def test_a_name_cut_by_the_table_asks_unless_another_print_has_it() -> None:
    cut = table(("NVIDIA GeForce GTX 1650 ...", "75W", "4096MiB"))
    assert one(cut).chip is None
    assert "gtx-1650" in one(cut).ambiguous
    assert one(cut, listed("NVIDIA GeForce GTX 1650 SUPER")).chip == "gtx-1650-super"
    assert one(table(("NVIDIA RTX 6000 Ada Gene...", "300W", "49140MiB"))).chip == "rtx-6000-ada"


def test_what_differs_names_the_gpus() -> None:
    found = one(table(("NVIDIA GeForce RTX 3090", "250W", "24576MiB"), ("NVIDIA GeForce RTX 3090", "350W", "24576MiB")))
    assert "GPU 0: power cap 250 W, rated 350 W" in found.differs
    assert found.count == found.whole == 2


def test_mig_counts_whole_gpus_only() -> None:
    texts = {"L": listed("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3").replace(
        "\nGPU 1", "\n  MIG 3g.40gb     Device  0: (UUID: MIG-1)\nGPU 1")}  # fmt: skip
    found = machines_of(texts)
    assert found.machines[0].count == 2
    assert found.have == "1xh100-sxm5-80gb"
    assert found.machines[0].differs == ("GPU 0: MIG is on: 3g.40gb",)
    empty = machines_of({"t": table(("A100-SXM4-40GB", "400W", "40537MiB"), mig="Enabled")})
    assert empty.have is None
    with pytest.raises(UsageError, match="split by MIG"):
        owned(empty)


def test_xml_shows_one_gpu_of_four_and_the_slices_of_it() -> None:
    xml = """<nvidia_smi_log>
    <attached_gpus>4</attached_gpus>
    <gpu id="00000000:01:00.0">
        <product_name>NVIDIA A100-SXM4-80GB</product_name>
        <mig_mode>
            <current_mig>Enabled</current_mig>
        </mig_mode>
        <mig_devices>
            <mig_device>
                <fb_memory_usage>
                    <total>19968 MiB</total>
                </fb_memory_usage>
            </mig_device>
        </mig_devices>
        <fb_memory_usage>
            <total>81920 MiB</total>
        </fb_memory_usage>
        <gpu_power_readings>
            <current_power_limit>500.00 W</current_power_limit>
        </gpu_power_readings>
    </gpu>"""
    found = one(xml)
    assert (found.chip, found.count, found.whole) == ("a100-sxm4-80gb", 4, 3)
    assert found.memory_gb == pytest.approx(85.899, abs=1e-3)
    assert "GPU 0: power cap 500 W, rated 400 W" in found.differs


def test_a_topology_alone_asks_and_says_which_gpu_is_cut_off() -> None:
    text = "GPU0\t X \tNV18\tSYS\t0-31\nGPU1\tNV18\t X \tSYS\t0-31\nGPU2\tSYS\tSYS\t X \t0-31\n"
    found = one(text)
    assert found.chip is None
    assert found.count == 3
    assert "b200-sxm" in found.ambiguous
    known = one(text, listed(*["NVIDIA B200"] * 3))
    assert known.chip == "b200-sxm"
    assert "GPU 2 has no NVLink to any other" in known.differs


def test_dies_and_partitions_are_counted_as_packages() -> None:
    def agent(number: int, kind: str, name: str, units: int, pool: int) -> str:
        return (
            f"*******\nAgent {number}\n*******\n  Name:                    {'gfx90a' if kind == 'GPU' else name}\n"
            f"  Marketing Name:          {name}\n  Vendor Name:             {'AMD' if kind == 'GPU' else 'CPU'}\n"
            f"  Device Type:             {kind}\n  Compute Unit:            {units}\n"
            f"  Pool Info:\n    Pool 1\n      Size:                    {pool}(0x0) KB\n"
        )

    cpu = agent(1, "CPU", "AMD EPYC 7742 64-Core Processor", 64, 131842964)
    dies = [agent(i, "GPU", "AMD Instinct MI250X/MI250", 104, 67092480) for i in (2, 3, 4, 5)]
    found = one("HSA Agents\n" + cpu + "".join(dies))
    assert (found.chip, found.count) == ("mi250", 2)  # 104 units a die, four dies
    rocm_smi = '{"card0": {"Card Series": "AMD Instinct MI300X", "VRAM Total Memory (B)": "206141652992"}}'
    rocminfo = "HSA Agents\n" + cpu + agent(2, "GPU", "AMD Instinct MI300X", 304, 201310208)
    assert one(rocm_smi, rocminfo).count == 1  # agents of CPUs shift no number
    static = "".join(
        f"GPU: {i}\n    ASIC:\n        MARKET_NAME: AMD Instinct MI300X\n    PARTITION:\n"
        f"        COMPUTE_PARTITION: CPX\n        MEMORY_PARTITION: NPS1\n"
        for i in range(16)
    )
    split = one(static)
    assert split.count == 2
    assert "partitioned as CPX/NPS1" in split.differs


@pytest.mark.parametrize(
    ("kind", "chip", "count"),
    [("v4-32", "tpu-v4", 16), ("v5litepod-8", "tpu-v5e", 8), ("v6e-16", "tpu-v6e", 16), ("v5p-8", "tpu-v5p", 4)],
)
def test_what_the_number_of_a_tpu_slice_counts(kind: str, chip: str, count: int) -> None:
    found = one(f"ACCELERATOR_TYPE: '{kind}'\nWORKER_ID: '0'\n")
    assert (found.chip, found.count) == (chip, count)


def test_jax_devices() -> None:
    two = "[TpuDevice(id=0, process_index=0, coords=(0,0,0), core_on_chip=0), "
    two += "TpuDevice(id=1, process_index=0, coords=(0,0,0), core_on_chip=1)]\ndevice_kind: TPU v3"
    assert (one(two).chip, one(two).count) == ("tpu-v3", 1)  # two cores on one chip
    assert set(one(two.partition("\n")[0].replace("(0,0,0)", "(0,0,1)")).ambiguous) == {"tpu-v4", "tpu-v5p"}


def test_neuron_asks_where_cores_and_memory_leave_two() -> None:
    row = "| NEURON |\n| 0      | 2      | 32 GB  | 00:1e.0 |\n"
    assert set(one(row).ambiguous) == {"inferentia2", "trainium1"}
    assert one("instance-type: trn1.2xlarge\n" + row).chip == "trainium1"
    conflict = one("instance-type: trn2.48xlarge\n" + row)
    assert conflict.chip is None
    assert conflict.ambiguous[0] == "trainium2"
    assert "instance type" in conflict.why


def test_apple_counts_cores_and_infers_memory() -> None:
    overview = "      Chip: Apple M4 Pro\n      Total Number of Cores: 12 (8 performance and 4 efficiency)\n"
    overview += "      Memory: 24 GB\n"
    displays = "    Apple M4 Pro:\n      Chipset Model: Apple M4 Pro\n      Total Number of Cores: 16\n"
    found = one("      Model Identifier: Mac16,8\n" + overview + displays)
    assert (found.chip, found.variant) == ("m4-pro", "m4-pro-16c:24gb")
    assert any("16 GPU cores" in text for text in found.differs)
    metal = one("ggml_metal_init: found device: Apple M1\nggml_metal_init: recommendedMaxWorkingSetSize  =  5726.63 MB")
    assert metal.variant == "m1:8gb"


def test_unified_memory_is_the_hosts() -> None:
    found = one("0, NVIDIA GB10, [N/A], [N/A], [N/A]\n", "MemTotal:       127600748 kB\n")
    assert found.chip == "gb10-dgx-spark"
    assert found.memory_gb == pytest.approx(130.66, abs=0.01)
    assert set(one("|   0  Orin (nvgpu)        N/A  | N/A              N/A |                  N/A |\n").ambiguous) >= {
        "jetson-agx-orin-64",
        "jetson-agx-orin-32",
    }


def test_cpus_alone_are_counted_in_sockets() -> None:
    text = "Vendor ID: AuthenticAMD\n  Model name: AMD EPYC 9374F 32-Core Processor\n    Core(s) per socket: 32\n"
    text += "    Socket(s): 2\n    Flags: fpu avx2 avx512f\nHypervisor vendor: KVM\n"
    found = machines_of({"lscpu": text})
    assert found.have == "2xepyc-9374f"
    assert found.host.simd == ("avx512f", "avx2")
    assert "in a virtual machine (KVM)" in found.machines[0].differs


def test_a_name_that_a_cloud_masked_is_told_by_the_design() -> None:
    text = "Vendor ID: AuthenticAMD\nModel name: {}\nCPU family: {}\nModel: {}\nSocket(s): 1\n"
    turin = one(text.format("AMD EPYC", 26, 2))
    assert turin.chip is None
    assert {"epyc-9755", "epyc-9655"} <= set(turin.ambiguous)
    assert turin.why == "its name hides which"
    with pytest.raises(UsageError, match="which can be epyc-9755"):
        owned(machines_of({"lscpu": text.format("AMD EPYC", 26, 2)}))
    own = one(text.format("AMD EPYC 7B13", 25, 1))  # a cloud's own part: another product, near to those of its design
    assert (own.chip, own.ambiguous, own.nearest) == (None, (), ("epyc-7763", "epyc-7543"))
    proc = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.70GHz\n"
    assert "xeon-8490h" in one(proc).ambiguous
    assert one(text.format("AMD EPYC 9654 96-Core Processor", 25, 17)).chip == "epyc-9654"
    assert one(text.format("QEMU Virtual CPU version 2.5+", 15, 107)).ambiguous == ()


def test_a_gpu_hides_the_cpu_and_a_tool_the_number() -> None:
    cpu = "Model name: AMD EPYC 9374F 32-Core Processor\nSocket(s): 2\n"
    pci = "01:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2335] (rev a1)\n"
    assert one(cpu, pci).chip == "h200-sxm-141gb"
    assert one(cpu, pci, listed("NVIDIA H200")).count == 1


def test_integrated_graphics_stand_back_behind_a_card() -> None:
    both = "HSA Agents\nAgent 2\n  Marketing Name: AMD Radeon 780M Graphics\n  Device Type: GPU\n"
    card = "Agent 3\n  Marketing Name: AMD Radeon RX 7900 XTX\n  Device Type: GPU\n"
    assert machines_of({"rocminfo": both + card}).have == "1xrx-7900-xtx"
    assert machines_of({"rocminfo": both}).have is None  # a laptop's or a desktop's: to be asked


def test_one_unknown_device_hides_no_known_one() -> None:
    found = machines_of({"L": listed("NVIDIA GeForce RTX 4090", "NVIDIA GeForce GT 710")})
    assert [m.chip for m in found.machines] == ["rtx-4090", None]
    assert found.have == "1xrtx-4090"


def test_errors_of_tools_are_said_with_the_next_step() -> None:
    found = machines_of({"smi": "Failed to initialize NVML: Driver/library version mismatch\n"})
    assert not found.machines
    assert "reboot" in found.problems[0]
    with pytest.raises(UsageError, match="no device was found"):
        owned(found)
    assert machines_of({"x": "hello"}).problems == ("nothing was recognised in what was read",)


def test_a_report_holds_nothing_that_names_a_machine_or_person() -> None:
    text = (
        listed("NVIDIA L4") + "\nSerial Number: 1562720003711\nHostname: alices-box\ninstance-id: i-0123456789abcdef0\n"
    )
    shown = repr(machines_of({"gpu.txt": text}))
    for secret in ("GPU-00000000", "1562720003711", "alices-box", "i-0123456789abcdef0"):
        assert secret not in shown


def test_every_chip_of_the_table_of_names_is_in_the_catalogue() -> None:
    import tomllib

    chips = load_chips()
    named: set[str] = set()
    content = tomllib.loads(shipped_text(TABLE))
    for part in ("names", "pci", "mig", "nvlink", "grid"):
        named |= {chip for row in content[part].values() for chip in row}
    for part in ("tpu", "instances"):
        named |= {row["chip"] for row in content[part].values()}
    for part in ("neuron", "jetson"):
        named |= {chip for row in content[part] for chip in row["chips"]}
    assert named <= set(chips), named - set(chips)


# recordings of real machines, where they are at hand


def recordings(truth: Path) -> list[tuple[dict[str, str], MachineReport]]:
    folder = truth / "machines"
    with (folder / "INDEX.csv").open() as index, (folder / "INDEX_EXTRA.csv").open() as extra:
        more = {row["dir"]: row for row in csv.DictReader(extra)}
        rows = [{**row, **more[row["dir"]]} for row in csv.DictReader(index)]
    return [
        (row, machines_of({f.name: f.read_text() for f in sorted((folder / row["dir"]).iterdir())})) for row in rows
    ]


def test_recorded_machines_are_mapped(truth: Path) -> None:
    found = recordings(truth)
    expected = [(row, report) for row, report in found if row["expected_chip"] and row["chip_name_printed"] == "yes"]
    right = [row["dir"] for row, report in expected if row["expected_chip"] in {m.chip for m in report.machines}]
    missed = [row["dir"] for row, _ in expected if row["dir"] not in right]
    assert len(expected) > 90
    assert len(right) / len(expected) >= 0.95, missed
    for row, report in found:
        chips = {m.chip for m in report.machines} - {None}
        open_ = [m for m in report.machines if m.chip is None]
        if row["expected_chip"]:
            # what is not mapped is asked about or said to be unknown: never another chip
            assert row["expected_chip"] in chips or not chips, row["dir"]
        if row["expected_outcome"] == "ask":
            assert not chips, row["dir"]
            assert all(m.ambiguous for m in open_), row["dir"]
        if row["expected_outcome"] == "error":
            assert not report.machines, row["dir"]
            assert report.problems, row["dir"]
        assert all(m.ambiguous or m.why for m in open_), row["dir"]
        if report.have:
            assert parse_have(report.have)


def test_recorded_near_names_are_no_chip_that_they_resemble(truth: Path) -> None:
    """Of machines whose chip the first catalogue lacked, none may be taken for one that it had."""
    found = recordings(truth)
    first = {row["expected_chip"] for row, _ in found} - {""}
    allowed = {"164-radeonvii-metal"}
    wrong = {
        row["dir"]: chips
        for row, report in found
        if row["expected_outcome"] == "not-in-catalogue" and row["dir"] not in allowed
        if (chips := {m.chip for m in report.machines} & first)
    }
    assert not wrong


def test_recorded_counts(truth: Path) -> None:
    for row, report in recordings(truth):
        # four cards stand in the print of 47-mi100, whose index says one; two of four GPUs in 75 and one of two in 139
        if row["expected_chip"] and row["count"].isdigit() and row["dir"] not in ("47-mi100", "139-grid-t4-host"):
            for machine in report.machines:
                whole = row["expected_outcome"] == "chip" and row["chip_name_printed"] == "yes"
                if whole and machine.chip and row["dir"] != "92-b200x8-trtllm":
                    assert machine.count == int(row["count"]), row["dir"]


# texts that are no print, or parts of one

PRINTS = (
    table(("NVIDIA H200", "700W", "143771MiB"), ("NVIDIA H200", "700W", "143771MiB"), mig="Enabled"),
    listed("NVIDIA H100 80GB HBM3") + "\n  MIG 3g.40gb     Device  0: (UUID: MIG-1)\n",
    '{"card0": {"Card Series": "AMD Instinct MI300X", "VRAM Total Memory (B)": "206141652992"}}',
    "instance-type: trn1.2xlarge\n| NEURON |\n| 0      | 2      | 32 GB  | 00:1e.0 |\n",
    "GPU0\t X \tNV18\tSYS\t0-31\nGPU1\tNV18\t X \tSYS\t0-31\n",
    "Memory Device\n\tSize: 16 GB\n\tSpeed: 4800 MT/s\n\tConfigured Memory Speed: 6000 MT/s\n",
    "HSA Agents\nAgent 2\n  Marketing Name: AMD Instinct MI250X/MI250\n  Device Type: GPU\n  Compute Unit: 104\n",
    "ACCELERATOR_TYPE: 'v4-32'\n[TpuDevice(id=0, coords=(0,0,0), core_on_chip=0)]",
    "index, name, memory.total [MiB], power.limit [W]\n0, NVIDIA L40S, 46068 MiB, 350.00 W\n",
)


def answered(found: MachineReport) -> bool:
    """Whether `--have auto` would name chips that exist, or say what to do."""
    try:
        return bool(parse_have(owned(found)))
    except UsageError as error:
        return bool(error.hint)


@settings(max_examples=300)
@given(st.data())
def test_no_text_is_a_crash(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(PRINTS)) + data.draw(st.sampled_from(("", *PRINTS)))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    text = text[start:end]
    for _ in range(data.draw(st.integers(0, 6))):
        place = data.draw(st.integers(0, len(text)))
        put = data.draw(
            st.text(max_size=4) | st.sampled_from(("|", ":", "{", "\n", "GPU 0: ", "9" * 40, "N/A", " " * 300))
        )
        text = text[:place] + put + text[place + data.draw(st.integers(0, 3)) :]
    found = machines_of({"text": text})
    assert all(machine.count >= 1 for machine in found.machines)
    assert answered(found)


@settings(max_examples=150)
@given(st.data())
def test_no_part_of_a_recording_is_a_crash(truth: Path, data: st.DataObject) -> None:
    folder = truth / "machines"
    files = sorted(folder.glob("*/*.txt"))
    text = data.draw(st.sampled_from(files)).read_text()[:40_000]
    start = data.draw(st.integers(0, len(text)))
    text = text[start : data.draw(st.integers(start, len(text)))]
    place = data.draw(st.integers(0, len(text)))
    text = text[:place] + data.draw(st.text(max_size=8)) + text[place:]
    assert answered(machines_of({"text": text}))
