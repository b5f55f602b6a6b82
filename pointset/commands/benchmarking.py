"""`pointset bench`: our blocks against what else there is, on this machine."""

import sys
from pathlib import Path
from typing import Any

from pointset.commands.options import Json
from pointset.commands.printing import print_json
from pointset.training.recipe import Precision


def bench(
    *models: str,
    dims: tuple[int, ...] = (128, 256),
    points: tuple[int, ...] = (100, 1000, 5000),
    heads: int = 4,
    batch_size: int = 32,
    rounds: int = 9,
    threads: int | None = None,
    device: str = "cpu",
    precision: Precision = "float32",
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Time training steps and inference against four other formulations of the same architecture.

    Columns "released" to "torch" are their times over ours, medians of interleaved rounds in one process: the released
    formulation of the Set Transformer, the same with scaled_dot_product_attention, torch-geometric's blocks, and
    blocks of torch.nn.MultiheadAttention.

    Args:
        models: isab<m>-pma or sab-pma; isab16-pma when not given.
        dims: widths.
        points: points per set.
        heads: attention heads.
        batch_size: sets per step.
        rounds: timings of each; the median counts.
        threads: of torch; all cores when not given.
        device: cpu, or cuda.
        precision: float32, or bfloat16 for autocast.
        out: file for the rows, as JSON, with the versions and the machine; written again after each size.
        as_json: print JSON.
    """
    import torch

    from pointset.benchmark.contest import Setting, contest
    from pointset.benchmark.table import markdown
    from pointset.runs.atomic import write_json
    from pointset.runs.provenance import command, commit, machine, versions
    from pointset.runs.threads import torch_threads
    from pointset.training.loop import find_device

    find_device(device)
    with torch_threads(threads or torch.get_num_threads()):
        result: dict[str, Any] = {"rows": [], "machine": machine(), "versions": versions()}
        result |= {"commit": commit(), "command": command()}
        for model in models or ("isab16-pma",):
            for dim in dims:
                for count in points:
                    setting = Setting(
                        model=model,
                        dim=dim,
                        heads=heads,
                        points=count,
                        batch_size=batch_size,
                        rounds=rounds,
                        device=device,
                        precision=precision,
                    )
                    print(f"{model}, d = {dim}, n = {count}", file=sys.stderr)
                    result["rows"] += contest(setting)
                    if out is not None:
                        write_json(out, result)
    if as_json:
        print_json(result)
    else:
        print(markdown(result["rows"]))
