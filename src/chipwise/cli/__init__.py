"""The command line: parse, call the api, render. Nothing else happens here."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import shlex
import sys
from collections.abc import Collection, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

from chipwise.errors import ChipwiseError, shorten
from chipwise.report.terminal import EXPLAINED, tell, width_of

if TYPE_CHECKING:
    from cyclopts import App, Argument
    from cyclopts.exceptions import CycloptsError


__all__ = ["main"]

GARBAGE = 200_000
"""New objects after which some are looked through: more than most commands make."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 ok, 1 bug, 2 usage, 3 unknown name, 4 infeasible, 5 missing extra."""
    # looking through all modules and tables for garbage, again and again, takes a tenth of a command's time
    gc.set_threshold(GARBAGE)
    from cyclopts.exceptions import CycloptsError, UnusedCliTokensError

    from chipwise.cli.app import app

    _open_streams()
    tokens = _with_negatives(_as_options(list(sys.argv[1:] if arguments is None else arguments)))
    EXPLAINED.set(EVERYTHING in tokens)
    tokens = ["--help" if token == EVERYTHING else token for token in tokens]
    try:
        app(tokens, exit_on_error=False, print_error=False, **_help_console(tokens))
        sys.stdout.flush()
    except ChipwiseError as error:
        _correct(error, tokens)
        if _json_asked(tokens) and not getattr(error, "answered", False):
            _answer(error)
        _complain(str(error))
        sys.exit(error.exit_code)
    except CycloptsError as error:
        _complain(_misread(error, tokens, app, unread=isinstance(error, UnusedCliTokensError)))
        sys.exit(2)
    except BrokenPipeError:
        # the reader has gone (`chipwise plan ... | head`): nothing more to say, and nothing to flush
        _drop_output()
        sys.exit(0)
    except OSError as error:
        _complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
        _drop_output()
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()  # or the interpreter looks through all of it for garbage, for a quarter of a second, as it ends
    sys.exit(0)


EVERYTHING = "--help-all"
"""Asks for help with all options explained."""


def _help_console(tokens: Sequence[str]) -> dict[str, Any]:
    """Where help is printed: as wide as tables are."""
    if tokens and not {"--help", "-h"} & set(tokens):
        return {}
    from rich.console import Console

    return {"console": Console(width=width_of())}


