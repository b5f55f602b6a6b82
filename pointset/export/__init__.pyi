from .live.page import make_live_page as make_live_page
from .model import export_model as export_model
