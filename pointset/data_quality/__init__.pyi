from .report import Check as Check
from .report import Finding as Finding
from .report import check_data as check_data
