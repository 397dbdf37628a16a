"""Operating a server: metrics, storage, upkeep, logs, status, the service of systemd."""
