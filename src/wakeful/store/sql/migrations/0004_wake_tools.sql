-- The tools of the run that booked a wake, which the run it wakes cannot exceed. Null: no limit, as a person booked it.
ALTER TABLE wakes ADD COLUMN tools TEXT;
