from .parts import StreamingError as StreamingError
from .parts import check_streams as check_streams
from .parts import stream_part as stream_part
from .stream import stream_logits as stream_logits
from .stream import stream_rows as stream_rows
