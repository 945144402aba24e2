from .block import Block
