"""Import every module of the server while the image is built, so that Python writes the bytecode of all they import."""

import pkgutil
from importlib import import_module

import wakeful

for module in pkgutil.walk_packages(wakeful.__path__, "wakeful."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
