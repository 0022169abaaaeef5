"""The command line: thin over the library, one `*_command` module a command.

`command` is the application, `options` has what commands share, `output` and the `show` modules what they print,
`completion` what a shell offers. Heavy modules are imported inside the commands. Imports every room.
"""
