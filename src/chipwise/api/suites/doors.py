"""The door of all suites to their rows: `predict SUITE` answers them."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.api.suites.counted import KV_CACHE, MODEL_PARAMS, SYSTOLIC
from chipwise.api.suites.energy import ENERGY
from chipwise.api.suites.kernels import KERNELS
from chipwise.api.suites.local import LOCAL_SPEEDS
from chipwise.api.suites.media import MEDIA
from chipwise.api.suites.mlperf_folds import MLPERF
from chipwise.api.suites.published import PUBLISHED
from chipwise.api.suites.serving import SERVING
from chipwise.api.suites.speeds import TOKEN_SPEEDS
from chipwise.api.suites.suite import Suite
from chipwise.api.suites.training_folds import MLPERF_TRAINING, TRAINING
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.files import output_file
from chipwise.errors import UsageError, check_known
from chipwise.evidence.rows import write_commands, write_predictions

SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        MODEL_PARAMS,
        KV_CACHE,
        SYSTOLIC,
        KERNELS,
        MLPERF,
        PUBLISHED,
        SERVING,
        TOKEN_SPEEDS,
        LOCAL_SPEEDS,
        TRAINING,
        MLPERF_TRAINING,
        ENERGY,
        MEDIA,
    )
}


def predict_suite(
    suite: str,
    rows: str,
    out: str,
    anchors: str | None = None,
    parameters: Parameters | None = None,
    commands: str | None = None,
) -> tuple[int, int]:
    """Predict every row of a suite into a CSV; returns (lines written, rows refused).

    `anchors` names measured rows that the user owns; `parameters` replace the shipped ones; `commands` names a CSV
    for the command line of each answered row that gives the same figures. A row that cannot be answered becomes a
    line with the reason. Raises `UnknownNameError` for an unknown suite, `UsageError` for unreadable rows.
    """
    check_known("suite", (suite,), SUITES)
    asked = SUITES[suite]
    output_file(out, rows, anchors)  # before the work is done
    if commands is not None:
        output_file(commands, rows, anchors)
    for given, able, lacks, option in (
        (commands, "commanded", "has no command lines", "--commands is for {}"),
        (anchors, "anchored", "takes no anchors", "--anchors is for {}"),
        (parameters, "priced", "takes no parameters here", "--parameters is for {}, without anchors"),
    ):
        both = given is parameters and anchors is not None
        if given is not None and (both or not getattr(asked, able)):
            suites = ", ".join(name for name, s in SUITES.items() if getattr(s, able))
            raise UsageError(f"{suite} {lacks}", option.format(suites))
    answers = asked.predict(rows, parameters, anchors, commands=commands is not None)
    written = write_predictions(answers, out)
    if commands is not None:
        write_commands(answers, commands)
    return written, sum(1 for a in answers if a.refused)
