import torch

from clip.session import Session
from clip.tower import Tower


def main():
    torch.manual_seed(0)
    session = Session(Tower(5, 8))
    session.tower.widen(2)
    before = session.tower.project.weight.detach().clone()
    session.run([(torch.randn(6, 5), torch.randn(6, 2)) for _ in range(5)])
    print("moved", not torch.equal(before, session.tower.project.weight))


if __name__ == "__main__":
    main()
