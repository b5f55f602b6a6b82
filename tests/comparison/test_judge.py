import re

import numpy as np
import pandas
import pytest
from command_line import succeed

import pointset
from pointset.comparison.judge import judge
from pointset.comparison.verdict import give_verdict
from pointset.errors import PointsetError

ITEMS, LABELS = 200, ("cup", "lamp", "chair")


def predictions(accuracies, seeds=3, items=ITEMS, seed=0):
    """A table of predictions; a model is right on its share of the items, and each run differs on a few."""
    rng = np.random.default_rng(seed)
    label = np.resize(LABELS, items)
    rows = []
    for model, accuracy in accuracies.items():
        hard = rng.permutation(items) >= accuracy * items
        for run in range(seeds):
            wrong = hard ^ (rng.random(items) < 0.03)
            guess = np.where(wrong, np.roll(label, 1), label)
            rows.append(pandas.DataFrame({"item": np.arange(items), "label": label, "prediction": guess}))
            rows[-1] = rows[-1].assign(model=model, seed=run)
    return pandas.concat(rows, ignore_index=True)


@pytest.fixture
def frame():
    return predictions({"network": 0.9, "svm": 0.89, "tree": 0.6})


def test_a_verdict_says_who_is_best_and_who_is_not_distinguishable(frame):
    verdict = judge(frame)
    shares = (frame.label == frame.prediction).groupby(frame.model).mean().sort_values(ascending=False)
    assert {row.model: row.mean for row in verdict.rows} == pytest.approx(shares.to_dict())
    assert [row.model for row in verdict.rows] == [*shares.index]
    assert verdict.pair("tree", verdict.best).distinguishable
    assert not verdict.pair("network", "svm").distinguishable
    second = verdict.rows[1].model
    assert f"not distinguishable from: {second}" in verdict.summary()
    assert f"{ITEMS} items and 3 seeds cannot tell differences below" in str(verdict)
    assert "level 0.05" in str(verdict)


def test_rows_may_be_in_any_order_in_files_and_under_other_names(frame, tmp_path):
    expected, paths = judge(frame).as_dict(), []
    for (model, seed), part in frame.groupby(["model", "seed"]):
        paths.append(tmp_path / f"{model}-seed{seed}.csv")
        part[["item", "label", "prediction"]].to_csv(paths[-1], index=False)
    assert judge(frame.sample(frac=1, random_state=0)).as_dict() == expected
    assert pointset.judge(paths).as_dict() == expected
    other = {"item": "uid", "label": "truth"}
    assert judge(frame.rename(columns=other), other).as_dict() == expected
    numbers = {"item": [0, 1], "label": [3, 5], "prediction": ["3", "4"]}
    assert judge(numbers).rows[0].mean == 0.5, "numbers as text are the same classes"


def test_predictions_of_runs_and_of_classify_are_read(tmp_path):
    run = tmp_path / "isab16-pma-n100-seed1"
    run.mkdir()
    logits = np.eye(3)[[0, 1, 1, 2]]
    np.savez(run / "predictions.npz", logits=logits, labels=[0, 1, 2, 2], names=list("abcd"), classes=list(LABELS))
    table = "name,true_class,class_1,probability_1\na,cup,cup,0.9\nb,cup,lamp,0.8\n"
    (tmp_path / "other.csv").write_text(table)
    (row,) = judge(run / "predictions.npz").rows
    assert (row.model, row.mean) == ("isab16-pma-n100", 0.75)
    (row,) = judge(tmp_path / "other.csv").rows
    assert (row.model, row.mean) == ("other", 0.5)


def test_one_seed_judges_runs_and_says_so(frame):
    verdict = judge(frame[frame.seed == 0])
    assert verdict.pair("network", "tree").runs_differ
    assert not verdict.pair("network", "tree").distinguishable
    assert "Every model has one run" in " ".join(verdict.sentences())
    assert verdict.resolution() == ""


def test_few_items_and_seeds_tell_no_difference_and_no_text_speaks_of_more_than_100_points():
    """From four items "cannot tell differences below 129.9 points" was said, and intervals of 500 points."""
    few = predictions({"network": 0.5, "tree": 0.25}, seeds=2, items=4)
    few.loc[few.seed == 1, "prediction"] = few["label"]
    verdict = judge(few)
    assert min(pair.design.resolution() for pair in verdict.pairs) > 1
    assert "4 items and 2 seeds can tell no difference" in verdict.resolution()
    assert not [word for word in re.findall(r"[\d.]+", str(verdict)) if float(word.strip(".") or 0) > 100]
    assert verdict.pairs[0].interval.high > 1, "the numbers themselves are kept"


