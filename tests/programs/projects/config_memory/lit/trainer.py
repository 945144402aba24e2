"""A small trainer: calls the hooks of a module."""


class Trainer:
    def __init__(self, epochs, callbacks=()):
        self.epochs = epochs
        self.callbacks = list(callbacks)

    def fit(self, module, loader):
        optimizer = module.configure_optimizers()
        for epoch in range(self.epochs):
            for index, batch in enumerate(loader):
                loss = module.training_step(batch, index)
                optimizer.zero_grad()
                self.backward(loss)
                optimizer.step()
                for callback in self.callbacks:
                    callback.on_batch_end(loss)

    def backward(self, loss):
        loss.backward()
