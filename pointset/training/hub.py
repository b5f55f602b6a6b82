"""Runs on the Hugging Face hub, as the file of `pack_run`: `pointset push`, and `--model hub:user/name`."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from pointset.errors import QUOTED, PointsetError, one_line, quoted
from pointset.training.packed import SUFFIX, pack_run

PREFIX = "hub:"
FILE = f"model{SUFFIX}"
README = """---
library_name: pointset
---
A {model} of `pip install "pointset-learn[hub]"`: `pointset classify FILES --model hub:{repository}`. {kind}: {names}.
"""


def push_run(run: str | Path, repository: str, *, private: bool = False) -> str:
    """Pack a finished run and put it on the hub, with a README; a repository that exists gets a new version.

    Args:
        run: the folder of the run.
        repository: "user/name" on the hub; `hf auth login` or the environment variable HF_TOKEN says who you are.
        private: make a new repository private.

    Returns:
        The address of the repository.

    Raises:
        PointsetError: the folder is not a finished run, huggingface_hub is not installed, or the hub refuses.
    """
    with TemporaryDirectory() as folder, _named(repository):
        from huggingface_hub import HfApi

        card, hub = pack_run(run, Path(folder) / FILE), HfApi()
        kind = "targets" if card.get("targets") else "classes"
        facts = {"kind": kind.capitalize(), "names": ", ".join(map(str, card.get(kind, ())))}
        readme = README.format(model=card["model"], repository=repository, **facts)
        (Path(folder) / "README.md").write_text(readme, encoding="utf-8")
        address = hub.create_repo(repository, private=private, exist_ok=True)
        hub.upload_folder(repo_id=repository, folder_path=folder, commit_message="pointset push")
        return str(address)


def pull_run(name: str) -> Path:
    """Download "hub:user/name" or "hub:user/name@revision", or find it in the cache of huggingface_hub."""
    repository, _, revision = name.removeprefix(PREFIX).partition("@")
    with _named(repository):
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(repository, FILE, revision=revision or None))


@contextmanager
def _named(repository: str) -> Iterator[None]:
    """Convert errors of the hub to one line."""
    if find_spec("huggingface_hub") is None:
        raise PointsetError("the hub needs huggingface_hub: run `pip install 'pointset-learn[hub]'`")
    from huggingface_hub import logging
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    logging.set_verbosity_error()  # each attempt of a request is a warning
    try:
        yield
    except PointsetError:
        raise
    except LocalEntryNotFoundError as error:
        raise PointsetError(f"hub:{repository} cannot be reached and is not in the cache: go online") from error
    except EntryNotFoundError as error:
        raise PointsetError(f"hub:{repository} has no {FILE}: it was not made by `pointset push`") from error
    except Exception as error:  # of requests, of names, and of files
        reason = one_line(error, QUOTED) or type(error).__name__
        raise PointsetError(f"hub:{quoted(repository)}: {reason}") from error
