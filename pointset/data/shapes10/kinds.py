"""The ten kinds of objects; each function returns a random object as a list of solids, the body first.

Some kinds are similar on purpose and differ only in their proportions and in one or two solids: stools and side tables,
benches and coffee tables, desks with one drawer and tables, dressers and bookshelves with doors.
"""

import numpy as np
from numpy.random import Generator

from pointset.data.shapes10.solids import Solid, board, disc, legs, panels, pedestal, rod, support, tube, turned


def chair(rng: Generator) -> list[Solid]:
    """Return a seat on legs, a sled or a pedestal, with a back (slab, slats, ladder or bar), sometimes with arms."""
    width, depth, height = rng.uniform(0.4, 0.6), rng.uniform(0.38, 0.55), rng.uniform(0.36, 0.5)
    thickness = rng.uniform(0.02, 0.1)
    parts = [_top(rng, width, depth, thickness, height, round_share=0.15)]
    parts += support(rng, width, depth, height, ("legs", "round legs", "splayed", "sled", "pedestal"))
    parts += backrest(rng, width, depth / 2, height + thickness, rng.uniform(0.22, 0.6))
    return parts + arms(rng, width, depth, height + thickness) if rng.random() < 0.35 else parts


def backrest(rng: Generator, width: float, y: float, z: float, height: float) -> list[Solid]:
    """Return a leaning back that rises from the height z at the rear edge y."""
    lean = rng.uniform(0.0, 0.25) * height
    thickness = rng.uniform(0.015, 0.04)
    form = rng.choice(["slab", "slats", "ladder", "bar"])
    if form == "slab":
        slab = board(width * rng.uniform(0.8, 1.0), thickness, height, z=z)
        slab.vertices[:, 1] += y + lean * (slab.vertices[:, 2] - z) / height
        return [slab]
    x = width / 2 - thickness
    low, high = np.array((0, y - thickness, z)), np.array((0, y - thickness + lean, z + height))
    side = np.array((x, 0, 0))
    parts = [
        rod(low - side, high - side, thickness),
        rod(low + side, high + side, thickness),
        rod(high - side, high + side, thickness),
    ]
    count = int(rng.integers(2, 6))
    for share in (np.arange(count) + 0.5) / count:
        across = low + (high - low) * share
        if form == "ladder" or (form == "bar" and share > 0.6):
            parts.append(rod(across - side, across + side, 0.8 * thickness, square=True))
        elif form == "slats":
            offset = side * (2 * share - 1)
            parts.append(rod(low + offset, high + offset, 0.6 * thickness))
    return parts


def arms(rng: Generator, width: float, depth: float, z: float) -> list[Solid]:
    """Return two arm rests on posts, or two closed sides."""
    height, radius = rng.uniform(0.14, 0.26), rng.uniform(0.012, 0.025)
    if rng.random() < 0.4:
        return [board(2 * radius, depth, height, side * (width / 2 + radius), z=z - 0.05) for side in (-1, 1)]
    parts = []
    for x in (-width / 2, width / 2):
        front = (x, -depth * rng.uniform(0.2, 0.45))
        parts.append(rod((*front, z), (*front, z + height), radius))
        parts.append(rod((x, front[1] - 0.03, z + height), (x, depth / 2, z + height), 1.3 * radius, square=True))
    return parts


def stool(rng: Generator) -> list[Solid]:
    """Return a small seat without a back, at most as high as a bar stool, sometimes with a low rim at the rear."""
    size, height = rng.uniform(0.26, 0.42), rng.uniform(0.32, 0.78)
    depth = size * rng.uniform(0.75, 1.0)
    thickness = rng.uniform(0.02, 0.12)
    parts = [_top(rng, size, depth, thickness, height, round_share=0.6)]
    form = rng.choice(["three", "four", "pedestal", "panels"], p=[0.3, 0.4, 0.2, 0.1])
    if form in ("three", "four"):
        splay = 0.12 * rng.integers(0, 2)
        parts += legs(rng, size, depth, height, bool(rng.random() < 0.4), splay, 3 if form == "three" else 4)
    else:
        parts += pedestal(rng, 1.3 * size, height) if form == "pedestal" else panels(rng, size, depth, height)
    if rng.random() < 0.12:
        parts += backrest(rng, size, depth / 2, height + thickness, rng.uniform(0.06, 0.14))
    return parts


