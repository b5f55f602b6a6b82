"""What `kills.py` is made of: commands on tiny data, killed at random moments."""
