"""A function that is called millions of times a second, each time for less than a call into Rust costs."""


def add(one: int, other: int) -> int:
    return (one + other * 31) % 1_000_003 + (other & 7)


def main() -> None:
    total = 0
    for number in range(10_000_000):
        total = add(total, number)


main()
