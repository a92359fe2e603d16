"""mlafix inside engines that are not changed: plugins, files for their registries, and a report.

Each engine has a module: `vllm` and `sglang` are entry points of plugins, which do nothing unless MLAFIX_VLLM or
MLAFIX_SGLANG asks for it; `flashinfer` and `hub` write files. `seams` is the table of what can be replaced. Nothing else in
mlafix imports this package but the command line. docs/Engines.md is for users.
"""
