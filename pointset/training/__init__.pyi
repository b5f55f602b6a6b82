from .checkpoints import Fitted as Fitted
from .fine_tuning import transfer_recipe as transfer_recipe
from .selection import ModelSelection as ModelSelection
