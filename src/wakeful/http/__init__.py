"""What all routes share: authentication, errors, limits, shapes, the files of the page."""
