"""Batches of encoded rows."""


def encoded(encoder, rows):
    codes = encoder(rows)
    for start in range(0, len(rows), 2):
        yield codes[start : start + 2]
