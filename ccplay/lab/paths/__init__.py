"""Which of several paths traffic takes: found, pinned, changed. Nothing here starts traffic."""
