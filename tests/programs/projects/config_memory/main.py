import torch

from lit.config import Config
from lit.module import Forecaster
from lit.trainer import Trainer


def main():
    torch.manual_seed(0)
    data = [(torch.randn(5, 4), torch.randn(5, 1)) for _ in range(4)]
    net = Forecaster(Config())
    before = net.encode.weight.detach().clone()
    Trainer(2).fit(net, data)
    print("moved", not torch.equal(before, net.encode.weight))


if __name__ == "__main__":
    main()
