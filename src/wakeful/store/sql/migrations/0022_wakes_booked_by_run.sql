-- A run's history shows what the run booked.
CREATE INDEX wakes_booked_by_run ON wakes (booked_by_run) WHERE booked_by_run IS NOT NULL;
