"""Classifiers that are fitted in closed form or by scikit-learn: rows beside the networks, and members of mixtures."""
