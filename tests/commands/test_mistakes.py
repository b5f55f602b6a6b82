"""Wrong command lines: one line that names what is wrong, exit code 2, and nothing is read or written."""

import ast
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import advised_in_vain, fail

from pointset.zoo import pretrained

PACKAGE = Path(pretrained.__file__).parent.parent
ONE_COMMAND = ("train", "compare", "evaluate", "classify", "attend", "rank", "zoo")
"""Commands that have a file of their own."""
FILES = {
    "empty.toml": 'models = ["rff-max"]\ndata = ""\n',
    "two.toml": 'data = "{clouds}"\npoints = 24\nmodels = ["rff-max", {{name = "isab4-pma", label = "attention"}}]',
    "tasks.toml": 'task = "max-regression"\nmodels = ["rFF + max"]',
    "digits.toml": "seeds = [" + "9" * 5000 + "]",
    "label.toml": "models = ['" + "x" * 9999 + "']",
    "field.toml": "[model]\n" + "y" * 9999 + " = 1",
    "box.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n",
    "broken.off": "OFF\n3 1 0\n0 0 0\n",
    "heap.xyz": "1 1 1\n" * 9,
    "notes.doc": "",
    "all.csv": "item,label,prediction\n0,cup,cup\n1,lamp,cup\n",
}
"""Files in the folder of the commands."""
ATTEND = "attend box.obj --model {isab} --points 60"
LIVE = "attend box.obj --model {isab} -o box.html --live"
TRAIN = "train rff-max --data {clouds} --points 24"
MISTAKES = [
    ("compere", 'Did you mean "compare"?|(see `pointset --help-all`)'),
    ("train", "--data"),
    ("train rff-max --data {clouds} --points 65", "65 is more than the 64"),
    (f"{TRAIN} --form paper", "rff-max does not use form"),
    (f"{TRAIN} --epochs ten", "--epochs must be a whole number, at least 1, got 'ten'"),
    (f"{TRAIN} --no-such-option", "Unknown option: --no-such-option (see `pointset train --help-all`)"),
    (f"{TRAIN} --batch 16", "Did you mean --batch-size?"),
    (f"{TRAIN} --normalize up", "--normalize must be one of 'unit-sphere'|got 'up'"),
    (f"{TRAIN} --train-points 9", "--train-points requires 2"),
    ("compare two.toml rff-max", "'rff-max' is one argument too many; give a model with --models (see"),
    (f"{TRAIN} --budget 5m", "--budget is for model selection"),
    ("train --data {clouds} --budget 0s", "--budget must be more than 0s"),
    ("train --data . --dim 32", "dim needs the name of a model"),
    ("train --budget soon", "--budget must be a time such as 90s, 2m or 1h, got 'soon'"),
    ("train isab16-pma.modelnet40-1024 --data {clouds} --dim 8", "dim is fixed by the trained isab16-pma.modelnet40"),
    (f"{TRAIN} --batch-size {10**19}", "batch_size must be a whole number, at least 1"),
    (f"{TRAIN} --device {'x' * 4000}", "is not available on this machine"),
    (f"train rff-max --data ./{'x' * 4000}", "xxx' "),  # Python 3.14: "is neither a folder nor the name of a dataset"
    (f"{TRAIN} --run ./{'x' * 4000}", "xxx' cannot be used (File name too long): use another path"),
    (f"{TRAIN} --run two.toml", "two.toml is a file, not a folder): use another path"),
    (f"{TRAIN} --without none.csv --run two.toml", "--without none.csv does not exist"),
    ("compare max-regression --workers 1 --out two.toml/run", "two.toml/run cannot be used|two.toml is a file, not a"),
    ("compare .", ". is a folder, not an experiment file: write --data ."),
    (f"compare --data {{clouds}} --variant {'x' * 4000}", "leave variant='xxx"),
    ("compare none.toml", "none.toml does not exist"),
    ("compare two.toml --epochs 40", "two.toml sets epochs: leave the flag out"),  # 40 is the default
    ("compare two.toml --models isab4-pma", "'isab4-pma' is not a row of the experiment|rff-max, attention"),
    ("compare two.toml --seeds 1 1", "seed 1 is given twice: leave one out"),
    ("compare two.toml --workers 0", "workers must be a whole number from 1 to 4,096, got 0"),
    ("compare two.toml --data no/such/folder", "no/such/folder"),
    ("compare digits.toml", "digits.toml is not a TOML file"),
    ("compare label.toml", "label 'xxx"),
    ("compare field.toml", "is not an option of"),
    ("compare tasks.toml --data x", "'data' is unknown: did you mean"),
    ("compare max-reg", "no task is called 'max-reg': did you mean max-regression"),
    ("evaluate runs/best", "'runs/best' is one argument too many; give a model with --model (see"),
    ("evaluate --model no/such/run", "no/such/run is not a run"),
    ("evaluate -o p.doc --model no/such/run", "p.doc|must end in .csv"),
    ("classify", "FILES requires an argument"),
    (f"classify {'x' * 5000}", "xxx' cannot be used (File name too long)"),
    ("classify gone.npy --model {isab}", "gone.npy: the file or folder does not exist"),
    ("classify notes.doc --model {isab}", "not in '.doc'"),
    ("classify heap.xyz --model {isab}", "heap.xyz: the cloud has no extent: all its 9 points are at [1.0, 1.0, 1.0]"),
    ("classify gone.npy -o none/p.csv --model no/such/run", "none/p.csv|none does not exist"),
    ("classify {isab} box.obj", "{isab} is a run, not a shape: write --model {isab}"),
    (f"{ATTEND} -o box.bmp", "must end in .html or .png or .svg or .pdf or .ply or .glb"),
    (f"{ATTEND} -o no/such/folder/box.png", "the folder no/such/folder does not exist"),
    (f"{ATTEND} -o box.png --layer encoder.7", "no attention map has layer 'encoder.7': choose from encoder.0.reads"),
    (f"{ATTEND} -o box.png --head 2", "has no head 2: give one from 0 to 1"),
    (f"{ATTEND} -o box.ply --query 9", "has no inducing point 9: give one from 0 to 3"),
    (f"{LIVE} --head 0", "--head cannot be used with --live"),
    (f"{LIVE} --layer no --query 99", "--layer and --query cannot be used with --live"),
    (f"{LIVE} --points 5000", "--points must be at most 2,048 with --live, got 5,000"),
    ("attend box.obj --model {isab} -o a.png --live", "must end in .html"),
    ("attend broken.off --model {isab}", "broken.off"),
    ("attend box.obj --model .", "is not a run"),
    ("attend box.obj --model ''", "the value of --model is empty: give a value, or leave it out"),
    ("classify '' --model {isab}", "an argument is empty"),
    ("train RFF-MAX --data {clouds}", "did you mean rff-max"),
    ("compare empty.toml", "data is empty: give the name of a dataset"),
    ("classify box.obj --model {isab} --up sideways", "--up must be one of|auto"),
    ("classify box.obj --model {isab} --pose any", "--normalize principal-axes"),
    ("embed box.obj -o rows.txt", "rows.txt|.npz"),
    ("export --model {plain} -o model.h5", ".pt2 or .onnx, got model.h5"),
    ("export --model {plain}", "--out"),
    ("rank all.csv --columns item", "item=uid"),
    ("rank all.csv --columns thing=uid", "'thing'"),
    ("rank all.csv --columns item=uid", "'uid'"),
    ("rank all.csv -o ranking.doc", "ranking.doc"),
    ("rank all.csv all.csv", "2 times"),
    ("rank all.parquet", "all.parquet does not exist: give a CSV file of predictions"),
    ("rank all.csv --level 1", "level must be in (0, 1)"),
    ("rank all.csv --deterministic forest", "'forest'"),
    ("rank .", "predictions.csv"),
    ("zoo isab16-pma", "'isab16-pma' is not a run or a trained model"),
    ("data show nofolder", "nor the name of a dataset: the datasets are |shapes10"),
    ("data show modelnet50", "'modelnet50' is neither a folder nor the name of a dataset|modelnet40"),
    ("data show two.toml", "is a file: give the folder of a dataset"),
    ("data show {isab}", "class/split/file"),
    ("data show no-such-set -o sheet.gif", "sheet.gif|must end in .png or .svg"),
    ("data show no-such-set -o none/sheet.png", "none/sheet.png|none does not exist"),
]


