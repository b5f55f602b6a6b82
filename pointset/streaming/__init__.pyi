from .chains import check_streams as check_streams
from .logits import stream_logits as stream_logits
from .maps import StreamedMap as StreamedMap
from .maps import stream_attention as stream_attention
from .parts import StreamingError as StreamingError
from .parts import encoder_part as encoder_part
from .parts import pool_part as pool_part
