"""What each page shows."""

from chipwise.web.views.chips import PARTS
from chipwise.web.views.evidence import CLAIM, MATCH, RESULTS
from chipwise.web.views.inside import EXPLAIN, FRONTIER, LAUNCH, LOAD, OPERATORS, SENSITIVITY, SIMULATE
from chipwise.web.views.plan import COMPARE, PLAN
from chipwise.web.views.tables import FIT, FLEET, KERNEL, LOCAL, STATEMENTS
from chipwise.web.views.train import RL, TRAIN
from chipwise.web.views.view import GROUPS, View

__all__ = ["NAVIGATION", "SHEETS", "VIEWS", "View"]

VIEWS: dict[str, View] = {
    view.verb: view
    for view in (
        PLAN,
        EXPLAIN,
        COMPARE,
        FRONTIER,
        FIT,
        LOCAL,
        TRAIN,
        RL,
        KERNEL,
        SIMULATE,
        MATCH,
        RESULTS,
        STATEMENTS,
        *PARTS,
        OPERATORS,
        SENSITIVITY,
        LOAD,
        LAUNCH,
        CLAIM,
    )
}
"""All views by verb, in the order of the navigation."""
NAVIGATION = {title: [v for v in VIEWS.values() if v.tab and v.group == title] for title in GROUPS}
"""The views that a page leads to, by group."""
SHEETS: dict[str, View] = {verb: view for verb, view in (VIEWS | {"fleet": FLEET}).items() if view.tab}
"""Views that are written as a page of their own. A fleet is a file, which no form here takes."""
