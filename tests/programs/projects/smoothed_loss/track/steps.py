"""One step of the training."""


def step(model, optimizer, smoother, x, y):
    optimizer.zero_grad()
    error = model(x) - y
    loss = error.pow(2).mean()
    smooth = smoother.add(loss)
    smooth.backward()
    optimizer.step()
    return loss.item()
