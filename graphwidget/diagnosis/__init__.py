"""What went wrong, why, and what helps: findings and fixes, from records alone."""
