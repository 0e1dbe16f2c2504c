"""Database servers for rehearsals and tests: real ones, started without any set-up.

Read in this order: `postgres` and `mariadb` (where each server comes from, how it is run),
`daemon` (what they have in common), `account` (who runs them), `debian` (servers from the packages
of the machine's distribution). The extension itself uses none of this.
"""

from extensions.externaldatabase.servers.daemon import CA, ServerError
from extensions.externaldatabase.servers.mariadb import MariaDb
from extensions.externaldatabase.servers.postgres import Postgres

__all__ = ["CA", "MariaDb", "Postgres", "ServerError"]
