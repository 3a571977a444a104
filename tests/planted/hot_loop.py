"""A hot loop of plain Python, called 3,000 times."""


def score(tokens: list[int]) -> int:
    total = 0
    for token in tokens:
        total = (total * 31 + token) % 1_000_003
    return total


def main() -> None:
    tokens = list(range(3_000))
    for _ in range(3_000):
        score(tokens)


main()
