"""What each backward call was asked to do, what was foreseen, and what came of it."""
