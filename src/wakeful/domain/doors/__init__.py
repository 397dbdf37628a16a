"""What may be asked for through each door: recalls, schedules, the next run."""
