"""The best classifier for a folder of one's own within a budget: `pointset train` without the name of a model.

Candidates are judged on training shapes that they were not fitted to: support vector machines on classical features
of shape and surface and on the embeddings of trained networks (all folds), a trained network fine-tuned (as many folds
as the budget allows), and their product, which is usually best. The chosen one is then fitted to all training shapes.
"""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor, nn

from pointset.baselines.folds import assign_folds
from pointset.baselines.mixture import Mixture
from pointset.configuration import check_seed
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.evaluation.calibration import fit_temperature
from pointset.evaluation.predictions import evaluate
from pointset.runs import digests
from pointset.runs.claims import claim
from pointset.training.baselines import FOLDS, baseline_of, extract_rows, fit_head, held_out_logits, set_pose
from pointset.training.checkpoints import RunFolder, describe, load_weights
from pointset.training.history import Fitted, make_fitted
from pointset.training.loop import fit, know_training_data
from pointset.training.recipe import Recipe
from pointset.zoo.models import MIXTURE, create_model, create_pretrained, mix
from pointset.zoo.transfer import start_from

BUDGET = 120.0
"""Core-seconds."""
START = "dumlp16-max+dumlp16.modelnet40-1024"
ROWS = ("features-svm", "surface-svm", "embedding-svm")
RECIPE = Recipe(
    train_points=(64, 256),
    optimizer="muon",
    learning_rate=5e-3,
    weight_decay=0.05,
    augment=("stretch-wide", "shift-wide", "jitter"),
)
"""Of the network; the number of steps depends on the shapes and the budget. See scripts/experiments/NOTES.md."""
FEWEST_STEPS, LEAST_STEPS, EPOCHS = 60, 300, 20
"""Fewer steps are not worth their time; steps for a small folder; epochs for a large one."""


