"""The ready queue."""

import random

from graphwidget.engine.heap import ReadyHeap


def test_the_greatest_key_comes_first_whatever_the_order_of_arrival():
    keys = random.Random(5).sample(range(1000), 300)
    heap = ReadyHeap(keys)
    for item in range(300):
        heap.push(item)
    assert [keys[heap.pop()] for _ in range(300)] == sorted(keys, reverse=True)


def test_equal_keys_come_in_the_order_in_which_the_heap_of_libstdcxx_hands_them_out():
    # What std::priority_queue of GCC printed for the same pushes and pops: neither FIFO nor LIFO.
    heap = ReadyHeap([7] * 5)
    for item in range(5):
        heap.push(item)
    assert [heap.pop() for _ in range(5)] == [0, 2, 4, 1, 3]


def test_ties_among_different_keys_and_mixed_pushes_and_pops_fall_as_in_libstdcxx():
    heap = ReadyHeap([i % 3 for i in range(12)] + [i % 4 for i in range(12, 18)])
    for item in range(12):
        heap.push(item)
    heap.pop(), heap.pop()
    for item in range(12, 18):
        heap.push(item)
    assert [heap.pop() for _ in range(16)] == [15, 11, 14, 8, 1, 13, 10, 4, 7, 17, 16, 0, 3, 6, 12, 9]
