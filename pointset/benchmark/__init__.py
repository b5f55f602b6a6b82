"""How fast the zoo is beside what else a user could pick: `pointset bench`."""
