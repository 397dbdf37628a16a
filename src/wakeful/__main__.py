"""`python -m wakeful` is the `wakeful` command."""

from wakeful.cli.main import app

if __name__ == "__main__":
    app()
