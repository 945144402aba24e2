"""Answers to questions of the page, as JSON data: pure functions of what was recorded."""
