"""Pictures of attention: every function takes maps and points, draws, and never runs a model.

Maps come from `pointset.attention_maps(model, points)`. On every picture 1 means "as much as uniform attention
would give", on a logarithmic scale.

    still (matplotlib; PNG or SVG by `save`)
        draw_clouds(clouds, names=...)              clouds without attention, to see what a model sees
        draw_map(map, points, head=0, query=5)      one cloud, coloured by one map
        draw_maps(map, points)                      all heads and queries of one layer (inducing points, or PMA's seeds)
        draw_reads_and_writes(reads, writes, points)    what an inducing point reads, and who reads it back
        draw_instances(maps, clouds, head=0, query=5)   one inducing point on several shapes of a class
        draw_pooling_comparison(points, critical=..., pools=..., influence=...)    ways of pooling on one shape
        draw_specialisation(trained, control)       measures of inducing points, the untrained model beside them
        draw_clusters(sets, mixtures)               sets in the plane and the mixtures of Gaussians they stand for
        draw_predictions(truth, said)               what models say of a number, against the number
    interactive (one HTML file, no network)
        make_page(maps, points)                     all maps of a layer turn together; a `Page`
    3D tools
        export_cloud(map, points, path)             coloured points for MeshLab or Blender (.ply, .glb)
        export_surface(map, points, mesh, path)     the same on the mesh that the points were sampled from
        show_window(map, points, path)              an Open3D window, or the saved file where no display is
"""

from typing import TYPE_CHECKING

from pointset.lazy import lazy_names

if TYPE_CHECKING:
    from pointset.viz.camera import Camera
    from pointset.viz.clusters import draw_clusters
    from pointset.viz.color import ColorScale
    from pointset.viz.compare_panel import draw_pooling_comparison, draw_specialisation
    from pointset.viz.export import export_cloud, export_surface
    from pointset.viz.page import Page, inline, make_page
    from pointset.viz.panels import draw_instances, draw_map, draw_maps, draw_reads_and_writes
    from pointset.viz.predictions import draw_predictions
    from pointset.viz.shapes import draw_clouds
    from pointset.viz.surface import carry_to_vertices
    from pointset.viz.window import show_window
    from pointset.viz.writing import save

_HOMES = {
    "camera": ("Camera",),
    "clusters": ("draw_clusters",),
    "color": ("ColorScale",),
    "compare_panel": ("draw_pooling_comparison", "draw_specialisation"),
    "export": ("export_cloud", "export_surface"),
    "page": ("Page", "inline", "make_page"),
    "panels": ("draw_instances", "draw_map", "draw_maps", "draw_reads_and_writes"),
    "predictions": ("draw_predictions",),
    "shapes": ("draw_clouds",),
    "surface": ("carry_to_vertices",),
    "window": ("show_window",),
    "writing": ("save",),
}

__all__ = [
    "Camera",
    "ColorScale",
    "Page",
    "carry_to_vertices",
    "draw_clouds",
    "draw_clusters",
    "draw_instances",
    "draw_map",
    "draw_maps",
    "draw_pooling_comparison",
    "draw_predictions",
    "draw_reads_and_writes",
    "draw_specialisation",
    "export_cloud",
    "export_surface",
    "inline",
    "make_page",
    "save",
    "show_window",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
