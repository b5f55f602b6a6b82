"""A page that runs models in the browser, in JavaScript."""
