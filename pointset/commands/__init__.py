"""The commands of `pointset`, by subject; nothing heavy is imported until one runs."""
