"""A hot loop behind a function that only calls it."""


def score(tokens: list[int]) -> int:
    total = 0
    for token in tokens:
        total = (total * 31 + token) % 1_000_003
    return total


def checked(tokens: list[int]) -> int:
    return score(tokens)


def main() -> None:
    tokens = list(range(3_000))
    for _ in range(3_000):
        checked(tokens)


main()
