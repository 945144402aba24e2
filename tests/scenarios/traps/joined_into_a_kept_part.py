# verified: out_of_place
# says: `self.room[:n]` | writes into a given tensor
# never says: .detach() | no_grad
# A mixer concatenates stems into a part of a tensor that is kept from song to song. A write into that part would lead
# from each song to the one before.
# %%
import torch
from torch import nn

torch.manual_seed(0)


class Mixer(nn.Module):
    def __init__(self, longest, channels):
        super().__init__()
        self.voice = nn.Linear(channels, channels)
        self.drums = nn.Linear(channels, channels)
        self.room = torch.zeros(longest, channels)

    def forward(self, voice, drums):
        stems = [self.voice(voice).tanh(), self.drums(drums).tanh()]
        n = sum(map(len, stems))
        torch.cat(stems, out=self.room[:n])
        loudness = self.room[:n].pow(2).mean(1)
        return self.room[:n] / loudness.sqrt().unsqueeze(1)


mixer = Mixer(12, 4)
optimizer = torch.optim.SGD(mixer.parameters(), lr=0.1)
# %%
for song in range(3):
    optimizer.zero_grad()
    mixed = mixer(torch.randn(5, 4), torch.randn(5, 4))
    (mixed - 1).pow(2).mean().backward()
    optimizer.step()
