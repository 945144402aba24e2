"""Why a tensor has no graph: which line cut it, or what switched recording off."""
