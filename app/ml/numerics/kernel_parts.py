"""Functions within kernels, which numba need not finish: they are optimised and translated with the kernel, once.

By itself numba optimises every function, and translates it to machine code, before it becomes part of its caller, which
is optimised with all of it again: a third of the time to compile. Only this file relies on the inner classes of numba.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder


class PartLibrary(JITCodeLibrary):
    """Code to link into that of a kernel: with what it calls, and otherwise as it was made."""

    def finalize(self) -> None:
        """Link what it calls."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - of the same class
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 - of none
        """None: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Whoever hands over the environment of a function with machine code."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing to set, without machine code."""


class PartCompiler(CompilerBase):
    """Compiles into a `PartLibrary`."""

    def define_pipelines(self) -> list[Any]:
        """The usual one."""
        state = self.state
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(state)]
