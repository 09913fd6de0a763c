"""``ccplay cluster``, and ``ccplay run`` on a cluster; Dask is imported only when needed."""