def table(rng: Generator) -> list[Solid]:
    """Return a dining, coffee or side table, sometimes with an apron or a lower shelf."""
    width, depth, height = _table_size(rng)
    thickness = rng.uniform(0.015, 0.06)
    parts = [_top(rng, width, depth, thickness, height, round_share=0.35)]
    parts += support(rng, 0.9 * width, 0.9 * depth, height)
    if rng.random() < 0.3:
        apron = rng.uniform(0.05, 0.12)
        parts += [board(0.8 * width, 0.02, apron, y=side * 0.4 * depth, z=height - apron) for side in (-1, 1)]
        parts += [board(0.02, 0.8 * depth, apron, x=side * 0.4 * width, z=height - apron) for side in (-1, 1)]
    if rng.random() < 0.2:
        parts += [board(0.75 * width, 0.75 * depth, 0.02, z=height * rng.uniform(0.15, 0.4))]
    return parts


def _table_size(rng: Generator) -> tuple[float, float, float]:
    form = rng.choice(["dining", "coffee", "side"], p=[0.45, 0.25, 0.3])
    if form == "dining":
        return rng.uniform(0.8, 1.9), rng.uniform(0.7, 1.0), rng.uniform(0.66, 0.78)
    if form == "coffee":
        return rng.uniform(0.7, 1.3), rng.uniform(0.45, 0.75), rng.uniform(0.32, 0.48)
    size = rng.uniform(0.35, 0.6)
    return size, size * rng.uniform(0.8, 1.0), rng.uniform(0.42, 0.68)


def desk(rng: Generator) -> list[Solid]:
    """Return a desk top on drawers or panels, often with a panel before the knees, sometimes with shelves on top."""
    width, depth, height = rng.uniform(1.0, 1.8), rng.uniform(0.5, 0.85), rng.uniform(0.68, 0.78)
    thickness = rng.uniform(0.02, 0.05)
    parts = [board(width, depth, thickness, z=height)]
    block = width * rng.uniform(0.2, 0.33)
    form = rng.choice(["one block", "two blocks", "drawer under the top", "panels"], p=[0.4, 0.25, 0.2, 0.15])
    if form in ("one block", "two blocks"):
        low = 0.0 if rng.random() < 0.6 else height * rng.uniform(0.3, 0.6)
        sides = (-1, 1) if form == "two blocks" else (1,)
        for side in sides:
            parts += _drawers(rng, block, 0.9 * depth, height - low, side * (width - block) / 2, low, columns=1)
        if low or form == "one block":
            parts += legs(rng, width, depth, height, square=True, splay=0.0)
    elif form == "drawer under the top":
        parts += _drawers(
            rng, 0.8 * width, 0.85 * depth, rng.uniform(0.08, 0.16), 0.0, height - 0.16, columns=2, rows=1
        )
        parts += support(rng, width, depth, height, ("legs", "round legs", "splayed", "panels"))
    else:
        parts += panels(rng, width, depth, height)
    if rng.random() < 0.55:
        modesty = height * rng.uniform(0.3, 0.8)
        parts += [board(0.95 * width, 0.02, modesty, y=0.42 * depth, z=height - modesty)]
    if rng.random() < 0.25:
        parts += _case(rng, width, 0.3 * depth, rng.uniform(0.25, 0.5), y=0.33 * depth, z=height + thickness)
    return parts


def bench(rng: Generator) -> list[Solid]:
    """Return a long seat of one board or of slats. Half of the benches have a back, and half of these have arms."""
    width, depth, height = rng.uniform(0.95, 1.8), rng.uniform(0.28, 0.5), rng.uniform(0.36, 0.5)
    thickness = rng.uniform(0.02, 0.07)
    if rng.random() < 0.4:
        count = int(rng.integers(3, 6))
        pitch = depth / count
        ys = pitch * (np.arange(count) + 0.5) - depth / 2
        parts = [board(width, 0.7 * pitch, thickness, y=y, z=height) for y in ys]
    else:
        parts = [board(width, depth, thickness, z=height)]
    parts += support(rng, width, depth, height, ("legs", "legs", "round legs", "splayed", "panels", "sled"))
    if rng.random() < 0.5:
        parts += backrest(rng, width, depth / 2, height + thickness, rng.uniform(0.25, 0.5))
        if rng.random() < 0.5:
            parts += arms(rng, width, depth, height + thickness)
    return parts


def bookshelf(rng: Generator) -> list[Solid]:
    """Return shelves between two sides, sometimes with a back, books, or a door below."""
    width, depth, height = rng.uniform(0.5, 1.3), rng.uniform(0.22, 0.42), rng.uniform(0.8, 2.0)
    foot = rng.uniform(0.02, 0.15) if rng.random() < 0.5 else 0.0
    parts = _case(rng, width, depth, height, z=foot)
    if foot:
        parts += legs(rng, width, depth, foot, square=True, splay=0.0)
    if rng.random() < 0.3:
        parts += [board(0.94 * width, 0.02, height * rng.uniform(0.2, 0.45), y=-depth / 2, z=foot)]
    return parts


