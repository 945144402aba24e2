"""An exponential average that is trained on."""


class Smoother:
    """Keeps an exponential average of what it is given."""

    def __init__(self, start=0.0):
        self.value = start

    def add(self, loss):
        self.value = 0.9 * self.value + 0.1 * loss
        return self.value
