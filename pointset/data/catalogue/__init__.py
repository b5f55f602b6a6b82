"""Find and read datasets: cards, folders, published file layouts and downloads."""
