def score(numbers: list[int]) -> int: return sum(number * number % 7 for number in numbers)  # fmt: skip


def main() -> None:
    numbers = list(range(200))
    for _ in range(20_000):
        score(numbers)


main()
