"""Training in several processes: their group, the first one's engine, and a model that they shard (FSDP)."""
