"""Find and read datasets: cards, folders, published layouts and downloads."""
