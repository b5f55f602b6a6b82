"""What datasets there are and where they lie: cards, folders, released layouts, downloads."""
