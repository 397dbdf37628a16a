"""Rules of runs and of the approvals they wait for."""
