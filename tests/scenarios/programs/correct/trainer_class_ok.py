# title: A trainer with callbacks, accumulation and a scheduler
# kind: ok
# truth: measured.json
# %%
import torch
from torch import nn
torch.manual_seed(0)

class Trainer:
    def __init__(self, net, accumulate=2):
        self.net, self.accumulate, self.callbacks, self.log = net, accumulate, [], []
        self.optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 6)
        self.last_output = None

    def training_step(self, batch):
        x, y = batch
        self.last_output = self.net(x)
        return nn.functional.mse_loss(self.last_output, y)

    @torch.no_grad()
    def validate(self, batch):
        self.net.eval()
        loss = self.training_step(batch)
        self.net.train()
        return loss.item()

    def fit(self, batches, epochs):
        for epoch in range(epochs):
            for i, batch in enumerate(batches):
                loss = self.training_step(batch) / self.accumulate
                loss.backward()
                if (i + 1) % self.accumulate == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                self.log.append(loss.detach())
            self.scheduler.step()
            for callback in self.callbacks:
                callback(self, epoch, self.validate(batches[0]))

net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear(8, 1))
trainer = Trainer(net)
trainer.callbacks.append(lambda trainer, epoch, score: print(epoch, round(score, 3)))
# %%
data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(4)]
trainer.fit(data, 3)
