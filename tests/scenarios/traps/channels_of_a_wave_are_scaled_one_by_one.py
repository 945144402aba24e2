# verified:
# says: `channel` is one of several views that one call made.
# says: Going through `wave` (In[2], line 7) made them
# says: [wave[i] for i in range(len(wave))]
# never says: zip([one.clone() for one in wave] | channel = channel
# %%
import torch
torch.manual_seed(0)
# %%
class Gains:
    """Scales each channel of a recording."""
    def __init__(self, gains, shifts):
        self.gains, self.shifts = gains, shifts

    def __call__(self, wave):
        for n, (channel, gain, shift) in enumerate(zip(wave, self.gains, self.shifts)):
            channel.mul_(gain).add_(shift + n)
        return wave
# %%
pickup = torch.randn(2, 8, requires_grad=True)
loud = Gains([0.5, 2.0], [0.0, 1.0])(pickup * 3)
loud.sum().backward()
