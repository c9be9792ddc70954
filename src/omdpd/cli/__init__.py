"""The command line, one module per family of commands; they parse words and call the library."""
