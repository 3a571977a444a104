"""Slow because of its algorithm: a set would do."""


def unique(items: list[int]) -> list[int]:
    seen: list[int] = []
    for item in items:
        if item not in seen:
            seen.append(item)
    return seen


def main() -> None:
    for _ in range(3):
        unique(list(range(6_000)))


main()