def test_several_models_with_one_run_are_plural(frame):
    one_run = frame[(frame.seed == 0) | (frame.model == "svm")]
    assert re.search(r"(network, tree|tree, network) have one run each, which", str(judge(one_run)))
    of_tables = str(judge(frame[(frame.seed == 0) | (frame.model != "tree")]))
    assert "tree has one run, which" in of_tables
    assert "give at least 2 seeds, or name the models that have no seed as deterministic." in of_tables
    of_compare = give_verdict({"rff-max": np.eye(1, 5), "rff-pma": np.eye(1, 5)})
    assert of_compare.sentences()[-1].endswith("give at least 2 seeds."), "compare knows which models have no seed"


def test_models_that_agree_on_every_item_do_not_say_what_can_be_told(frame):
    """Two models that never differ have no variance: "cannot tell differences below 0.0 points" was said of them."""
    svm = frame[(frame.model == "svm") & (frame.seed == 0)]
    verdict = judge(pandas.concat([svm, svm.assign(model="copy")]), deterministic=["svm", "copy"])
    assert verdict.pair("svm", "copy").difference == 0
    assert "cannot tell" not in str(verdict)


def test_a_model_without_a_seed_stands_beside_networks_with_seeds(frame):
    once = frame[(frame.model != "svm") | (frame.seed == 0)]
    assert judge(once).pair("svm", "network").p is None
    named = judge(once, deterministic=["svm"])
    assert named.pair("svm", "tree").distinguishable
    assert {row["model"]: row["seeds"] for row in named.table()} == {"svm": "none", "network": "3", "tree": "3"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: pandas.concat([t, t.head(1)]), ("'0'", "2 times", "network, seed 0")),
        (lambda t: t.drop(index=5), ("network, seed 0", "lacks 1 of 200 items", "'5'", "seed 1 has")),
        (lambda t: t.assign(item=t.item + 1000 * t.seed), ("seed 0 lacks 400 of 600", "'1000'", "same names")),
        (lambda t: t[t.item == 0], ("one item", "at least 2")),
        (lambda t: t.assign(seed=t.seed + 0.5), ("row 1", "'0.5'", "whole numbers")),
        (lambda t: t.assign(seed=t.seed.where(t.seed > 0)), ("row 1", "has no seed")),
        (lambda t: t.assign(label=np.where(t.index == 599, 3, 1), prediction=1), ("label '1' and", "seed 2, '3'")),
        (lambda t: t.assign(label=np.where(t.index == 599, "vase", t.label)), ("'199'", "'vase'", "network, seed 2")),
        (lambda t: t.assign(data=np.where(t.item < 50, "small", "large")), ("2 data sets (small, large)", "one at a")),
        (lambda t: t.head(0), ("no rows",)),
        (lambda t: t.drop(columns="item"), ("no column item", "item=COLUMN")),
        (lambda t: t.drop(columns="prediction"), ("no column prediction", "prediction=COLUMN")),
        (lambda t: t.assign(prediction=t.prediction.where(t.index != 3)), ("row 4", "no prediction")),
    ],
)
def test_bad_tables_are_refused_in_one_sentence(frame, change, words):
    with pytest.raises(PointsetError) as error:
        judge(change(frame[frame.model == "network"].reset_index(drop=True)))
    assert all(word in str(error.value) for word in words)


def test_the_command_prints_and_writes(frame, tmp_path, capsys):
    frame.to_csv(tmp_path / "all.csv", index=False)
    outputs = [tmp_path / name for name in ("v.md", "v.tex", "v.svg")]
    command = ["judge", tmp_path / "all.csv", "-o", *outputs]
    assert "distinguishable" in succeed(capsys, *command)
    markdown, latex, matrix = (path.read_text() for path in outputs)
    assert markdown.count("| tree") == 1
    assert latex.count(r"\toprule") == 2
    assert "<svg" in matrix


def test_names_of_models_and_classes_are_text(frame, tmp_path, capsys):
    odd = "a|<b>x</b>\n`\x1b[31m"
    frame = frame.replace({"model": {"svm": odd}}).replace({"label": {"cup": odd}, "prediction": {"cup": odd}})
    verdict = judge(frame)
    for text in (str(verdict), verdict.as_latex(), verdict.as_markdown()):
        assert "\x1b" not in text
        assert "<b>x</b>\n" not in text
    assert r"a\|\<b\>x\</b\>\\n\`" in verdict.as_markdown()
