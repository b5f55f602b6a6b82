"""Write pointset/zoo/listing.json, which `pointset zoo` reads: python scripts/zoo_listing.py."""

import json

from pointset.zoo.abilities import describe_models
from pointset.zoo.listing import FILE

if __name__ == "__main__":
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, describe_models())) + "\n]\n", encoding="utf-8")
