"""What each page shows."""

from chipwise.web.views.chips import CHIPS
from chipwise.web.views.evidence import CLAIM, MATCH
from chipwise.web.views.inside import EXPLAIN, FRONTIER, LAUNCH, LOAD, OPERATORS, SENSITIVITY
from chipwise.web.views.plan import COMPARE, PLAN
from chipwise.web.views.tables import FIT, FLEET, KERNEL, LOCAL, STATEMENTS
from chipwise.web.views.train import RL, TRAIN
from chipwise.web.views.view import View

__all__ = ["SHEETS", "VIEWS", "View"]

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
        MATCH,
        STATEMENTS,
        CHIPS,
        OPERATORS,
        SENSITIVITY,
        LOAD,
        LAUNCH,
        CLAIM,
    )
}
"""All views by verb, in the order of the navigation."""
SHEETS: dict[str, View] = {verb: view for verb, view in (VIEWS | {"fleet": FLEET}).items() if view.tab}
"""Views that are written as a page of their own. A fleet is a file, which no form here takes."""
