"""The panels around the plots: each is a function from the view to rows of coloured text."""
