"""Siblings by names that likeness confirms, and by likeness alone."""

from hashlib import md5

import numpy as np
import pytest
import torch

import pointset
from pointset.data.likeness.features import invariant_features
from pointset.data.likeness.siblings import _join, find_groups, find_siblings, named_groups
from pointset.data.likeness.twins import Surface, fit_surfaces

OBJECTS, VIEWS, POINTS = 12, 5, 200
"""Of each of two classes."""


def surface(seed):
    """A bumpy ellipsoid that is unlike every other."""
    generator = np.random.default_rng(seed)
    scales, waves = generator.uniform(0.3, 1, 3), generator.normal(size=(3, 3)) * 2

    def draw(count, sampling):
        sphere = np.random.default_rng((seed, sampling)).normal(size=(count, 3))
        sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
        return sphere * scales * (1 + 0.3 * np.sin(sphere @ waves).sum(axis=1, keepdims=True))

    return draw


def clouds(views=VIEWS):
    return [surface(o)(POINTS, v) for o in range(2 * OBJECTS) for v in range(views)]


def make_sets(name, views=VIEWS, rename=lambda row, name: name):
    names = [name.format(o=o, v=v, r=hash((o, v)) % 10**9) for o in range(2 * OBJECTS) for v in range(views)]
    names = [rename(row, name) for row, name in enumerate(names)]
    labels = ["a" if o < OBJECTS else "b" for o in range(2 * OBJECTS) for _ in range(views)]
    return pointset.from_arrays(clouds(views), labels, names=names, normalize="none")


@pytest.mark.parametrize("name", ["shape_{o}_{v}", "{v:02}.{o:03}", "x_{o}_{v}_left"])
def test_names_that_likeness_confirms(name):
    found = named_groups(make_sets(name))
    assert found.groups.tolist() == [o for o in range(2 * OBJECTS) for _ in range(VIEWS)]


def test_likeness_without_telling_names():
    found = find_groups(make_sets("{r}-{o}{v}"))
    assert (found.groups.reshape(-1, VIEWS) == found.groups[::VIEWS, None]).all()
    assert found.count >= 2 * OBJECTS - 2  # some of the objects are as near as two samplings


@pytest.mark.parametrize("name", ["shape_{o}", "{r}_{o}"])
def test_no_group_is_invented(name):
    assert find_groups(make_sets(name, views=1)).rule == ""


GUESSED = np.random.default_rng(0).integers(6, size=2 * OBJECTS).tolist()


@pytest.mark.parametrize(
    "rename",
    [
        lambda row, _: f"{GUESSED[row]}_{row}",  # groups that likeness does not confirm
        lambda row, name: f"other_{name}" if row % OBJECTS < 2 else name,  # a few are no reason for one large group
    ],
)
def test_names_that_tell_no_groups(rename):
    assert find_groups(make_sets("{o}", views=1, rename=rename)).rule == ""


def test_given_groups_are_kept():
    sets = make_sets("{o}_{v}").grouped(np.arange(2 * OBJECTS * VIEWS) % 7)
    assert find_groups(sets).groups.tolist() == [i % 7 for i in range(len(sets))]


def turn(seed):
    turned = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    return turned * np.linalg.det(turned)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (np.eye(3), "re-sampled"),
        (3 * np.eye(3), "rescaled"),
        (turn(0), "turned"),
        (-turn(1), "mirrored"),
    ],
)
def test_twins_of_every_kind(change, kind):
    draw = surface(3)
    fit = fit_surfaces(Surface(draw(600, 0)), Surface(draw(600, 1) @ change + 5))
    assert fit.is_same
    assert fit.kind == kind


def test_other_shapes_are_no_twins():
    surfaces = [Surface(surface(seed)(600, 0)) for seed in range(6)]
    assert not any(fit_surfaces(surfaces[i], surfaces[j]).is_same for i in range(6) for j in range(i))


def test_rows_do_not_change_with_a_turn():
    X = torch.from_numpy(np.stack(clouds(1)[:3])).float()
    turned = -2 * X @ torch.from_numpy(turn(0)).float() + 1
    assert invariant_features(X).shape == (3, 296)
    assert (invariant_features(X) - invariant_features(turned)).norm(dim=1).max() < 0.1


def test_names_that_join_a_few_leave_the_rest_to_likeness():
    few = 4 * VIEWS  # those of four objects
    sets = make_sets("", rename=lambda row, _: f"{row}_{'abcd'[row // VIEWS]}" if row < few else f"{row}_x{row}")
    named = named_groups(sets)
    assert named.rule
    assert named.count > len(sets) / 2
    assert find_groups(sets).rule == "likeness"


@pytest.mark.parametrize("seed", [492, 556])
def test_names_without_meaning_give_no_rule(seed):
    """Of 600 seeds, those at which a few names share parts by chance, and nearest shapes do, too."""
    generator, objects = np.random.default_rng(seed), np.repeat(np.arange(54), 5)
    rows = generator.normal(size=(54, 8))[objects] + 0.1 * generator.normal(size=(270, 8))
    codes = [md5(str(generator.integers(1 << 32)).encode()).hexdigest()[:8] for _ in objects]
    names = [f"c{o // 6}/{code}.pcd" for o, code in zip(objects.tolist(), codes, strict=True)]
    assert find_siblings(names, (objects // 6).tolist(), rows.astype(np.float32)).rule == ""


def test_no_group_of_likeness_is_far_larger_than_most():
    chain = [(0.9, row, row + 1) for row in range(30, 60)]
    pairs = [(0.1, row, row + 1) for row in range(0, 60, 2)]
    assert np.bincount(_join(chain + pairs, 62)).max() <= 6
