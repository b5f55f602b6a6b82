"""What is wrong with a command line, in one sentence with the remedy."""

import difflib
from collections.abc import Sequence

from cyclopts import App, ArgumentCollection, CycloptsError, MissingArgumentError, UnusedCliTokensError
from cyclopts.exceptions import CoercionError, UnknownCommandError, UnknownOptionError

from pointset.configuration import allowed
from pointset.errors import REPEATED, one_line, quoted


def in_a_sentence(error: CycloptsError, app: App) -> str:
    """The message for an error of the parser."""
    chain = error.command_chain or ()
    command = " ".join(("pointset", *chain))
    argument, unused = error.argument, error.unused_tokens or [""]
    if isinstance(error, UnknownCommandError):
        commands = [name for name in (error.app or app) if not name.startswith("-")]
        return f"no command is called {quoted(unused[0])}: {_near(unused[0], commands) or f'see `{command} --help`'}"
    if isinstance(error, UnknownOptionError):
        flag = error.token.keyword or error.token.value
        return f"`{command}` has no {flag}: {_remedy(flag, error.argument_collection) or f'see `{command} --help-all`'}"
    if isinstance(error, UnusedCliTokensError):
        options = _names(app.parse_commands(chain)[1][-1].assemble_argument_collection())
        flag = next((f" give it with {name}," for name in ("--model", "--models") if name in options), "")
        return f"{quoted(unused[0])} is one argument too many: leave it out,{flag} or see `{command} --help`"
    if isinstance(error, MissingArgumentError) and argument is not None:
        count, _ = argument.token_count()
        if error.keyword is None and not argument.tokens and argument.required:
            return f"`{command}` needs {argument.name}: see `{command} --help`"
        return f"{argument.name} needs {'a value' if count < 2 else f'{count} values, got {len(error.tokens_so_far)}'}"
    if isinstance(error, CoercionError) and argument is not None and error.token is not None:
        return f"{argument.name} must be {allowed(argument.field_info.annotation)}, got {quoted(error.token.value)}"
    return one_line(error, 2 * REPEATED)


def _remedy(flag: str, arguments: ArgumentCollection) -> str:
    """What to write in place of an unknown flag; "" without an idea."""
    word, names = flag.lstrip("-"), [*_names(arguments), "--help"]
    if word.upper() in names:
        return f"give {word.upper()} without it"
    return _near(word, names)


def _near(word: str, names: Sequence[str]) -> str:
    """The name that is most like a word; "" if none is."""
    bare = {name.lstrip("-"): name for name in names}
    begun = [name for name in bare if name.startswith(word) and len(word) > 2]
    near = begun or difflib.get_close_matches(word, bare, n=1, cutoff=0.65)
    return f"did you mean {bare[near[0]]}?" if near else ""


def _names(arguments: ArgumentCollection) -> list[str]:
    return [name for argument in arguments if argument.parse for name in argument.names]
