# The public names of the package, for type checkers and for `__init__.py`.

from generic.library.secrets.access import (
    ShootAccess as ShootAccess,
    generic_kubeconfig_name as generic_kubeconfig_name,
)
from generic.library.secrets.config import (
    Authority as Authority,
    BasicAuth as BasicAuth,
    Certificate as Certificate,
    Config as Config,
    RsaKey as RsaKey,
    SecretRotation as SecretRotation,
    StaticTokens as StaticTokens,
    TokenUser as TokenUser,
    Usage as Usage,
    rotation_of as rotation_of,
)
from generic.library.secrets.kept import Issued as Issued
from generic.library.secrets.manager import (
    PERMISSIONS as PERMISSIONS,
    SecretsManager as SecretsManager,
)
