"""The commands of the command line, one module per family; they parse words and call the library."""
