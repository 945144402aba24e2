import torch

from agent.net import Policy


def main():
    torch.manual_seed(2)
    policy = Policy()
    before = policy.head.weight.clone()
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(3):
        scores = policy(torch.randn(4, 2))
        loss = -scores.log_softmax(1)[:, 0].mean()
        optimizer.zero_grad()
        # what the policy earned
        loss.backward()
        optimizer.step()
    print("moved", not torch.equal(before, policy.head.weight))


if __name__ == "__main__":
    main()
