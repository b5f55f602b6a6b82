"""Pictures of attention: functions that draw maps and points, and never run a model.

Maps come from `pointset.attention_maps(model, points)`. In every picture, 1 is uniform attention, on a logarithmic
scale.

    still (matplotlib; PNG or SVG by `save`)
        draw_clouds(clouds, names=...)              clouds without attention
        draw_map(map, points, head=0, query=5)      one cloud, coloured by one map
        draw_maps(map, points)                      all heads and queries of one layer (inducing points, or PMA's seeds)
        draw_reads_and_writes(reads, writes, points)    what an inducing point reads, and which points read it back
        draw_instances(maps, clouds, head=0, query=5)   one inducing point on several shapes of a class
        draw_pooling_comparison(points, critical=..., pools=..., influence=...)    ways of pooling on one shape
        draw_specialisation(trained, control)       measures of inducing points, compared with the untrained model
        draw_clusters(sets, mixtures)               sets in the plane with mixtures of Gaussians
        draw_predictions(truth, said)               predicted numbers against true ones
    interactive (one HTML file, no network)
        make_page(maps, points)                     all maps of a layer turn together; a `Page`
        make_live_page(models, shapes)              models that run in the page, from `pointset.describe_plainly`
    3D tools
        export_cloud(map, points, path)             coloured points for MeshLab or Blender (.ply, .glb)
        export_surface(map, points, mesh, path)     the mesh that the points were sampled from, coloured
        show_window(map, points, path)              an Open3D window, or a file if there is no display

Imports: `data`, `evaluation`, `explain`, `runs`. Imported by: `commands`, `comparison`, `tasks`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
