from .kernels import Rbf
