"""The command `actuator`: `main` lists the subcommands, each other module is one of them."""
