"""The moving average of the weights: its definition, its use as the result of a training, and resuming."""

import torch
from torch import nn
from toy import small

import pointset
from pointset.training.loading import load_run
from pointset.training.loop import best_epoch
from pointset.training.optimization import AdamW
from pointset.training.recipe import Recipe

AVERAGED = Recipe(epochs=3, batch_size=24, learning_rate=1e-2, average=0.8)


def states(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


class Followed:
    """The state of a model after each step of a training."""

    def __init__(self, monkeypatch):
        self.steps = []
        original = AdamW.step

        def step(optimizer, *arguments):
            original(optimizer, *arguments)
            self.steps.append(states(self.model))

        monkeypatch.setattr(AdamW, "step", step)

    def fit(self, train, recipe, **options):
        self.model = small("rff-max", norm="batch")
        return pointset.fit(self.model, train, recipe, progress=False, **options)


def test_a_training_leaves_the_average_of_its_steps_weights_and_running_statistics_alike(train, monkeypatch):
    followed = Followed(monkeypatch)
    fitted = followed.fit(train, AVERAGED)
    expected, *later = followed.steps
    assert len(later) == 3 * 5 - 1
    for state in later:
        expected = {name: 0.8 * value + 0.2 * state[name] for name, value in expected.items()}
    found = fitted.model.state_dict()
    assert any("running" in name for name in found)
    for name, value in expected.items():
        if found[name].is_floating_point():
            torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-6)
        else:  # the batches that batch norm has counted are not averaged
            assert torch.equal(found[name], state[name])


def test_the_average_is_what_is_validated_stopped_on_and_saved(train, tmp_path, monkeypatch):
    recipe = Recipe(
        epochs=12, batch_size=24, learning_rate=3e-2, average=0.7, validation=0.2, patience=3, schedule="constant"
    )
    followed = Followed(monkeypatch)
    fitted = followed.fit(train, recipe, run=tmp_path)
    best = best_epoch(fitted.history)
    held_out = train.split_validation(0.2, 0)[1]
    found = fitted.history[best - 1]["validation_accuracy"]
    assert pointset.evaluate(fitted.model, held_out).accuracy == found
    assert all(
        not torch.equal(next(iter(step.values())), next(iter(states(fitted.model).values()))) for step in followed.steps
    )
    loaded, about = load_run(tmp_path)
    assert about["recipe"]["average"] == 0.7
    assert all(torch.equal(a, b) for a, b in zip(states(loaded).values(), states(fitted.model).values(), strict=True))
