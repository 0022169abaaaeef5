"""Studies: grids of measurements as data, with the claims that their results are held against.

`study` and `toml_files` describe one, `cells` says what is measured, `run` measures and stores it, `loaded_run`
reads it once for all who show it, `figures` and `panels` draw it, `claims` judges it; `built_in` has the studies of the
paper and those beyond it. Imports every room but `report`, `app`, `cli` and `testing`.
"""
