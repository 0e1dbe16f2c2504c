# The public names of the package, for type checkers and for `__init__.py`.

from generic.library.worker.actuator import GenericWorker as GenericWorker
from generic.library.worker.autoscaler import autoscaler_annotations as autoscaler_annotations
from generic.library.worker.group import (
    AMD64 as AMD64,
    MachineGroup as MachineGroup,
    in_zone as in_zone,
    share_of_zone as share_of_zone,
    require_technical_id as require_technical_id,
)
from generic.library.worker.images import (
    ProviderImage as ProviderImage,
    machine_images as machine_images,
    use_images as use_images,
)
from generic.library.worker.poolhash import (
    hash_of as hash_of,
    pool_field as pool_field,
    pool_hash as pool_hash,
)
from generic.library.worker.userdata import user_data as user_data
