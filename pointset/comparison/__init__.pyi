from .comparing import run_experiment as run_experiment
from .experiment import Entry as Entry
from .experiment import Experiment as Experiment
from .ranking import Ranking as Ranking
from .results import Comparison as Comparison
from .task import Task as Task
