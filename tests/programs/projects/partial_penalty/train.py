import torch

from setup_loss import loss_of


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    before = model.weight.clone()
    loss_function = loss_of(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        out = model(torch.randn(8, 4))
        loss = loss_function(out, torch.ones(8, 1))
        optimizer.zero_grad()
        # one call in each pass
        loss.backward()
        optimizer.step()
    print("moved", not torch.equal(before, model.weight))


main()
