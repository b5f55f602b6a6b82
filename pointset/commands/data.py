"""`pointset data`: what data sets there are, what is known of them, pools of points on disk."""

from dataclasses import asdict
from typing import Literal

from cyclopts import App

from pointset.commands.options import Flags, Json
from pointset.commands.printing import in_words, print_json, print_rows
from pointset.errors import PointsetError, escaped

app = App(
    name="data",
    help_format="markdown",
    group_parameters=Flags,
    help="Data sets: what there is, what is known about it, pools of points on disk.",
)


@app.command(name="list")
def list_(*, as_json: Json = False) -> None:
    """List the data sets that have a card.

    Args:
        as_json: print JSON.
    """
    from pointset.data.catalogue.cards import list_cards, load_card

    cards = [load_card(name) for name in list_cards()]
    rows = [
        {
            "name": card.name,
            "kind": card.kind,
            "classes": len(card.classes),
            **card.splits,
            "summary": card.summary,
        }
        for card in cards
    ]
    print_rows(rows, as_json)


@app.command
def show(name: str, *, as_json: Json = False) -> None:
    """Show all that a data set's card says.

    Args:
        name: the card's name.
        as_json: print JSON.
    """
    from pointset.data.catalogue.cards import load_card

    card = asdict(load_card(name))
    if as_json:
        print_json(card)
        return
    card["download"] = {key: value for key, value in card["download"].items() if value is not None}
    width = max(map(len, card))
    for key, value in card.items():
        if value:
            print(f"{key:{width}}  {in_words(value, separator=chr(10) + ' ' * (width + 2))}")


@app.command
def build(
    data: str = "shapes10",
    *,
    points: int = 10_000,
    sampler: Literal["uniform", "fps", "poisson"] = "uniform",
    seed: int = 0,
    normals: bool = False,
    workers: int | None = None,
    backend: Literal["loky", "dask", "ray"] = "loky",
    scheduler: str | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    rebuild: bool = False,
    split_seed: int = 0,
    as_json: Json = False,
) -> None:
    """Sample every mesh of a data set into pools of points on disk, so that later commands start at once.

    A build that was cut off goes on when the same command is given again.

    Args:
        data: a card's name, or a folder of meshes as class/split/file, split/class/file or class/file.
        points: points per shape.
        sampler: how they are chosen on the surface.
        seed: of the points.
        normals: keep the unit normal at each point too.
        workers: processes; one per core, or all of a cluster's, when not given. Does not change the points.
        backend: processes on this machine (loky), or a dask or ray cluster.
        scheduler: the cluster's address, such as tcp://host:8786.
        on_error: fail when meshes cannot be used, after all have been tried, or finish without them.
        rebuild: make them again, even if they exist.
        split_seed: of the rule that splits a class/file folder.
        as_json: print JSON.
    """
    from pointset.data.pools.build import build_dataset

    report = build_dataset(
        data,
        points=points,
        sampler=sampler,
        seed=seed,
        normals=normals,
        workers=workers,
        backend=backend,
        scheduler=scheduler,
        on_error=on_error,
        rebuild=rebuild,
        split_seed=split_seed,
    )
    if as_json:
        pools = {
            split: {"shapes": made.shapes, "sampled": made.sampled, "folder": str(made.folder)}
            for split, made in report.pools.items()
        }
        print_json({"pools": pools, "left_out": report.failures, "seconds": round(report.seconds, 2)})
        return
    for split, made in report.pools.items():
        print(f"{split}: {made.shapes:,} shapes of {points:,} points, {made.sampled:,} sampled now, in {made.folder}")
    for name, reason in report.failures.items():
        print(escaped(f"left out {name}: {reason}"))
    print(f"{report.seconds:.1f} s")


@app.command
def fetch(name: str) -> None:
    """Download and unpack the data of a card. A fetch that was cut off goes on when the same command is given again.

    Args:
        name: the card's name.
    """
    from pointset.data.catalogue.fetch import fetch as fetch_data

    print(f"{name} is in {fetch_data(name)}")


@app.command
def verify(data: str = "shapes10", *, as_json: Json = False) -> None:
    """Compare every pool of a data set with its manifest and its meshes, or the files of a release with their digests.

    Args:
        data: a card's name or a folder.
        as_json: print JSON.
    """
    from pointset.data.pools.verify import verify_dataset

    pools = verify_dataset(data)
    if as_json:
        print_json([{**asdict(pool), "folder": str(pool.folder), "remedy": pool.remedy} for pool in pools])
    else:
        for pool in pools:
            left_out = f", {pool.skipped:,} left out" if pool.skipped else ""
            state = "; ".join(pool.problems) or "sound"
            print(escaped(f"{pool.folder}: {pool.shapes:,} {pool.what}{left_out}: {state}"))
    damaged = [pool for pool in pools if pool.problems]
    if damaged:
        remedies = "; ".join(dict.fromkeys(pool.remedy for pool in damaged))
        raise PointsetError(f"{len(damaged)} of {len(pools)} pools cannot be trusted: {remedies}")
