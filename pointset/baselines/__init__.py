"""Classifiers that scikit-learn fits to feature vectors: baselines beside the networks, and members of ensembles."""
