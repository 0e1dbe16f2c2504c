"""Database servers for rehearsals and tests: real ones, started without any set-up.

Read in this order: `postgres` and `mariadb` (the servers and their commands), `daemon` (their
common base, and the user that runs them), `debian` (servers from the packages of the machine's
distribution). The extension itself uses none of this.
"""

from extensions.externaldatabase.servers.daemon import CA, ServerError
from extensions.externaldatabase.servers.mariadb import MariaDb
from extensions.externaldatabase.servers.postgres import Postgres

__all__ = ["CA", "MariaDb", "Postgres", "ServerError"]
