"""Several batches that are priced as one are what each is alone."""

from __future__ import annotations

import pytest

from chipwise.api.media_asked import Sampling
from chipwise.api.media_work import Place
from chipwise.api.placing import Terms
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.parallel.layout import ONE, Spread
from chipwise.predict.pipeline import Known, price_ahead, stage_times


@pytest.mark.parametrize("spread", [ONE, Spread(cfg=2, ulysses=2), Spread(dp=2)])
@pytest.mark.parametrize("chip", ["h100-sxm5-80gb", "tpu-v5e", "xeon-8480plus", "qaic100-std"])
@pytest.mark.parametrize("model", ["sdxl", "resnet50", "whisper-large-v3"])
def test_batches_that_are_priced_as_one_take_what_each_takes_alone(model: str, chip: str, spread: Spread) -> None:
    terms = Terms()
    place = Place.of(load_chips()[chip], terms, shipped_parameters())
    batches = [place.pipeline(model, terms, Sampling(batch=n)) for n in (1, 2, 4, 8)]
    known: Known = {}
    # with other ways to share, as a search prices them
    price_ahead(
        [(pipeline, s) for pipeline in batches for s in (spread, ONE, Spread(ulysses=4))], [(place.hardware, known)]
    )
    assert known
    for pipeline in batches:
        ahead = stage_times(pipeline, place.hardware, spread, known=known)
        alone = stage_times(pipeline, place.hardware, spread)
        for mine, its in zip(ahead, alone, strict=True):
            assert mine.parts.keys() == its.parts.keys()
            for part in its.parts:
                assert mine.of(part) == pytest.approx(its.of(part), rel=1e-12)
            assert mine.launches == its.launches
