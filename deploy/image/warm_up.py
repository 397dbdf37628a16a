"""Import every module of the server while the image is built, so that Python writes the bytecode of all they import."""

import pkgutil
from importlib import import_module

import wakeful

for module in pkgutil.walk_packages(wakeful.__path__, "wakeful."):
    if module.name.endswith("__main__"):
        continue
    try:
        import_module(module.name)
    except ModuleNotFoundError as error:  # of an extra, such as `otel`, which the image does not have
        if error.name is None or error.name.partition(".")[0] == "wakeful":
            raise
