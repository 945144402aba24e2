"""Parameters that a line has frozen, and that were to train."""
