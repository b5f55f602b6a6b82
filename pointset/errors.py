"""The one family of errors that is meant for the user's eyes."""


class PointsetError(Exception):
    """Something the user can put right.

    The message is one sentence that says what is wrong, where, and what to do about it. The command line prints
    it without a traceback and exits with code 2.
    """
