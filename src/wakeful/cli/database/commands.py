"""`wakeful db …`: all commands of an agent's own database."""

import typer

from wakeful.cli.database import files, history, keys, queries, rows, tables

app = typer.Typer(
    help="Show and change an agent's own database.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)
for each in (tables, rows, queries, files, history, keys):
    app.add_typer(each.app)
