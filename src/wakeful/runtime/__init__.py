"""What moves by itself: the scheduler, the runner and the loop."""
