"""Former names of modules, refused with those of today."""

from __future__ import annotations

from importlib.abc import MetaPathFinder

from frugal_rl.late import Late

renamed = Late("frugal_rl.run.renamed")
PACKAGES = ("frugal_rl", "nclone", "npp_rl", "mine_rl_npv", "fighting")


class FormerNames(MetaPathFinder):
    """Asked last: whatever it is asked for, nobody else has found."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Finds nothing.

        Raises:
            ModuleNotFoundError: a module had this name, or had it in front of its own.
        """
        if name.partition(".")[0] in PACKAGES and (words := now_called(name)):
            raise ModuleNotFoundError(f"{name} {words}.", name=name)


def now_called(name: str) -> str:
    """Words about where a module is today; empty where none ever had this name."""
    modules: dict[str, str] = renamed.MODULES
    if name in modules:
        return f"is called {renamed.module_now(name)} now"
    inside = [old for old in modules if old.startswith(f"{name}.")]
    rooms = {renamed.module_now(old).rpartition(".")[0] for old in inside}
    return f"is gone: what it held lies in {', '.join(sorted(rooms))}" if rooms else ""
