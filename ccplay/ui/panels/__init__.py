"""The panels beside the plots: each a function from the view to rows of coloured text."""
