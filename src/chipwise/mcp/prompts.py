"""What people ask agents for, as prompts that a client offers: each names the calls that answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp.types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from chipwise.errors import UnknownNameError, UsageError, check_known

MOST_CHARS = 400
"""Characters of an argument."""


@dataclass(frozen=True, slots=True)
class PromptField:
    """A prompt: its title, what it is for, its arguments (name, meaning, what stands for it if it is left out; None: it
    is needed), and the text."""

    title: str
    use: str
    arguments: tuple[tuple[str, str, str | None], ...]
    text: str


PROMPTS: Mapping[str, PromptField] = {
    "plan-my-model": PromptField(
        "Plan my model",
        "Which chips to rent for a model and its users.",
        (
            ("model", "the model's name, or its config.json", None),
            ("users", "how many users at once, or requests per second", "10 requests per second"),
            ("target", "what they may wait", "40 ms per token"),
        ),
        "Which hardware should I rent to serve {model} for {users} with {target}? Call `plan` with the rate "
        "that follows "
        "from the users (users / (first token + output tokens x time per token)). If the model is unknown, look "
        "it up with "
        "`models`. Say the first plan with its interval, its basis, what it ties with, the range of its price with the "
        "date, and the assumptions that matter. Call `match` for it: what was measured near it? Offer `launch`.",
    ),
    "review-this-benchmark-claim": PromptField(
        "Review this benchmark claim",
        "Whether a statement or a benchmark lead is a reason to choose a chip.",
        (
            ("claim", "what was said, or the id of a result", None),
            ("model", "the model that you will run", "the model that I will run"),
        ),
        "Somebody says: {claim}. Does it matter for {model}? First `check_statement` with the sentence. If it cites a "
        "measurement, find its id with `evidence`, then `claim` with the id and the model, and say whether the "
        "axes support "
        "it, on which they differ, and what turns it. Say what was measured and what is predicted.",
    ),
    "right-size-my-cluster": PromptField(
        "Right-size my cluster",
        "Whether the chips that one has are too many, too few, or laid out badly.",
        (
            ("model", "the model that runs", None),
            ("have", "the chips that you have, e.g. 8xh100", None),
            ("load", "requests per second, and their lengths", "the load that I have"),
        ),
        "I run {model} on {have} at {load}. Is that the right size? Call `estimate` or `explain` for what runs "
        "now, then "
        "`plan` with `have`, and `plan` without it for what would be bought today. Say the headroom, what "
        "bounds it, the "
        "smallest plan that meets the same targets, and what it would save, with intervals.",
    ),
}


def listed_prompts() -> list[Prompt]:
    """The prompts as the protocol lists them."""
    return [
        Prompt(
            name=name,
            title=asking.title,
            description=asking.use,
            arguments=[
                PromptArgument(name=a, description=said, required=default is None)
                for a, said, default in asking.arguments
            ],
        )
        for name, asking in PROMPTS.items()
    ]


def prompted(name: str, given: Mapping[str, str]) -> GetPromptResult:
    """A prompt with its arguments. Raises `UnknownNameError` for another name, `UsageError` for an argument that is
    missing, unknown or too long."""
    check_known("prompt", (name,), PROMPTS)
    asking = PROMPTS[name]
    known = {a: default for a, _, default in asking.arguments}
    for argument, value in given.items():
        if argument not in known:
            raise UnknownNameError(f"argument of {name}", argument, known, f"it has {', '.join(known)}")
        if len(value) > MOST_CHARS:
            raise UsageError(
                f"{argument}: {len(value):,} characters", f"at most {MOST_CHARS}", field=argument
            )
    missing = [a for a, default in known.items() if default is None and not given.get(a)]
    if missing:
        raise UsageError(f"{name} needs '{missing[0]}'", field=missing[0])
    text = asking.text.format(
        **{a: " ".join((given.get(a) or default or "").split()) for a, default in known.items()}
    )
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=asking.use, messages=[message])
