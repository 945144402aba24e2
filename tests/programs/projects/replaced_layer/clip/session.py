import torch


class Session:
    def __init__(self, tower):
        self.tower = tower
        self.optimizer = torch.optim.AdamW(tower.parameters(), lr=1e-2)

    def run(self, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(self.tower(x), y)
            loss.backward()
            self.optimizer.step()