@pytest.fixture(scope="module")
def places(clouds_folder, isab_run, plain_run) -> dict[str, Path]:
    return {"clouds": clouds_folder, "isab": isab_run, "plain": plain_run}


@pytest.mark.filterwarnings("ignore:.* files usually have Y up")
@pytest.mark.parametrize(("line", "words"), MISTAKES, ids=[line[:60] for line, _ in MISTAKES])
def test_a_mistake_is_one_line_and_nothing_is_written(line, words, places, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.format(**places))
    said = fail(capsys, *shlex.split(line.format(**places)))
    assert [word for word in words.format(**places).split("|") if word not in said] == []
    assert len(said) < 700
    assert {path.name for path in tmp_path.iterdir()} == FILES.keys()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train --data parts --groups no.csv --without none.csv", "--groups no.csv does not exist"),
        ("train rff-max --data parts --without no.csv", "--without no.csv does not exist, neither here nor in parts"),
        ("train rff-mux --data parts --without no.csv", "did you mean rff-max"),
        ("train --data parts --run {isab}", "holds a run of isab4-pma: choose another folder"),
        (
            "compare --data parts --models rff-max --without no.csv",
            "--without no.csv does not exist, neither here nor in parts",
        ),
        ("compare --data parts --models rff-max --out a.off", "a.off cannot be used"),
        ("evaluate --model {isab} --data parts", "(missing: ball, box, rod; unknown: bolt, nut)|classify {parts}`"),
    ],
)
def test_names_and_tables_are_looked_at_before_shapes_are_sampled(line, words, places, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for split in ("train", "test"):
        for name in ("bolt", "nut"):
            folder = Path("parts", split, name)
            folder.mkdir(parents=True)
            (folder / "one.obj").write_text(FILES["box.obj"])
    Path("a.off").write_text("")
    monkeypatch.setattr("pointset.data.cache.build.sample_shapes", None)
    said = fail(capsys, *shlex.split(line.format(**places)))
    assert [word for word in words.format(parts=tmp_path / "parts").split("|") if word not in said] == []


def messages(path: Path) -> Iterator[str]:
    """The texts of a file that have a space, without docstrings; what is filled in is left out."""
    tree, inside = ast.parse(path.read_text()), set[ast.AST]()
    for node in ast.walk(tree):  # from the outside to the inside
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(node.value)
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
        if " " in text and node not in inside:
            yield text


@pytest.mark.parametrize("command", [*ONE_COMMAND, ""])
def test_every_option_of_a_message_is_one_of_the_command_or_of_one_that_it_names(command):
    """Messages of the files that belong to one command alone; "" are those of all others, whose options must exist."""
    file_of = {"compare": "comparing", "classify": "predict"}
    own = {name: PACKAGE / "commands" / f"{file_of.get(name, name)}.py" for name in ONE_COMMAND}
    files = [own[command]] if command else [path for path in PACKAGE.rglob("*.py") if path not in own.values()]
    wrong = [text for path in files for message in messages(path) for text in advised_in_vain(message, command)]
    assert [text for text in wrong if "torchrun" not in text] == []
