"""A page that runs models in the browser: the only part of the package that knows their JavaScript."""
