"""What window and backend agree on: the spec, the events, the run folder, the catalog and the queries."""
