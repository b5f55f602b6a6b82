"""Write pointset/zoo/listing.json, from which `pointset zoo` lists the models.

python scripts/zoo_listing.py
"""

import json

from pointset.commands.zoo import LISTING
from pointset.zoo.abilities import describe_models

if __name__ == "__main__":
    LISTING.write_text("[\n" + ",\n".join(map(json.dumps, describe_models())) + "\n]\n", encoding="utf-8")
