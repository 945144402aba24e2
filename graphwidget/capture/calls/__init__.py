"""What each backward call was asked to do, what was foreseen, and how it ended."""
