// Nothing is left to do here: it takes the place of a file of the same name.
