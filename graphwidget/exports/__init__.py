"""Files that people take along: every format in one table, and a page of the view with a recording in it."""
