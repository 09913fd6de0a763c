"""``ccplay cluster``, and the runs of ``ccplay run`` on a cluster; nothing of Dask at import."""
