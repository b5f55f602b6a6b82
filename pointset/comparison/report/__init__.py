"""Write a comparison as an HTML page and as Markdown with figures."""
