"""The panels around the plots: each turns the view into rows of coloured text."""