def dresser(rng: Generator) -> list[Solid]:
    """Return a chest with rows of drawers on short feet or a plinth, sometimes with a mirror."""
    width, depth, height = rng.uniform(0.6, 1.5), rng.uniform(0.35, 0.55), rng.uniform(0.6, 1.25)
    foot = rng.uniform(0.04, 0.2)
    parts = _drawers(rng, width, depth, height, 0.0, foot, columns=int(rng.integers(1, 4)))
    parts += [board(1.04 * width, 1.04 * depth, 0.025, z=foot + height)]
    parts += (
        legs(rng, width, depth, foot, bool(rng.random() < 0.6), 0.0)
        if rng.random() < 0.75
        else [board(0.95 * width, 0.9 * depth, foot)]
    )
    if rng.random() < 0.15:
        mirror = rng.uniform(0.3, 0.6)
        parts += [board(width * rng.uniform(0.4, 0.8), 0.03, mirror, y=0.4 * depth, z=foot + height)]
    return parts


def lamp(rng: Generator) -> list[Solid]:
    """Return a table lamp, a floor lamp or a lamp with a jointed arm, made of a foot, a stem and a shade."""
    form = rng.choice(["table", "floor", "arm"], p=[0.45, 0.3, 0.25])
    height = {"table": rng.uniform(0.3, 0.6), "floor": rng.uniform(1.1, 1.7), "arm": rng.uniform(0.35, 0.6)}[form]
    reach = rng.uniform(0.08, 0.16) * (1.5 if form == "floor" else 1.0)
    stem = rng.uniform(0.008, 0.02)
    if form == "arm":
        elbow = np.array((-rng.uniform(0.05, 0.25), 0.0, height))
        tip = elbow + np.array((rng.uniform(0.2, 0.45), 0.0, rng.uniform(-0.15, 0.2)))
        shade = _shade(rng, rng.uniform(0.06, 0.12), rng.uniform(0.08, 0.14))
        shade.apply_translation(tip - (0, 0, 0.1))
        return [disc(reach, 0.02), rod((0, 0, 0.01), elbow, stem), rod(elbow, tip, stem), shade]
    shade = _shade(rng, rng.uniform(0.1, 0.24), rng.uniform(0.12, 0.3))
    shade.apply_translation((0, 0, height - 0.04))
    if form == "table" and rng.random() < 0.6:
        belly, neck = rng.uniform(0.05, 0.13), rng.uniform(0.015, 0.03)
        levels = height * np.array((0.0, 0.02, 0.35, 0.7, 1.0))
        radii = (0.0, reach * 0.8, belly, neck, neck)
        return [turned([*zip(radii, levels, strict=True)]), shade]
    return [*pedestal(rng, 3 * reach, height), shade]


def mug(rng: Generator) -> list[Solid]:
    """Return an open cup with a wall, usually with one handle, sometimes with a saucer."""
    radius, height = rng.uniform(0.032, 0.055), rng.uniform(0.065, 0.13)
    foot, waist = radius * rng.uniform(0.65, 1.05), radius * rng.uniform(0.85, 1.12)
    radii, levels = [foot, waist, radius], [0.0, height * rng.uniform(0.3, 0.7), height]
    parts = _vessel(radii, levels, wall=rng.uniform(0.003, 0.008))
    sides = [] if rng.random() < 0.12 else ([1, -1] if rng.random() < 0.06 else [1])
    parts += _handles(rng, sides, (foot + radius) / 2, height, low=0.35, high=0.7)
    if rng.random() < 0.12:
        parts += [disc(radius * rng.uniform(1.4, 1.9), 0.006, z=-0.006)]
    return parts


def vase(rng: Generator) -> list[Solid]:
    """Return a solid of revolution with a belly, a neck and a lip, sometimes with handles."""
    height = rng.uniform(0.14, 0.4)
    belly = height * rng.uniform(0.16, 0.38)
    foot, neck = belly * rng.uniform(0.4, 0.95), belly * rng.uniform(0.25, 0.9)
    lip = neck * rng.uniform(0.95, 1.7)
    middle, throat = rng.uniform(0.25, 0.6), rng.uniform(0.72, 0.9)
    knots = np.array((0.0, middle, throat, 1.0))
    levels = np.linspace(0.0, 1.0, 13)
    radii = np.interp(levels, knots, (foot, belly, neck, lip))
    smooth = np.convolve(np.pad(radii, 1, mode="edge"), (0.25, 0.5, 0.25), mode="valid")
    parts = _vessel(list(smooth), list(height * levels), wall=0.015 * height)
    sides = [[], [1], [1, -1]][rng.choice(3, p=[0.6, 0.2, 0.2])]
    parts += _handles(rng, sides, belly, height, low=0.4, high=0.75)
    return parts


