"""Uses mlafix in unmodified engines: plugins, files for their registries, and a report.

Each engine has a module. `vllm` and `sglang` have the entry points of plugins, which do nothing unless MLAFIX_VLLM or
MLAFIX_SGLANG is set. `flashinfer` and `hub` write files. `seams` lists the functions that can be replaced.
`import mlafix` does not import this package. docs/Engines.md describes it for users.
"""
