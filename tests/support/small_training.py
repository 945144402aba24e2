"""Lines of a small training that several tests share: `net` is made by the test."""

__all__ = ["LOOP", "OPTIMIZER"]

OPTIMIZER = "opt = torch.optim.SGD(net.parameters(), lr=0.1)"
LOOP = "for _ in range(4):\n    opt.zero_grad()\n    loss = net(torch.ones(2, 3)).pow(2).sum()\n    loss.backward()\n    opt.step()"