def _shade(rng: Generator, radius: float, height: float) -> Solid:
    """Return a cone, a cylinder or a dome that is open below and stands on z = 0."""
    top = radius * rng.uniform(0.35, 1.0)
    if rng.random() < 0.25:
        angles = np.linspace(0.0, np.pi / 2, 7)
        return turned([*zip(radius * np.cos(angles), height * np.sin(angles), strict=True)])
    return turned([(radius, 0.0), (top, height)])


def _top(rng: Generator, width: float, depth: float, thickness: float, z: float, round_share: float) -> Solid:
    """Return a rectangular or elliptical top with its underside at z."""
    if rng.random() >= round_share:
        return board(width, depth, thickness, z=z)
    solid = disc(0.5, thickness, z=z)
    solid.apply_scale((width, depth, 1.0))
    return solid


def _case(rng: Generator, width: float, depth: float, height: float, y: float = 0.0, z: float = 0.0) -> list[Solid]:
    """Return two sides with shelves between them, sometimes with a back, a divider and books."""
    thickness = rng.uniform(0.015, 0.035)
    shelves = int(rng.integers(2, max(3, int(height / 0.26)) + 1))
    levels = z + (height - thickness) * np.arange(shelves + 1) / shelves
    parts = [board(thickness, depth, height, side * (width - thickness) / 2, y, z) for side in (-1, 1)]
    parts += [board(width, depth, thickness, y=y, z=level) for level in levels]
    if rng.random() < 0.65:
        parts += [board(width, 0.01, height, y=y + depth / 2, z=z)]
    if rng.random() < 0.3:
        parts += [board(thickness, depth, height, y=y, z=z)]
    for level in levels[:-1]:
        if rng.random() < 0.35:
            run, tall = width * rng.uniform(0.2, 0.7), height / shelves * rng.uniform(0.5, 0.85)
            x = rng.uniform(-0.5, 0.5) * (width - run - 2 * thickness)
            parts += [board(run, 0.7 * depth, tall, x, y + 0.1 * depth, level + thickness)]
    return parts


def _drawers(
    rng: Generator, width: float, depth: float, height: float, x: float, z: float, columns: int, rows: int | None = None
) -> list[Solid]:
    """Return a closed case with slightly raised drawer fronts, with knobs, bars or no handles."""
    rows = rows or int(rng.integers(2, 6))
    front, across, tall = -depth / 2, width / columns, height / rows
    out = rng.uniform(0.005, 0.03)
    handle = rng.choice(["knob", "bar", "none"])
    parts = [board(width, depth, height, x, z=z)]
    for column in range(columns):
        for row in range(rows):
            middle = x - width / 2 + across * (column + 0.5)
            level = z + tall * row
            parts += [board(0.9 * across, out, 0.85 * tall, middle, front - out / 2, level + 0.075 * tall)]
            if handle != "none":
                reach = 0.015 if handle == "knob" else 0.25 * across
                grip = (front - out - 0.02, level + tall / 2)
                parts += [rod((middle - reach, *grip), (middle + reach, *grip), 0.012)]
    return parts


def _vessel(radii: list[float], levels: list[float], wall: float) -> list[Solid]:
    """Return an open vessel with a wall and a floor."""
    outside = [(0.0, levels[0]), *zip(radii, levels, strict=True)]
    inside = [(max(radius - wall, 0.2 * radius), level) for radius, level in zip(radii, levels, strict=True)]
    inside = [(radius, max(level, 2 * wall)) for radius, level in inside][::-1]
    return [turned([*outside, *inside, (0.0, 2 * wall)])]


def _handles(rng: Generator, sides: list[int], radius: float, height: float, low: float, high: float) -> list[Solid]:
    level, rise = height * rng.uniform(low, high) * 0.9, height * rng.uniform(0.18, 0.34)
    out, thick = radius * rng.uniform(0.45, 0.9), radius * rng.uniform(0.09, 0.17)
    angles = np.radians(np.linspace(-90.0, 90.0, 8))
    x, z = 0.9 * radius + out * np.cos(angles), level + rise * np.sin(angles)
    path = np.stack([x, 0 * angles, z], axis=1)
    return [piece for side in sides for piece in tube(path * (side, 1, 1), thick)]
