"""Write a comparison as an HTML page with figures."""
