"""A function that is called millions of times a second, each time for less than a call into Rust costs."""


def add(one: int, other: int) -> int:
    return one + other


def main() -> None:
    total = 0
    for number in range(7_000_000):
        total = add(total, number)


main()
