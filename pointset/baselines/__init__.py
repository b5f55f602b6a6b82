"""Support vector machines on feature vectors, fitted by scikit-learn: baselines, and members of ensembles."""
