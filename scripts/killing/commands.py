"""The commands that are killed: each on data so small that it ends in a second or two."""

import hashlib
import io
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

TETRAHEDRON = "OFF\n4 4 6\n0 0 0\n{} 0 0\n0 {} 0\n0 0 {}\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"
SETS = ("--points", "16", "--pool-points", "32", "--dim", "8", "--batch-size", "4")
ONE = ("--seeds", "0", "--workers", "1", "--out", "out")
TWO = ("--seeds", "0", "1", "--workers", "2", "--out", "out")
TIMES = ("seconds", "processor_seconds", "latency_ms", "step_memory_mb", "mtime", "mtime_ns", "time", "written")


@dataclass(frozen=True)
class Command:
    """A command and what is made before it, in a folder of its own."""

    arguments: tuple[str, ...]
    before: tuple[str, ...] = ()
    """A command to its end, whose files are there already."""
    drawn: tuple[str, ...] = ()
    """Files whose bytes depend on times: only that they are there is compared."""
    tables: tuple[str, ...] = field(default=())
    """Files of which the numbers are not compared, times being among them."""


REPORT = {
    "drawn": ("pareto.svg", "pareto-n16.svg", "report.html", ".lock", "-lock"),
    "tables": ("table.md", "results.csv"),
}
COMMANDS = {
    "data build": Command(("data", "build", "parts", "--points", "3000", "--normals", "--workers", "2")),
    "train": Command(("train", "isab4-pma", "--data", "parts", *SETS, "--epochs", "8", "--run", "run")),
    "compare": Command(
        ("compare", *TWO, "--data", "parts", *SETS, "--epochs", "4", "--models", "rff-max", "rff-mean"),
        **REPORT,
    ),
    "data fetch": Command(("data", "fetch", "tiny")),
    "export": Command(
        ("export", "--model", "run", "--output", "model.pt2"),
        before=("train", "rff-max", "--data", "parts", *SETS, "--epochs", "1", "--run", "run"),
        drawn=("model.pt2",),
    ),
    "task": Command(
        ("task", "max-regression", *ONE, "--steps", "60", "--models", "rFF + max", "rFF + mean"),
        **REPORT,
    ),
}
"""By name."""


def write_parts(folder: Path, shapes: int = 24) -> None:
    """Tetrahedra of two classes."""
    random = Random(0)
    for number in range(shapes):
        path = folder / f"class{number % 2}" / ("test" if number % 6 > 3 else "train") / f"{number}.off"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TETRAHEDRON.format(*(random.uniform(1, 2 + number % 2) for _ in "xyz")))


def write_archive(url: str, card: Path, size: int = 4_000_000) -> bytes:
    """An archive of meshes that does not compress, and its card."""
    random, content = Random(1), io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number in range(40):
            name = zipfile.ZipInfo(f"Tiny/class{number % 2}/{'test' if number % 8 > 5 else 'train'}/{number}.off")
            archive.writestr(name, TETRAHEDRON.format(1, 1, 1) + "#" + random.randbytes(size // 80).hex())
    data = content.getvalue()
    card.parent.mkdir(parents=True, exist_ok=True)
    words = "".join(f'{name} = "tiny"\n' for name in ("name", "title", "summary", "licence", "citation", "homepage"))
    card.write_text(
        f'{words}kind = "meshes"\nurls = ["{url}/Tiny.zip"]\nfolder = "Tiny"\nup = "z"\n'
        'classes = ["class0", "class1"]\n'
        f'[splits]\ntrain = 30\ntest = 10\n[download]\nsize = {len(data)}\nmd5 = "{hashlib.md5(data).hexdigest()}"\n',
        encoding="utf-8",
    )
    return re.sub(rb'"commit": ("\w+\+?"|null)', b"", data)


def contents(folder: Path, command: Command) -> dict[str, bytes]:
    """Every file of a folder, without what differs from one undisturbed run to the next."""
    return {
        str(path.relative_to(folder)): _steady(path, command) if path.is_file() else b"folder"
        for path in sorted(folder.rglob("*"))
    }


def _steady(path: Path, command: Command) -> bytes:
    if any(str(path).endswith(name) for name in command.drawn):
        return b"drawn"
    data = path.read_bytes()
    if path.name == "SHA256SUMS":
        return _steady_digests(path, data, command)
    if any(str(path).endswith(name) for name in command.tables):
        return re.sub(rb"[\d.,]+", b"#", data)
    if path.suffix in (".json", ".jsonl"):
        data = re.sub(rb'"commit": ("\w+\+?"|null)', b"", data)  # null where git takes long
        return re.sub(rb'"(%s)": [-+.\de]+' % "|".join(TIMES).encode(), rb'"\1": #', data)
    return data


def _steady_digests(path: Path, data: bytes, command: Command) -> bytes:
    """The digests, but for those of files with times in them."""
    named = {line: path.parent / line.split(b"  ", 1)[1].decode() for line in data.splitlines()}
    return b"\n".join(line for line, file in named.items() if _steady(file, command) == file.read_bytes())
