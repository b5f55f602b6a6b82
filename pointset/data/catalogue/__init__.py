"""Find and read datasets: cards, folders, released layouts and downloads."""
