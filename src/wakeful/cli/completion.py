"""`wakeful completion`: completes commands, options and their values in bash, zsh and fish.

The script of each shell runs `wakeful` with the words of the command line up to the cursor as its arguments and with
`_WAKEFUL_COMPLETE` set, and gets a line for each possible next word: the word, a tab, and its help. Without a line the
shell offers file names.
"""

import sys
from typing import Annotated, Any, Literal

import typer
from typer._click.shell_completion import CompletionItem, ShellComplete  # pyright: ignore[reportPrivateUsage]

VARIABLE = "_WAKEFUL_COMPLETE"

BASH = """
_wakeful() {
    local word help
    COMPREPLY=()
    while IFS=$'\\t' read -r word help; do
        COMPREPLY+=("$word")
    done < <(_WAKEFUL_COMPLETE=1 "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _wakeful wakeful
"""

ZSH = """
#compdef wakeful
_wakeful() {
    local word help
    local -a found
    while IFS=$'\\t' read -r word help; do
        found+=("${word//:/\\\\:}:$help")
    done < <(_WAKEFUL_COMPLETE=1 $words[1] "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then
        _describe -V 'next word' found
    else
        _files
    fi
}
# As the file _wakeful in $fpath it is called at once; otherwise it is only registered.
if [[ $funcstack[1] == _wakeful ]]; then
    _wakeful "$@"
else
    compdef _wakeful wakeful
fi
"""

FISH = """
function __wakeful_complete
    set -l words (commandline -opc) (commandline -ct | string collect --allow-empty)
    set -l found (_WAKEFUL_COMPLETE=1 $words[1] $words[2..] 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command wakeful --no-files --arguments '(__wakeful_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell that the script is for.")],
) -> None:
    """Print a script that completes commands in your shell."""
    typer.echo(SCRIPTS[shell].strip())  # noqa: TID251  (our own text, with tabs)


class _NextWords(ShellComplete):
    """Finds what can stand in place of the last argument."""

    def source_vars(self) -> dict[str, Any]:
        return {}  # for scripts made from a template of Typer

    def get_completion_args(self) -> tuple[list[str], str]:
        *before, incomplete = sys.argv[1:] or [""]
        return before, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.value}\t{' '.join((item.help or '').split())}"


def print_next_words(command: Any, options: Any, program: str) -> None:
    """Print the words that can follow, for the shell's script."""
    words = _NextWords(command, options, program, VARIABLE).complete()
    if words:
        typer.echo(words)  # noqa: TID251  (for the shell: a word, a tab, its help)
