"""Long recordings: what Transformers, faster-whisper and others call a batch is windows of one file."""

import pytest

import chipwise
from chipwise.errors import UsageError
from chipwise.report.media import MediaPlan

HOUR = {"audio_s": 3600.0}


def heard(chip: str, runtime: str, batch: int, model: str = "whisper-large-v2", **settings: float) -> MediaPlan:
    found = chipwise.estimate(
        model, chip=chip, runtime=runtime, batch=batch, precision="fp16", settings=HOUR | settings
    )
    (plan,) = found.plans
    return plan


@pytest.mark.parametrize("runtime", ["eager", "ctranslate2"])
def test_a_batch_of_windows_ends_a_recording_sooner(runtime: str) -> None:
    times = [heard("a100-sxm4-40gb", runtime, batch).latency_s.mid for batch in (1, 4, 16)]
    assert times[0] > 1.5 * times[1] > 2.0 * times[2]


def test_what_publications_measured() -> None:
    """13 minutes on an RTX 3070 Ti, large-v2, beams of 5, one and eight windows at a time: SYSTRAN/faster-whisper
    README, v1.1.0: 63 and 17 s; 150 minutes on an A100, one beam: Vaibhavs10/insanely-fast-whisper README: 563 s by
    faster-whisper, 98 s by Transformers with 24 windows of large-v3."""
    part = {"audio_s": 780.0, "beams": 5.0}
    assert heard("rtx-3070-ti", "ctranslate2", 1, **part).latency_s.mid == pytest.approx(63.0, rel=0.25)
    assert heard("rtx-3070-ti", "ctranslate2", 8, **part).latency_s.mid == pytest.approx(17.0, rel=0.25)
    long = {"audio_s": 9000.0}
    assert heard("a100-sxm4-80gb", "ctranslate2", 1, **long).latency_s.mid == pytest.approx(563.0, rel=0.25)
    many = heard("a100-sxm4-80gb", "eager", 24, "whisper-large-v3", **long)
    assert many.latency_s.mid == pytest.approx(98.0, rel=0.45)
    assert (many.batch, many.parts, many.samples) == (24, 450, 1)


def test_the_host_hears_and_chooses() -> None:
    for runtime in ("eager", "ctranslate2", "whisper.cpp", "openai-whisper"):
        assert heard("rtx-4090", runtime, 1).stages["sound"] > 0.0
    assert heard("rtx-4090", "openai-whisper", 1).memory_bytes > 1.5 * heard("rtx-4090", "eager", 1).memory_bytes


def test_a_lone_user_gets_windows_together() -> None:
    found = chipwise.plan("whisper-large-v3-turbo", task="local", chips=["rtx-4090"], settings=HOUR)
    assert found.plans[0].batch > 1
    assert "windows" in found.verdict()[0]


def test_software_of_whisper_runs_whisper() -> None:
    with pytest.raises(UsageError, match=r"whisper.cpp runs networks of whisper"):
        chipwise.estimate("wav2vec2-base", chip="rtx-4090", runtime="whisper.cpp")


def test_a_job_of_few_recordings_has_many_windows() -> None:
    found = chipwise.plan(
        "whisper-large-v3", task="batch", samples=10, batch=24, chips=["rtx-4090"], settings=HOUR, runtime="eager"
    )
    assert found.plans[0].batch == 24
