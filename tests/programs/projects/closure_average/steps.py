import torch


def make_step(model, optimizer, decay=0.9):
    smooth = torch.zeros(())

    def step(x, y):
        nonlocal smooth
        error = (model(x).squeeze(1) - y).abs().mean()
        smooth = decay * smooth + (1 - decay) * error
        optimizer.zero_grad()
        smooth.backward()
        optimizer.step()
        return error.item()

    return step