def transfer_recipe(train: PointSets, steps: int | None = None) -> Recipe:
    """The recipe for trained weights on other shapes: 20 epochs, and at least 300 steps."""
    steps = max(LEAST_STEPS, EPOCHS * len(train) // RECIPE.batch_size) if steps is None else steps
    assert RECIPE.train_points is not None
    fewest, most = (min(size, train.size) for size in RECIPE.train_points)
    return dataclasses.replace(RECIPE, steps=steps, train_points=(fewest, most))


@dataclass(frozen=True)
class Candidate:
    """A way to classify the shapes, and how it did on shapes that it was not fitted to."""

    name: str
    accuracy: float
    low: float
    """Of the 95 % interval (Wilson), as is `high`."""
    high: float
    tested: int
    """Number of held-out training shapes."""
    seconds: float
    """Core-seconds for the held-out fits."""
    chosen: bool = False

    @classmethod
    def of(cls, name: str, logits: Tensor, labels: Tensor, seconds: float) -> "Candidate":
        """The candidate with these held-out logits [N, classes]; rows with NaN were not held out."""
        tested = logits.isfinite().all(dim=1)
        right = int((logits[tested].argmax(dim=1) == labels[tested]).sum())
        count = int(tested.sum())
        low, high = proportion_confint(right, max(count, 1), method="wilson")
        return cls(name, right / max(count, 1), float(low), float(high), count, seconds)


@dataclass(frozen=True)
class Automatic:
    """The chosen classifier, fitted to all training shapes, and what it was chosen from."""

    fitted: Fitted
    name: str
    candidates: tuple[Candidate, ...]


def fit_automatic(
    train: PointSets, *, budget: float = BUDGET, seed: int = 0, run: str | Path | None = None, progress: bool = True
) -> Automatic:
    """Choose and fit the best classifier within a budget.

    Args:
        train: the training sets. Sets at the default normalisation are centred and standardised instead.
        budget: core-seconds for the whole choice, on this machine. It decides how long the network is trained.
        seed: seed of the folds and of the network.
        run: folder of the result: a run like that of `fit`. The network has its own run inside it, in `network`. If
            interrupted, the same call goes on with the number of steps that was chosen before.
        progress: show progress.

    Raises:
        PointsetError: the sets are of one class, or the folder holds another run.
    """
    check_seed(seed)
    if len(train.labels.unique()) < 2:
        raise PointsetError(f"{train.name or 'the data'} has shapes of one class only: give shapes of two or more")
    if train.options.normalize == "unit-sphere":
        train = _renormalized(train)
    folder = None if run is None else RunFolder(Path(run))
    if folder is None:
        return _Choice(train, budget, seed, None, progress).run()
    with folder.locked():
        about = {"data": train.describe(), "seed": seed, "budget": budget}
        claim(folder.path / "automatic.json", about, tuple(about), "automatic training")
        return _Choice(train, budget, seed, folder, progress).run()


def _renormalized(sets: PointSets) -> PointSets:
    """The sets, centred and standardised."""
    options = dataclasses.replace(sets.options, normalize="center-standardize")
    pool, rows = sets.source_pool, sets.rows
    return PointSets(pool, options, name=sets.name, source=sets.source, split=sets.split, rows=rows)


class _Choice:
    """The state of one automatic training."""

    def __init__(self, train: PointSets, budget: float, seed: int, folder: RunFolder | None, progress: bool) -> None:
        self.train, self.budget, self.seed, self.folder, self.progress = train, budget, seed, folder, progress
        self.began = time.process_time()
        self.labels = train.labels
        self.folds = assign_folds(train.names, train.labels.tolist(), FOLDS, seed)

    def run(self) -> Automatic:
        """Judge the candidates and fit the best."""
        logits: dict[str, Tensor] = {}
        members: dict[str, nn.Module] = {}
        seconds: dict[str, float] = {}
        for name in ROWS:
            began = time.process_time()
            members[name], logits[name] = self._fit_rows(name)
            seconds[name] = time.process_time() - began
        began = time.process_time()
        steps, folds = self._plan()
        if steps >= FEWEST_STEPS:
            logits["network"] = self._held_out_network(steps, folds)
            seconds["network"] = time.process_time() - began
        chosen, mixture = self._choose(logits)
        if mixture is not None:
            logits[MIXTURE], seconds[MIXTURE] = mixture
        history: list[dict[str, Any]] = []
        needed = chosen in ("network", MIXTURE)
        if steps >= FEWEST_STEPS and (needed or self.folder is not None):  # a run has a network to draw and to export
            trained = fit(
                self._network(),
                self.train,
                transfer_recipe(self.train, steps),
                seed=self.seed,
                run=self._inside("network"),
                progress=self.progress,
            )
            members["network"], history = trained.model, trained.history if needed else []
        model = self._mix(members, logits) if chosen == MIXTURE else members[chosen]
        candidates = tuple(
            dataclasses.replace(Candidate.of(name, logits[name], self.labels, seconds[name]), chosen=name == chosen)
            for name in logits
        )
        return Automatic(self._save(model, history, steps, candidates), chosen, candidates)

    def _fit_rows(self, name: str) -> tuple[nn.Module, Tensor]:
        model = create_model(name, classes=len(self.train.classes), inputs=self.train.inputs, seed=self.seed)
        baseline = baseline_of(model)
        assert baseline is not None
        set_pose(baseline, self.train)
        blocks = extract_rows(baseline, self.train, self.progress)
        logits = held_out_logits(baseline, blocks, self.labels, self.folds, FOLDS)
        fit_head(baseline, blocks, self.labels, logits)
        know_training_data(model, self.train)
        return model.eval(), logits / baseline.head.temperature

    def _network(self) -> nn.Module:
        """A network to train, from trained weights where points are coordinates alone."""
        classes, inputs = len(self.train.classes), self.train.inputs
        if inputs == 3:
            return start_from(create_pretrained(START), self.train.classes, self.train.up, seed=self.seed, start=START)
        options: dict[str, Any] = {"dim": 64, "head_dim": 256, "head_norm": "batch", "dropout": 0.3}
        name = START.partition(".")[0]
        return create_model(name, classes=classes, inputs=inputs, seed=self.seed, pooled_dropout=0.0, **options)

    def _inside(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder.path / name

    def _plan(self) -> tuple[int, int]:
        """Steps of the network and the number of folds that it is held out on; kept in the folder for a resumption."""
        file = self._inside("plan.json")
        if file is not None and file.exists():
            plan = digests.read_json(file, f"delete {self.folder.path} and run the same training again")  # type: ignore[union-attr]
            return plan["steps"], plan["folds"]
        began = time.process_time()
        fit(self._network(), self.train, transfer_recipe(self.train, 1), seed=self.seed, progress=False)
        first = time.process_time()
        fit(self._network(), self.train, transfer_recipe(self.train, 9), seed=self.seed, progress=False)
        step = max((time.process_time() - 2 * first + began) / 8, 1e-4)
        left = self.budget - (time.process_time() - self.began)
        steps = max(0, min(transfer_recipe(self.train).steps or 0, int(left / (2 * step))))
        folds = 1 if steps < FEWEST_STEPS else max(1, min(FOLDS, int(left / (steps * step)) - 1))
        if file is not None:
            digests.write_json(file, {"steps": steps, "folds": folds})
        return steps, folds

    def _held_out_network(self, steps: int, folds: int) -> Tensor:
        """Logits [N, classes] of the network for the shapes of its held-out folds, NaN for the others."""
        logits = torch.full((len(self.train), len(self.train.classes)), torch.nan)
        for fold in range(folds):
            inside = torch.from_numpy(self.folds == fold)
            if not inside.any():
                continue
            others = self.train.subset((~inside).nonzero().flatten())
            recipe, run = transfer_recipe(self.train, steps), self._inside(f"held-out-{fold}")
            network = fit(self._network(), others, recipe, seed=self.seed, run=run, progress=self.progress).model
            logits[inside] = torch.from_numpy(evaluate(network, self.train.subset(inside.nonzero().flatten())).logits)
        return logits

    def _choose(self, logits: dict[str, Tensor]) -> tuple[str, tuple[Tensor, float] | None]:
        """The best candidate, and the held-out logits of the product.

        On the same shapes, the network replaces the product if it is at least as accurate, because it can be drawn and
        exported; another candidate if it is more accurate by a standard error. Neither may have a larger log loss.
        """
        common = torch.stack([values.isfinite().all(dim=1) for values in logits.values()]).all(dim=0)
        labels = self.labels[common]
        if not common.any():
            return ROWS[-1], None
        began = time.process_time()
        product = torch.full_like(logits[ROWS[0]], torch.nan)
        for fold in range(FOLDS):
            inside = common & torch.from_numpy(self.folds == fold)
            others = common & ~inside
            if inside.any():
                fitted = self._product(logits, others if others.any() else inside)
                product[inside] = fitted.combine([values[inside] for values in logits.values()])

        def judge(values: Tensor) -> tuple[Tensor, float]:
            right = (values[common].argmax(dim=1) == labels).float()
            temperature = fit_temperature(values[common].numpy(), labels.numpy())
            return right, float(nn.functional.cross_entropy(values[common] / temperature, labels))

        best = MIXTURE
        right, loss = judge(product)
        for name in [*ROWS, "network"]:
            if name in logits:
                own_right, own_loss = judge(logits[name])
                gain = own_right - right
                error = 0.0 if name == "network" else float(gain.std()) / len(gain) ** 0.5
                if gain.mean() >= error and own_loss <= loss:
                    best = name
        return best, (product, time.process_time() - began)

    def _product(self, logits: dict[str, Tensor], shapes: Tensor) -> Mixture:
        """The product with the weights that suit the held-out logits of these shapes."""
        labels, members = self.labels[shapes], [values[shapes] for values in logits.values()]
        mixture = Mixture([nn.Identity() for _ in logits], len(self.train.classes))
        temperatures = [fit_temperature(values.numpy(), labels.numpy()) for values in members]
        mixture.temperatures = torch.tensor(temperatures, dtype=torch.float32)
        return mixture.fit(members, labels, self.labels.bincount(minlength=len(self.train.classes)))

    def _mix(self, members: dict[str, nn.Module], logits: dict[str, Tensor]) -> nn.Module:
        logits = {name: values for name, values in logits.items() if name != MIXTURE}
        common = torch.stack([values.isfinite().all(dim=1) for values in logits.values()]).all(dim=0)
        model = mix([members[name] for name in logits])
        model.model.load_state_dict(self._product(logits, common).state_dict(), strict=False)  # type: ignore[union-attr]
        know_training_data(model, self.train)
        return model.eval()

    def _save(
        self, model: nn.Module, history: list[dict[str, Any]], steps: int, candidates: Sequence[Candidate]
    ) -> Fitted:
        recipe = transfer_recipe(self.train, max(steps, 1))
        if self.folder is not None:
            if self.folder.finished:
                load_weights(model, self.folder.weights(), f"the run in {self.folder.path}")
                return make_fitted(model, self.folder.history(), recipe)
            self.folder.claim(describe(model, self.train, recipe, self.seed))
            rows = [dataclasses.asdict(candidate) for candidate in candidates]
            digests.write_json(self.folder.path / "candidates.json", rows)
            self.folder.write_history(history)
            self.folder.finish(model.state_dict())
        return Fitted(model.eval(), history, len(history))
