class Remembers:
    """Keeps one value from call to call."""

    _last = None

    def recall(self, default):
        if self._last is None:
            return default
        return self._last

    def remember(self, value):
        self._last = value