def _open_streams() -> None:
    """Streams that were closed (`>&-`) lead nowhere, instead of into the next file that is opened; a pipe that cannot
    carry a sign gets another, instead of a crash."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _as_options(tokens: list[str]) -> list[str]:
    """`chipwise help plan` and `chipwise version` as the options that they are here."""
    if tokens[:1] == ["help"]:
        return [*tokens[1:], "--help"]
    return ["--version"] if tokens == ["version"] else tokens


def _with_negatives(tokens: Sequence[str]) -> list[str]:
    """Tokens with a negative quantity (`--tokens -5B`) joined to its option, or it would be read as an option."""
    joined: list[str] = []
    for token in tokens:
        value = re.match(r"-\.?\d", token) is not None
        if value and joined and joined[-1].startswith("--") and "=" not in joined[-1]:
            joined[-1] += f"={token}"
        else:
            joined.append(token)
    return joined


OF_MODELS = frozenset(("plan", "estimate", "explain", "fit", "compare", "train"))
"""Commands whose first value is the name of a model."""


ALIKE = (
    ("--chips", "--chip", "--have", "--gpu", "--gpus", "--device", "--accelerator", "--hardware"),
    ("--rate", "--qps", "--rps", "--load", "--request-rate"),
    ("--concurrency", "--users", "--batch-size", "--max-concurrency"),
    ("--in", "--input", "--input-tokens", "--prompt-tokens", "--isl", "--input-len"),
    ("--out", "--output", "--output-tokens", "--osl", "--output-len", "--max-tokens"),
    ("--prefix-hit", "--cached", "--cache-hit", "--hit-rate", "--prefix-cache"),
    ("--deadline", "--within", "--until"),
    ("--max-usd-per-h", "--max-usd", "--budget", "--max-cost", "--max-price"),
    ("--precision", "--quantization", "--quant", "--dtype", "--weights"),
    ("--runtime", "--engine", "--backend", "--framework", "--server"),
    ("--provider", "--cloud", "--vendor"),
    ("--price", "--tenancy", "--market"),
    ("--images", "--image", "--pictures"),
    ("--use", "--for", "--purpose"),
    ("--context", "--ctx", "--max-model-len", "--context-length"),
)
"""How people call an option: a command takes the first of a line that it has."""


STATEMENTS = ("check-statement", "statement", "fact-check")
"""What other doors and readers call `claim check`."""


def _misread(error: CycloptsError, tokens: Sequence[str], app: App, *, unread: bool) -> str:
    """That words stand behind no option (`unread`), or an option is none, and what was meant where that can be told: an
    unknown one that is a word of another (`--spot`) is that other (`--price spot`)."""
    unknown = getattr(error, "token", None)
    if unread:
        what = f"no option stands before '{' '.join(getattr(error, 'unused_tokens', ()))[:80]}'"
        return f"{what} ({_quoted(tokens)}chipwise {tokens[0]} --help)"
    option = (unknown and unknown.keyword) or ""
    command, every = _command(app, tokens)
    line = _corrected(tokens, option, every)
    if line:
        return line
    if tokens and tokens[0].replace("_", "-") in STATEMENTS:
        return f"unknown command {tokens[0]}: {_line(['claim', 'check', *tokens[1:]])}"
    if command == "claim" and len(tokens) > 1:
        return f"a statement is checked with {_line(['claim', 'check', *tokens[1:]])}"
    missing = getattr(error, "argument", None)
    if missing is not None and not unknown and missing.names and missing.names[0] not in tokens:
        return f"{command} needs {missing.names[0]} (chipwise {command} --help)"
    return f"{error} (chipwise --help)"


def _corrected(tokens: Sequence[str], option: str, every: Collection[Argument]) -> str:
    """The line with the options that a command has, "" where nothing tells which were meant."""
    names = {name for known in every for name in known.names}
    pairs = [token.partition("=") for token in tokens]
    meant = {name: other for name, _, _ in pairs if (other := _meant(name, names))}
    if meant:
        line = [meant.get(name, name) + sign + value for name, sign, value in pairs]
        return f"unknown option {', '.join(meant)}: {_line(line)}"
    for known in every if option not in names else ():
        if option.lstrip("-") in (known.get_choices() or ()):
            left = [token for token in tokens if token != option]
            return f"unknown option {option}: {_line([*left, known.name, option.lstrip('-')])}"
    return ""


def _command(app: App, tokens: Sequence[str]) -> tuple[str, Collection[Argument]]:
    """The command of a line, and what it takes: nothing, where the line names a group of commands alone."""
    words = []
    for word in tokens:
        if word.startswith("-") or word not in app:
            break
        app = app[word]
        words.append(word)
    return " ".join(words), app.assemble_argument_collection() if app.default_command else ()


def _meant(option: str, names: Collection[str]) -> str:
    """The option of a command that people call so by another name, "" where it has none, or has that one itself."""
    alike = () if option in names else next((group for group in ALIKE if option in group), ())
    return next((name for name in alike if name in names), "")


def _quoted(tokens: Sequence[str]) -> str:
    """Where a model's name of several words was typed without quotes, the command with them."""
    words = [*takewhile(lambda token: not token.startswith("-"), tokens[1:])]
    if tokens[0] not in OF_MODELS or len(words) < 2:
        return ""
    return f"a name of several words takes quotes: {_line([tokens[0], ' '.join(words), *tokens[1 + len(words) :]])}; "


def _line(tokens: Sequence[str]) -> str:
    return shlex.join(["chipwise", *tokens])


def _json_asked(tokens: Sequence[str]) -> bool:
    """Whether a program reads the answer, and so the reason for none."""
    return "--format=json" in tokens or ("--format", "json") in pairwise(tokens)


def _correct(error: ChipwiseError, tokens: Sequence[str]) -> None:
    """Where a value was perhaps meant otherwise, the next step is the command with it."""
    near: tuple[str, ...] = getattr(error, "nearest", ())
    for i, token in enumerate(tokens if near else ()):
        if token == getattr(error, "name", None):
            error.hint = f"{error.hint}; {_line([*tokens[:i], near[0], *tokens[i + 1 :]])}"
    option = f"--{error.field.replace('_', '-')}"
    instead: tuple[str, ...] = getattr(error, "instead", ())
    for i, token in enumerate(tokens if instead else ()):
        if token.partition("=")[0] == option:
            told = [token] if "=" in token else [*tokens[i : i + 2]]
            told[-1] = f"{option}={instead[0]}" if len(told) == 1 else instead[0]
            error.hint = _line([*tokens[:i], *told, *tokens[i + len(told) :]])
    if instead and error.field == "model" and tokens[1:] and not tokens[1].startswith("-"):
        error.hint = f"{error.hint}: {_line([tokens[0], instead[0], *tokens[2:]])}"


def _answer(error: ChipwiseError) -> None:
    """The reason for no answer as JSON on stdout, where the answer would be."""
    from chipwise.api.requests.doors import Failure, problem_of
    from chipwise.report.table import to_json

    sys.stdout.write(to_json(Failure(problem_of(error))) + "\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    """A sentence on stderr, whatever the text was made of."""

    tell(f"chipwise: {shorten(text, 1000)}")


def _drop_output() -> None:
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
