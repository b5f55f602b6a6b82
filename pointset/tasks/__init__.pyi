from .experiments import create_task as create_task
from .experiments import list_tasks as list_tasks
from .set_problem import SetBatch as SetBatch
from .set_problem import SetProblem as SetProblem
from .set_problem import task_recipe as task_recipe
from .shipped import shipped_experiment as shipped_experiment
